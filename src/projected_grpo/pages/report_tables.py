"""Question tables as the report shows them: the measure a question is about first, every number linked to its runs."""

import os
from pathlib import Path

from markupsafe import Markup

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.measures.contrasts import is_shown, uninformative
from projected_grpo.measures.runs import Loaded, Run
from projected_grpo.pages import prose
from projected_grpo.pages.answers import paragraphs
from projected_grpo.pages.headline import overview
from projected_grpo.pages.markdown import extra_grids
from projected_grpo.pages.table import Line, Table, published_delta
from projected_grpo.pages.text import delta, interval, p_value, rate, seed_list
from projected_grpo.verdicts import aa
from projected_grpo.verdicts.twins import replay_folders, twins

HEADS = {"hack_ablated": "hack, ablated", "hack_heldout": "hack, held out", "solve_ablated": "solve, ablated"}


def row_ids(table: Table) -> dict[str, str]:
    """Return by a row's name the id of the element that lists its runs."""
    return {line.name: f"{table.question.name}-row{number}" for number, line in enumerate(table.lines)}


def brief(run: Run) -> dict:
    """Return cell, seed and rates of a run as text."""
    rates = {name: rate(run.measures.get(name)) for name in ("hack", "solve", "exploit")}
    return {"cell": run.cell.id, "seed": run.cell.seed, **rates}


def _mean(measure: str):
    def cell(line: Line) -> tuple[str, str]:
        summary = line.summary.get(measure)
        if summary is None:
            return "–", ""
        return rate(summary.mean), "" if summary.std is None else rate(summary.std)

    return cell


def _delta(measure: str):
    def cell(line: Line) -> tuple[str, str]:
        pair = line.against.get(measure)
        if pair is None:
            return "–", ""
        return delta(pair.delta), "" if pair.lo is None else interval(pair.lo, pair.hi)

    return cell


def _holm(measure: str):
    def cell(line: Line) -> tuple[str, str]:
        pair = line.against.get(measure)
        return ("–", "") if pair is None else (p_value(line.holm[measure]), f"p {p_value(pair.p)}")

    return cell


def _detectable(measure: str):
    def cell(line: Line) -> tuple[str, str]:
        pair = line.against.get(measure)
        return "–" if pair is None else rate(pair.detectable), ""

    return cell


def columns(table: Table) -> list[tuple]:
    """Return (head, whether it is the question's own difference, line -> (number, what stands below it))."""
    found = []
    for measure in dict.fromkeys((table.primary, "hack")):
        head, own = HEADS.get(measure, measure), measure == table.primary
        found += [(head, False, _mean(measure)), (f"Δ {head}", own, _delta(measure))]
        found.append(("Holm p", False, _holm(measure)))
        if own:
            found.append(("found at 80%", False, _detectable(measure)))
    for measure in ("solve_ablated", "solve"):
        if measure != table.primary and (measure == "solve" or table.has(measure)):
            head = HEADS.get(measure, measure)
            found += [(head, False, _mean(measure)), (f"Δ {head}", False, _delta(measure))]
    return [*found, *((name, False, _mean(name)) for name in ("exploit", "compile"))]


def _row(table: Table, line: Line, id: str) -> dict:
    paper = line.published
    return source(table, line, id) | {
        "baseline": line.row.baseline,
        "cells": [
            {"text": text, "small": small, "strong": own}
            for _, own, cell in columns(table)
            for text, small in [cell(line)]
        ],
        "shown": is_shown(table, line) and not uninformative(table, line),
        "published": bool(paper),
        "hack_published": rate(paper.get("hack")),
        "solve_published": rate(paper.get("solve")),
        "delta_published": delta(published_delta(table, line)),
        "n_published": int(paper["n"]) if paper else "",
        "seeds_published": paper["seeds"].replace(";", ", ") if paper else "",
        "n": len(line.seeds),
        "seeds": seed_list(line.seeds),
        "note": "uninformative fold" if uninformative(table, line) else "",
    }


def source(table: Table, line: Line, id: str) -> dict:
    """Return what stands behind a row: its runs."""
    return {
        "name": line.name,
        "id": id,
        "runs": [brief(table.runs[cell]) for cell in line.cells],
        "files": [],
    }


def question_section(table: Table, figures: list[dict]) -> dict:
    """Return a question for the template."""
    question, ids = table.question, row_ids(table)
    extras = [
        {
            "caption": caption,
            "table": prose.table(header, rows, [False] + [True] * (len(header) - 1), caption, ids),
        }
        for caption, header, rows in extra_grids(table)
    ]
    return {
        "name": question.name,
        "title": question.title,
        "asks": question.asks,
        "answer": [prose.inline(part, ids) for part in paragraphs(table)],
        "figures": figures,
        "heads": [head for head, _, _ in columns(table)],
        "rows": [_row(table, line, ids[line.name]) for line in table.lines],
        "published": any(line.published for line in table.lines),
        "extras": extras,
        "left_out": table.left_out,
    }


def overview_row(table: Table) -> dict:
    """Return a question's line of the overview, its difference linked to the runs of that row."""
    row = overview(table)
    if row["largest"]:
        link = Markup('<a class="n" href="#{}">{}</a>')
        row["delta"] = link.format(row_ids(table)[row["largest"]], row["delta"])
    return row


def probe_sources(
    table: Table, config: Config, results: Path, out: Path
) -> tuple[list[dict], dict[str, str]]:
    """Return what stands behind the tables of an R question, and the ids of it by first cell of a table's row.

    Behind its own rows stand runs; behind a basis, or two, the files measured on them (linked relative to `out`).
    """
    question, ids = table.question, row_ids(table)
    sources = [source(table, line, ids[line.name]) for line in table.lines]
    measured: dict[str, list[str]] = {}
    for knob in ("adapter", "loss"):
        for basis, by_seed in replay_folders(question, config, knob).items():
            measured[basis] = list(by_seed.values())
    for pair in twins(question, config, "loss"):
        both = zip(pair.reference.cells, pair.other.cells, strict=True)
        name = f"{pair.reference.setting.basis} and {pair.other.setting.basis}"
        measured[name] = list(dict.fromkeys(f"{a.model}/{a.basis}-vs-{b.basis}.json" for a, b in both))
    for number, (name, paths) in enumerate(measured.items()):
        ids[name] = f"{question.name}-measured{number}"
        files = [(path, os.path.relpath(results / "probe" / path, out.parent)) for path in paths]
        sources.append({"name": name, "id": ids[name], "runs": [], "files": files})
    return sources, ids


def self_check_section(question: Question, results: Path, loaded: Loaded) -> dict:
    """Return the A/A check for the template."""
    check = aa.self_check(question, results, loaded)
    ids = {setting: f"{question.name}-setting{number}" for number, setting in enumerate(check.cells)}
    header, rows = aa.comparison_grid(check)
    power_header, power_rows = aa.power_grid(check)
    left = [False, False]
    return {
        "name": question.name,
        "title": question.title,
        "asks": question.asks,
        "answer": prose.inline(aa.answer(check)),
        "comparisons": prose.table(header, rows, left + [True] * (len(header) - 2), "Comparisons", ids),
        "power": prose.table(power_header, power_rows, left + [True] * (len(power_header) - 2), "Power", ids),
        "left_out": check.left_out,
        "cells": [
            {"setting": setting, "id": ids[setting], "runs": runs} for setting, runs in check.cells.items()
        ],
    }
