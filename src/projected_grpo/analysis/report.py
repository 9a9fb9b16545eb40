"""`reports/paper.html`: one self-contained file with every question, its figures, runs and example rollouts."""

import base64
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup
from matplotlib.figure import Figure

from projected_grpo.analysis import aa, prose, style
from projected_grpo.analysis.answers import answer, uninformative
from projected_grpo.analysis.headline import FIRST_SCREEN, overview, short, totals
from projected_grpo.analysis.markdown import extra_grids
from projected_grpo.analysis.matrix import CAPTION, matrix
from projected_grpo.analysis.questions import read_questions
from projected_grpo.analysis.rollouts import FLAGS, examples
from projected_grpo.analysis.runs import Run, load_runs, read_parquet
from projected_grpo.analysis.table import Line, Table, make_table, published_delta
from projected_grpo.analysis.text import delta, interval, p_value, rate, seed_list
from projected_grpo.errors import UserError
from projected_grpo.files import write_text

# Pages that other stages write; each becomes a section where it is there: (title, in the menu, page, figures).
PAGES = {
    "probe": ("Distillation probe", "Probe", "probe/uat.md", "probe"),
    "R5": ("R5. Mixed-policy probe", "R5", "R5.md", "figures/R5"),
    "R6": ("R6. LoRA arm", "R6", "R6.md", "figures/R6"),
    "R7": ("R7. Contrastive basis", "R7", "R7.md", "figures/R7"),
    "self-taught": ("Self-taught evaluator", "Critic", "self_taught.md", "figures/self_taught"),
    "substrate": ("The small model", "Model", "substrate.md", "figures/substrate"),
    "diagonal": ("Loopholes and the grader", "Grader", "grader/diagonal.md", "figures/diagonal"),
}
CAPTIONS = {
    "trajectory": "Cosine of each sample's gradient with the basis, per replay step, vanilla and projected.",
    "distributions": "Cosine per sample by verdict: whether the rollout hacks and whether it is right.",
}
CARDS_SHOWN = 12


def _difference(line: Line, measure: str) -> dict:
    pair = line.against.get(measure)
    if pair is None:
        return {"delta": "–", "interval": "", "p": "–", "holm": "–", "detectable": "–", "shown": False}
    holm = line.holm[measure]
    return {
        "delta": delta(pair.delta),
        "interval": "" if pair.lo is None else interval(pair.lo, pair.hi),
        "p": p_value(pair.p),
        "holm": p_value(holm),
        "detectable": rate(pair.detectable),
        "shown": holm is not None and holm < 0.05,
    }


def _mean(line: Line, measure: str) -> dict:
    summary = line.summary.get(measure)
    if summary is None:
        return {"mean": "–", "std": ""}
    return {"mean": rate(summary.mean), "std": "" if summary.std is None else rate(summary.std)}


def _row(table: Table, line: Line, number: int) -> dict:
    paper = line.published
    return {
        "name": line.name,
        "id": f"{table.question.name}-row{number}",
        "baseline": line.row.baseline,
        **{measure: _mean(line, measure) for measure in ("hack", "solve", "exploit")},
        "d_hack": _difference(line, "hack"),
        "d_solve": _difference(line, "solve"),
        "published": bool(paper),
        "hack_published": rate(paper.get("hack")),
        "solve_published": rate(paper.get("solve")),
        "delta_published": delta(published_delta(table, line)),
        "n_published": int(paper["n"]) if paper else "",
        "seeds_published": paper["seeds"].replace(";", ", ") if paper else "",
        "n": len(line.seeds),
        "seeds": seed_list(line.seeds),
        "note": "uninformative fold" if uninformative(table, line) else "",
        "runs": [_brief(table.runs[cell]) for cell in line.cells],
    }


def _brief(run: Run) -> dict:
    values = run.measures
    return {"cell": run.cell.id, "seed": run.cell.seed} | {
        name: rate(values.get(name)) for name in ("hack", "solve", "exploit")
    }


def captions_of(folder: Path) -> dict[str, str]:
    """Return the captions of a folder's figures, by file name without suffix, in the order to show."""
    path = folder / "captions.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _figures(folder: Path, prefix: str) -> list[dict]:
    """Return the SVG files of a folder with their captions, ready for the page."""
    captions = captions_of(folder)
    names = [*captions, *sorted({svg.stem for svg in folder.glob("*.svg")} - set(captions))]
    drawn = []
    for name in names:
        svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
        caption = captions.get(name) or CAPTIONS.get(name) or name.replace("_", " ").replace("-", " ")
        drawn.append(
            {"name": name, "caption": caption, "svg": Markup(style.inline(svg, f"{prefix}-{name}", caption))}
        )
    return drawn


def _drawn(drawing: Figure | None, name: str, caption: str) -> list[dict]:
    """Return a figure made for this page alone, in the form of those read from files; none for None."""
    if drawing is None:
        return []
    return [
        {"name": name, "caption": caption, "svg": Markup(style.inline(style.to_svg(drawing), name, caption))}
    ]


def _question(table: Table, results: Path) -> dict:
    question = table.question
    extras = [
        {
            "caption": caption,
            "table": prose.table(header, rows, [False] + [True] * (len(header) - 1), caption),
        }
        for caption, header, rows in extra_grids(table)
    ]
    return {
        "name": question.name,
        "title": question.title,
        "asks": question.asks,
        "answer": prose.inline(answer(table)),
        "figures": [
            f for f in _figures(results / "figures" / question.name, question.name) if f["name"] != "summary"
        ],
        "rows": [_row(table, line, number) for number, line in enumerate(table.lines)],
        "published": any(line.published for line in table.lines),
        "extras": extras,
        "left_out": table.left_out,
    }


def _run(run: Run, results: Path, out: Path, software: list[dict]) -> dict:
    info = run.info
    versions = info.get("versions") or {}
    if versions not in software:
        software.append(versions)
    folder = results / "grpo" / run.cell.id
    log = info.get("log")
    return _brief(run) | {
        "model": run.cell.model,
        "basis": run.cell.basis or "none",
        "steps": len(run.steps),
        "code": info.get("code", "not recorded"),
        "sandbox": info.get("sandbox", "not recorded"),
        "device": f"{info.get('device', '?')}, {info.get('dtype', '?')}",
        "inputs": ", ".join(
            f"{name} {digest}" for name, digest in (info.get("inputs") or {}).items() if digest
        ),
        "software": software.index(versions) + 1,
        "settings": "\n".join(
            f"{key}: {json.dumps(value)}" for key, value in json.loads(run.cell.params()).items()
        ),
        "folder": os.path.relpath(folder, out.parent),
        "log": os.path.relpath(log, out.parent) if log else "",
        "log_name": log or "",
    }


def _pages(results: Path) -> list[dict]:
    pages = []
    for name, (title, menu, page, figures) in PAGES.items():
        path = results / page
        if path.exists():
            text = path.read_text(encoding="utf-8").split("\n", 1)
            body = text[1] if text[0].startswith("# ") and len(text) > 1 else "\n".join(text)
            drawn = _figures(results / figures, name)
            if name == "diagonal":
                drawn += _drawn(matrix(body), "diagonal-matrix", CAPTION)
            pages.append(
                {"name": name, "title": title, "menu": menu, "body": prose.render(body), "figures": drawn}
            )
    return pages


def _cards(results: Path) -> list[dict]:
    """Return example cards of the self-taught evaluator as name-value pairs; their text is a model's."""
    path = results / "self_taught" / "cards.parquet"
    if not path.exists():
        return []
    frame = read_parquet(path)
    if "kind" in frame:
        frame = frame.groupby("kind", sort=True).head(CARDS_SHOWN // 2)
    cards = json.loads(frame.head(CARDS_SHOWN).to_json(orient="records"))
    shown = [
        {key: _card_text(value) for key, value in card.items() if value not in (None, "")} for card in cards
    ]
    return [{"title": card.pop("kind", "card").replace("_", " "), "fields": card} for card in shown]


def _card_text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:1500]


def _self_check(question, results: Path) -> dict:
    check = aa.self_check(question, results)
    header, rows = aa.comparison_grid(check)
    power_header, power_rows = aa.power_grid(check)
    left = [False, False]
    return {
        "name": question.name,
        "title": question.title,
        "asks": question.asks,
        "answer": prose.inline(aa.answer(check)),
        "comparisons": prose.table(header, rows, left + [True] * (len(header) - 2), "Comparisons"),
        "power": prose.table(power_header, power_rows, left + [True] * (len(power_header) - 2), "Power"),
        "left_out": check.left_out,
        "cells": check.cells,
    }


def build(config: dict, out: Path) -> str:
    """Return the page as text; `out` is where it will lie (links to runs are relative to it).

    Raises UserError with the path where a file of a run is damaged. Missing runs and pages are left out and named.
    """
    results = Path(config["results"])
    questions = read_questions(config)
    cells = {cell.id: cell for question in questions.values() for cell in question.cells}
    loaded = load_runs(results, cells.values())
    tables = [make_table(q, results, loaded) for q in questions.values() if q.kind == "table"]
    by_name = {table.question.name: table for table in tables}
    software: list[dict] = []
    shown = [_question(table, results) for table in tables]
    top = [
        {"name": name, "title": by_name[name].question.title, "sentence": prose.inline(short(by_name[name]))}
        | {
            "figures": [
                f for f in _figures(results / "figures" / name, f"top-{name}") if f["name"] == "summary"
            ]
        }
        for name in FIRST_SCREEN
        if name in by_name
    ]
    texts = {name: _template(name) for name in ("paper.css", "paper.js")}
    digest = base64.b64encode(hashlib.sha256(texts["paper.js"].encode()).digest()).decode()
    examples_shown = examples(results, loaded[0].values())
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.lstrip_blocks = True
    return environment.from_string(_template("paper.html.j2")).render(
        css=Markup(texts["paper.css"]),
        js=Markup(texts["paper.js"]),
        js_digest=digest,
        model=config["model"]["name"],
        totals=totals(tables),
        top=top,
        overview=[overview(table) for table in tables],
        questions=shown,
        checks=[_self_check(q, results) for q in questions.values() if q.kind == "aa"],
        pages=_pages(results),
        cards=_cards(results),
        rollouts=_grouped(examples_shown),
        kinds=sorted({example.kind for example in examples_shown}),
        modes=sorted({example.mode for example in examples_shown}),
        flags=FLAGS,
        runs=[_run(run, results, out, software) for run in loaded[0].values()],
        left_out=loaded[1],
        software=software,
    )


def _grouped(found: list) -> dict[str, list]:
    groups: dict[str, list] = {}
    for example in found:
        groups.setdefault(example.arm, []).append(example)
    return groups


def _template(name: str) -> str:
    return (files("projected_grpo.analysis") / "templates" / name).read_text(encoding="utf-8")


LARGEST = 10_000_000  # bytes


def write_report(config: dict, out: Path) -> None:
    """Write the page. Raises UserError where it would exceed 10 MB."""
    page = build(config, Path(out))
    if len(page.encode()) > LARGEST:
        raise UserError(f"{out}: the page would have {len(page.encode()):,} bytes; allowed: {LARGEST:,}")
    write_text(out, page)
