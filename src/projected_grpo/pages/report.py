"""`reports/paper.html`: one self-contained file with every page, its figures, runs and example rollouts."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup

from projected_grpo.cells.cell import Question
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.runs import Run, load_runs
from projected_grpo.pages import graph, html
from projected_grpo.pages.blocks import Details, Figure, Grid, Page, Paragraph, grid, left_out, read_page
from projected_grpo.pages.curves import curves
from projected_grpo.pages.examples import BUDGET, Example, arm_of, examples
from projected_grpo.pages.headline import OVERVIEW
from projected_grpo.pages.text import rate

OPENS = "Q16"  # the figure and the sentences above everything, where it is there
FIRST_SCREEN = ("Q2", "Q10", "Q12")
CONCEPTS = Path(__file__).resolve().parents[3] / "docs" / "concepts.md"
LARGEST = 10_000_000  # bytes
FILLED = 0.97  # share of them that the examples may fill up
FULL = 0.4  # a difference of this size or more has the full colour in the map
RATES = [name for name, measure in MEASURES.items() if measure.group in ("main", "deployed")]


def words(text: str) -> list[tuple[str, str]]:
    """Return the terms of `docs/concepts.md` with what they mean."""
    return re.findall(r"^- \*\*(.+)\*\*: (.+)$", text, re.M)


def sources(page: Page, runs: dict[str, Run], results: Path, out: Path) -> list[dict]:
    """Return what stands behind a page's rows: tables of runs, and files linked relative to `out`."""
    ids = html.source_ids(page)
    columns = {"run": lambda run: f"`{run.cell.id}`", "seed": lambda run: run.cell.seed}
    for name in RATES:
        columns[MEASURES[name].head] = lambda run, n=name: rate(run.measures.get(n))
    found = []
    for source in page.sources:
        own = [runs[cell] for cell in source.cells if cell in runs]
        links = {run.cell.id: f"run-{run.cell.id}" for run in own}
        shown = html.Renderer(page.id, results, links).render((grid(own, columns),)) if own else ""
        paths = [(path, os.path.relpath(results / path, out.parent)) for path in source.files]
        found.append({"name": source.name, "id": ids[source.name], "runs": shown, "files": paths})
    return found


def is_legend(block: object) -> bool:
    """Whether a block says how to read tables of its kind; the report shows each of these once."""
    return isinstance(block, Paragraph) and block.kind == "legend"


def legends(pages: Iterable[Page]) -> list[str]:
    """Return what the pages say of how to read them, each text once."""
    return list(dict.fromkeys(block.text for page in pages for block in page.blocks if is_legend(block)))


def section(page: Page, runs: dict[str, Run], results: Path, out: Path) -> dict:
    """Return a page for the template."""
    renderer = html.of_page(page, results)
    number, _, rest = page.title.partition(". ")
    return {
        "id": page.id,
        "number": number if rest else "",
        "title": rest or page.title,
        "menu": page.menu,
        "asks": renderer.inline(page.asks),
        "answer": renderer.render(page.answer),
        "legend": any(map(is_legend, page.blocks)),
        "body": renderer.render(
            (*left_out(page.left_out), *(block for block in page.blocks if not is_legend(block)))
        ),
        "sources": sources(page, runs, results, out),
    }


def top(page: Page, results: Path) -> dict:
    """Return what the first screen says of a page."""
    renderer = html.of_page(page, results, "top-")
    drawn = [block for block in page.top if isinstance(block, Figure)]
    said = [renderer.inline(block.text) for block in page.top if block not in drawn]
    return {
        "id": page.id,
        "title": page.title.partition(". ")[2] or page.title,
        "sentence": Markup(" ").join(said),
        "figures": renderer.render(tuple(drawn)),
    }


def overview(pages: Iterable[Page], results: Path) -> Markup:
    """Return the table of all questions: links to its section and to the runs behind its numbers."""
    rows, links = [], {}
    for page in pages:
        if page.overview:
            ids = html.source_ids(page)
            links |= {page.name: page.id, page.overview[0].text: ids.get(page.overview[1].text, page.id)}
            rows.append(page.overview)
    return html.Renderer("overview", results, links).render((Grid(OVERVIEW, tuple(rows), texts=2),))


def squares(pages: Iterable[Page]) -> dict:
    """Return the map of all questions and arms: the arms as columns; per question its squares by arm."""
    drawn = [page for page in pages if page.squares]
    arms = list(dict.fromkeys(square.arm for page in drawn for square in page.squares))
    rows = []
    for page in drawn:
        ids = html.source_ids(page)
        number, _, rest = page.title.partition(". ")
        cells = {arm: [(s, ids.get(s.row, page.id)) for s in page.squares if s.arm == arm] for arm in arms}
        rows.append({"id": page.id, "number": number, "title": rest, "cells": cells})
    return {"arms": arms, "rows": rows, "full": FULL}


def by_arm(runs: Iterable[Run], results: Path, out: Path, software: list[dict]) -> dict[str, list[dict]]:
    """Return by arm its kinds: runs that are alike but for seed and replication, what they share said once.

    software: of the runs so far, by number; new ones are added. Folders and logs are relative to `out`.
    """
    found: dict[str, dict[tuple, dict]] = {}
    for run in sorted(runs, key=lambda run: (arm_of(run.cell.id), run.cell.seed)):
        info, settings = run.info, run.info["settings"]
        versions = info.get("versions") or {}
        if versions not in software:
            software.append(versions)
        shared = {
            "basis": run.cell.basis or "none",
            "steps": run.cell.steps,
            "code": info.get("code", "not recorded"),
            "grader's sandbox": info.get("sandbox", "not recorded"),
            "device": f"{info.get('device', '?')}, {info.get('dtype', '?')}",
        }
        text = "\n".join(f"{key}: {json.dumps(settings[key])}" for key in sorted({*settings} - {"seed"}))
        number = software.index(versions) + 1
        kinds = found.setdefault(arm_of(run.cell.id), {})
        kind = kinds.setdefault(
            (*shared.values(), text, number), {"facts": shared, "settings": text, "runs": []}
        )
        log, inputs = info.get("log"), info.get("inputs") or {}
        kind |= {"software": number}
        kind["runs"].append(
            {
                "cell": run.cell.id,
                "model": run.cell.model,
                "rates": [rate(run.measures.get(name)) for name in RATES],
                "inputs": ", ".join(f"{name} {digest}" for name, digest in inputs.items() if digest),
                "folder": os.path.relpath(results / "grpo" / run.cell.id, out.parent),
                "log": os.path.relpath(log, out.parent) if log else "",
            }
        )
    return {arm: list(kinds.values()) for arm, kinds in found.items()}


def build(results: Path, model: str, questions: dict[str, Question], names: Iterable[str], out: Path) -> str:
    """Return the report as text; `out` is where it will lie (links to runs are relative to it).

    names: the pages, in order; one that is not there is left out. Raises UserError with the path where a file of a
    run is damaged; missing runs are named.
    """
    cells = {cell.id: cell for question in questions.values() for cell in question.cells}
    runs, missing = load_runs(results, cells.values())
    pages = {
        name: read_page(results / f"{name}.json") for name in names if (results / f"{name}.json").exists()
    }
    software: list[dict] = []
    style = Markup(_template("paper.css"))
    script = Markup('"use strict";\n' + _template("curves.js") + _template("paper.js"))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.lstrip_blocks = True
    template = environment.from_string(_template("paper.html.j2"))
    plain = html.Renderer("report", results).inline  # of texts that stand outside every page
    common = dict(
        css=style,
        js=script,
        js_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        model=model,
        banner=next((page.banner for page in pages.values() if page.banner), ""),
        alpha=stats.ALPHA,
        seeds=len({run.cell.seed for run in runs.values()}),
        steps=sum(run.cell.steps for run in runs.values()),
        words=[(term, plain(says)) for term, says in words(CONCEPTS.read_text(encoding="utf-8"))],
        opens=top(pages[OPENS], results) if OPENS in pages else None,
        top=[top(pages[name], results) for name in FIRST_SCREEN if name in pages],
        overview=overview(pages.values(), results),
        legends=[plain(text) for text in legends(pages.values())],
        squares=squares(pages.values()),
        curves=Markup(curves(questions.values(), runs)),
        dag=graph.draw(graph.made(results)),
        pages=[section(page, runs, results, out) for page in pages.values()],
        runs=by_arm(runs.values(), results, out, software),
        number=len(runs),
        rates=[MEASURES[name].head for name in RATES],
        left_out=len(missing),
        gone=html.Renderer("runs", results, {}).render(
            (Details(f"{len(missing)} runs left out", left_out(missing.items())),) if missing else ()
        ),
        software=software,
    )

    def rendered(shown: list[Example]) -> str:
        arms: dict[str, list[Example]] = {}
        for example in shown:
            arms.setdefault(example.arm, []).append(example)
        kinds, modes, steps = (sorted({getattr(e, key) for e in shown}) for key in ("kind", "mode", "step"))
        return template.render(**common, rollouts=arms, kinds=kinds, modes=modes, numbers=steps)

    room = int(FILLED * LARGEST) - len(rendered([]).encode())
    return rendered(examples(runs.values(), min(BUDGET, room)))


def _template(name: str) -> str:
    return (files("projected_grpo.pages") / "templates" / name).read_text(encoding="utf-8")


def write_report(page: str, out: Path) -> None:
    """Write the report. Raises UserError where it would exceed 10 MB."""
    if len(page.encode()) > LARGEST:
        raise UserError(f"{out}: the page would have {len(page.encode()):,} bytes; allowed: {LARGEST:,}")
    write_text(out, page)
