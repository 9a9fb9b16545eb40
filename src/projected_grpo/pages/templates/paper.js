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
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
  chart(JSON.parse(document.getElementById("data").textContent), document.getElementById("curves"));
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // A click on a column's head sorts its rows, a second one the other way round; cells without a number stay last.
  const number = (text) => { const found = text.replace(/^</, "").match(/^[+-]?[\d.,]+/); return found ? Number(found[0].replace(/,/g, "")) : null; };
  for (const head of document.querySelectorAll("main table thead th")) {
    const sort = document.createElement("button");
    sort.type = "button";
    sort.className = "sort";
    sort.append(...head.childNodes);
    head.append(sort);
    sort.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1, body = head.closest("table").tBodies[0];
      const key = (row) => row.cells[head.cellIndex].innerText.trim();
      const numeric = getComputedStyle(head).textAlign === "right";
      const rows = [...body.rows].sort((a, b) => {
        const [m, n] = [number(key(a)), number(key(b))];
        if (!numeric) return sign * key(a).localeCompare(key(b));
        return m === null || n === null ? (m === null) - (n === null) : sign * (m - n);
      });
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      body.append(...rows);
    });
  }

  const form = document.getElementById("filters");
  if (!form) return;
  form.hidden = false;
  const rollouts = [...document.querySelectorAll(".rollout")];
  const arms = [...document.querySelectorAll("#rollouts .arm")];
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
