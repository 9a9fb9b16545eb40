// Rows that a reader picks, laid over one another: a panel a measure. data: what `curves` of pages/report.py writes.
function chart(data, section) {
  const form = section.querySelector("form"), list = form.querySelector("fieldset");
  const panels = section.querySelector(".panels"), output = section.querySelector("output");
  const COLOURS = ["ink", "c1", "c2", "c3", "c4", "c5", "c6"], DASHES = ["", "6 3", "2 2"];
  const [W, H, LEFT, RIGHT, TOP, BOTTOM] = [340, 210, 30, 8, 22, 30];
  const picked = new Map(); // "question: row" -> { name, runs, look }
  const colour = (look) => `var(--${COLOURS[look % COLOURS.length]})`;
  const dash = (look) => DASHES[Math.floor(look / COLOURS.length) % DASHES.length];
  const mean = (runs, measure) => {
    const series = runs.map((run) => data.runs[run][measure]);
    return Array.from({ length: Math.max(...series.map((values) => values.length)) }, (_, step) => {
      const found = series.map((values) => values[step]).filter((value) => value != null);
      return found.length ? found.reduce((a, b) => a + b) / found.length : null;
    });
  };

  const draw = (at) => {
    const rows = [...picked.values()];
    const steps = Math.max(2, ...rows.flatMap((row) => row.runs.map((run) => data.runs[run][0].length)));
    const x = (step) => LEFT + (step / (steps - 1)) * (W - LEFT - RIGHT), y = (value) => TOP + (1 - value / 100) * (H - TOP - BOTTOM);
    const text = (x, y, anchor, words) => `<text x="${x}" y="${y}" text-anchor="${anchor}">${words}</text>`;
    const line = (values, more) => {
      const at = (value, step) => value == null ? "" : `${values[step - 1] == null ? "M" : "L"}${x(step).toFixed(1)},${y(value).toFixed(1)}`;
      return `<path d="${values.map(at).join("")}" ${more}/>`;
    };
    panels.innerHTML = data.measures.map((name, measure) => {
      let svg = `<text y="12" class="head">${name}</text>` + text((W + LEFT) / 2, H - 2, "middle", "step");
      for (const value of [0, 25, 50, 75, 100]) {
        svg += `<line x1="${LEFT}" x2="${W - RIGHT}" y1="${y(value)}" y2="${y(value)}"/>`;
        if (value % 50 === 0) svg += text(LEFT - 5, y(value) + 4, "end", value / 100);
      }
      const every = Math.ceil(steps / 5);
      for (let step = every; step <= steps; step += every) svg += text(x(step - 1), H - BOTTOM + 15, "middle", step);
      for (const { runs, look } of rows) {
        const pen = `stroke="${colour(look)}" stroke-dasharray="${dash(look)}"`;
        const each = form.elements.each.checked && runs.length > 1 ? runs : [];
        svg += each.map((run) => line(data.runs[run][measure], `${pen} stroke-width="0.8" opacity="0.4"`)).join("");
        svg += line(mean(runs, measure), `${pen} stroke-width="2.2"`);
      }
      if (at != null) svg += `<line class="at" x1="${x(at)}" x2="${x(at)}" y1="${TOP}" y2="${H - BOTTOM}"/>`;
      return `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${name} by step">${svg}</svg>`;
    }).join("");
    const number = (row, measure) => { const value = mean(row.runs, measure)[at]; return value == null ? "–" : (value / 100).toFixed(2); };
    const numbers = (row) => data.measures.map((_, measure) => number(row, measure)).join(" / ");
    output.textContent = at == null ? "Point at a panel to read a step."
      : `Step ${at + 1}, ${data.measures.join(" / ")}: ${rows.map((row) => `${row.name} ${numbers(row)}`).join("; ")}`;
    panels.onpointermove = (event) => {
      const svg = event.target.closest("svg"), box = svg && svg.getBoundingClientRect();
      if (!svg) return;
      const place = ((event.clientX - box.left) / box.width) * W;
      const step = Math.min(steps - 1, Math.max(0, Math.round(((place - LEFT) / (W - LEFT - RIGHT)) * (steps - 1))));
      if (step !== at && rows.length) draw(step);
    };
  };

  const toggle = (key, name, runs, on) => {
    const used = [...picked.values()].map((row) => row.look);
    if (on) picked.set(key, { name, runs, look: [...used.keys(), used.length].find((look) => !used.includes(look)) });
    else picked.delete(key);
  };
  const show = () => {
    const [question, , rows] = data.questions[form.elements.question.value];
    const own = rows.map(([name, runs]) => [`${question}: ${name}`, name, runs]);
    const others = [...picked].filter(([key]) => !own.some(([mine]) => mine === key)).map(([key, row]) => [key, key, row.runs]);
    list.replaceChildren(...[...others, ...own].map(([key, name, runs]) => {
      const [label, box, swatch] = ["label", "input", "span"].map((tag) => document.createElement(tag));
      const paint = () => { const row = picked.get(key); swatch.style.borderTop = row ? `3px ${dash(row.look) ? "dashed" : "solid"} ${colour(row.look)}` : ""; };
      label.className = "check";
      swatch.className = "swatch";
      box.type = "checkbox";
      box.checked = picked.has(key);
      box.addEventListener("change", () => { toggle(key, name, runs, box.checked); paint(); draw(); });
      paint();
      label.append(box, swatch, name);
      return label;
    }));
    draw();
  };

  section.hidden = !data.questions.length;
  if (section.hidden) return;
  data.questions.forEach(([name, title], place) => form.elements.question.add(new Option(`${title} (${name})`, place)));
  const [question, , rows] = data.questions[0];
  for (const [name, runs] of rows.slice(0, 3)) toggle(`${question}: ${name}`, name, runs, true);
  form.elements.question.addEventListener("change", show);
  form.elements.each.addEventListener("change", () => draw());
  form.elements.none.addEventListener("click", () => { picked.clear(); show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
}
