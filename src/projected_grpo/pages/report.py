"""`reports/paper.html`: one self-contained file with every page, its figures, runs and example rollouts."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from markdown_it import MarkdownIt
from markupsafe import Markup

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.runs import Run, load_runs
from projected_grpo.pages.context import banner
from projected_grpo.pages.examples import BUDGET, arm_of, examples
from projected_grpo.pages.page import environment
from projected_grpo.pages.words import short

OPENS = ("Q23", "Q16")  # the first of these that is there opens the report
CONCEPTS = Path(__file__).resolve().parents[3] / "docs" / "concepts.md"
LARGEST = 10_000_000  # bytes
FILLED = 0.97  # share of them that the examples may fill up
DRAWN = ("hack", "solve", "honest")  # curves
RATES = [name for name, measure in MEASURES.items() if measure.group in ("main", "deployed")]


def inline(text: str) -> Markup:
    """Return a line of Markdown as HTML; HTML in it is text."""
    return Markup(MarkdownIt("commonmark", {"html": False}).renderInline(text))


def to_html(text: str, folder: Path) -> tuple[str, Markup]:
    """Return a page's title and the rest of its Markdown as HTML, its figures inline.

    folder: what addresses of figures are relative to. What models wrote stands escaped in the Markdown already.
    """
    title, _, rest = text.partition("\n")
    # Blocks fold up; within a line, as in the name of a row, it is text.
    reader = MarkdownIt("commonmark", {"html": True}).enable("table").disable("html_inline")

    def image(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        path = folder / token.attrs["src"]
        try:
            drawn = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); a page shows it") from error
        source = f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"
        return str(Markup('<img class="figure" alt="{}" src="{}">').format(token.content, source))

    reader.add_render_rule("image", image)
    html = reader.render(rest).replace("<table>", '<div class="scroll" tabindex="0"><table>')
    return title.removeprefix("# "), Markup(html.replace("</table>", "</table></div>"))


def section(name: str, results: Path, is_question: bool) -> dict:
    """Return a page for the template; the answer of a question stands below its title, its first sentence in bold."""
    path = results / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    title, body = to_html(text, path.parent)
    found = {"id": name.replace("/", "-"), "name": name, "title": title, "body": body, "answer": []}
    if is_question and (said := re.search(r"^\*\*(.+?)\*\* ?(.*)$", text, re.M)):
        answer = [inline(part) for part in said.groups() if part]
        found |= {"title": title.partition(". ")[2], "answer": answer}
    return found


def by_arm(runs: Iterable[Run], results: Path, out: Path) -> dict[str, list[dict]]:
    """Return by arm its kinds: runs that are alike but for seed and replication, what they share said once.

    Folders and logs are relative to `out`.
    """
    found: dict[str, dict[tuple, dict]] = {}
    for run in sorted(runs, key=lambda run: (arm_of(run.cell.id), run.cell.seed)):
        cell, info, settings = run.cell, run.info, run.info["settings"]
        versions = (info.get("versions") or {}).items()
        facts = {
            "basis": cell.basis or "none",
            "steps": cell.steps,
            "code": info.get("code", "not recorded"),
            "grader's sandbox": info.get("sandbox", "not recorded"),
            "device": f"{info.get('device', '?')}, {info.get('dtype', '?')}",
            "software": ", ".join(f"{name} {version}" for name, version in versions) or "not recorded",
        }
        text = "\n".join(f"{key}: {json.dumps(settings[key])}" for key in sorted({*settings} - {"seed"}))
        kinds = found.setdefault(arm_of(cell.id), {})
        kind = kinds.setdefault((*facts.values(), text), {"facts": facts, "settings": text, "runs": []})
        log, inputs = info.get("log"), info.get("inputs") or {}
        own = {"cell": cell.id, "model": cell.model, "rates": [run.measures.get(name) for name in RATES]}
        own["inputs"] = ", ".join(f"{name} {digest}" for name, digest in inputs.items() if digest)
        own["folder"] = os.path.relpath(results / "grpo" / cell.id, out.parent)
        own["log"] = os.path.relpath(log, out.parent) if log else ""
        kind["runs"].append(own)
    return {arm: list(kinds.values()) for arm, kinds in found.items()}


def _percent(values: np.ndarray | None) -> list[int | None]:
    """Return rates in whole percent, null where a step has none; nothing where a run has no such rate."""
    if values is None:
        return []
    return [None if np.isnan(value) else round(100 * float(value)) for value in values]


def curves(questions: Iterable[Question], runs: Mapping[str, Run]) -> str:
    """Return the curves as JSON that may stand inside a script element.

    `measures`: their names; `runs`: per run a list per measure of its percent by step, from step 1 on;
    `questions`: name, title, then its rows as [name, places in `runs`].
    """
    places: dict[str, int] = {}
    tables = []
    for question in questions:
        ids = {row.name: [cell.id for cell in row.cells if cell.id in runs] for row in question.rows}
        rows = [
            [name, [places.setdefault(cell, len(places)) for cell in own]] for name, own in ids.items() if own
        ]
        if rows:
            tables.append([question.name, question.title, rows])
    data = {
        "measures": [MEASURES[name].axis for name in DRAWN],
        "runs": [
            [_percent(of(runs[cell])) for name in DRAWN if (of := MEASURES[name].by_step)] for cell in places
        ],
        "questions": tables,
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def build(config: Config, questions: Mapping[str, Question], names: Iterable[str], out: Path) -> str:
    """Return the report as text; `out` is where it will lie (links to runs are relative to it).

    names: the pages, in order; one that is not there is left out. Raises UserError with the path where a file of a
    run is damaged; missing runs are named.
    """
    results = Path(config.results)
    cells = {cell.id: cell for question in questions.values() for cell in question.cells}
    runs, missing = load_runs(results, cells.values())
    there = [name for name in names if (results / f"{name}.md").exists()]
    opening = next((name for name in OPENS if name in there), None)
    asked = [name for name, question in questions.items() if question.kind != "aa"]
    pages = [
        section(name, results, name in asked) for name in sorted(there, key=lambda name: name != opening)
    ]
    script = Markup('"use strict";\n' + _template("curves.js") + _template("paper.js"))
    template = environment().overlay(autoescape=True).get_template("paper.html.j2")
    glossary = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", CONCEPTS.read_text(encoding="utf-8"), re.M)
    common = dict(
        css=Markup(_template("paper.css")),
        js=script,
        js_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        model=config.model.name,
        banner=banner(config),
        seeds=len({run.cell.seed for run in runs.values()}),
        steps=sum(run.cell.steps for run in runs.values()),
        words=[(term, inline(says)) for term, says in glossary],
        curves=Markup(curves(questions.values(), runs)),
        pages=pages,
        runs=by_arm(runs.values(), results, out),
        number=len(runs),
        rates=[MEASURES[name].head for name in RATES],
        left_out=short(missing),
    )
    room = int(FILLED * LARGEST) - len(template.render(**common, rollouts=[]).encode())
    return template.render(**common, rollouts=examples(runs.values(), min(BUDGET, room)))


def _template(name: str) -> str:
    return (files("projected_grpo.pages") / "templates" / name).read_text(encoding="utf-8")


def write_report(page: str, out: Path) -> None:
    """Write the report. Raises UserError where it would exceed 10 MB."""
    if len(page.encode()) > LARGEST:
        raise UserError(f"{out}: the page would have {len(page.encode()):,} bytes; allowed: {LARGEST:,}")
    write_text(out, page)
