"use strict";
// Everything here is an addition: without it the page reads the same, in full.
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  const form = document.getElementById("filters");
  if (!form) return;
  form.hidden = false;
  const rollouts = [...document.querySelectorAll(".rollout")];
  const arms = [...document.querySelectorAll(".arm")];
  const apply = () => {
    const { arm, kind, mode, when, text } = Object.fromEntries(new FormData(form));
    const needle = text.toLowerCase();
    let shown = 0;
    for (const rollout of rollouts) {
      const fits = (!arm || rollout.parentElement.dataset.arm === arm) && (!kind || rollout.dataset.kind === kind)
        && (!mode || rollout.dataset.mode === mode) && (!when || rollout.dataset.step === when || (rollout.dataset.when || "").split(" ").includes(when))
        && (!needle || rollout.textContent.toLowerCase().includes(needle));
      rollout.hidden = !fits;
      shown += fits;
    }
    const filtering = arm || kind || mode || when || needle;
    for (const group of arms) {
      const any = [...group.querySelectorAll(".rollout")].some((rollout) => !rollout.hidden);
      group.hidden = !any;
      group.open = Boolean(filtering) && any;
    }
    form.querySelector("output").textContent = `${shown} of ${rollouts.length} rollouts`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
})();
