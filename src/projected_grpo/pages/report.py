"""`reports/paper.html`: one self-contained file with every question, its figures, runs and example rollouts."""

import base64
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from projected_grpo.cells.config import Config
from projected_grpo.errors import UserError
from projected_grpo.files import read_json, write_text
from projected_grpo.measures.rollouts import examples
from projected_grpo.measures.runs import Run, load_runs
from projected_grpo.pages import prose, style
from projected_grpo.pages.headline import FIRST_SCREEN, short, totals
from projected_grpo.pages.questions import read_questions
from projected_grpo.pages.report_tables import (
    brief,
    overview_row,
    probe_sources,
    question_section,
    row_ids,
    self_check_section,
)
from projected_grpo.pages.table import Table, make_table
from projected_grpo.parquet import read_parquet


class Page(NamedTuple):
    """A page that another stage writes; it becomes a section where it is there. Paths are below `results`."""

    title: str
    menu: str
    page: str
    figures: str
    made_from: tuple[str, ...] = ()  # patterns of the files behind its numbers


PAGES = {
    "probe": Page(
        "Distillation probe",
        "Probe",
        "probe/uat.md",
        "probe",
        ("probe/*_seed*", "probe/*/*/vanilla", "logs/probe"),
    ),
    "R5": Page("R5. Mixed-policy probe", "R5", "R5.md", "figures/R5", ("R5.parquet",)),
    "R6": Page("R6. LoRA arm", "R6", "R6.md", "figures/R6", ("R6.parquet", "probe/drift/*.json")),
    "R7": Page("R7. Contrastive basis", "R7", "R7.md", "figures/R7", ("R7.parquet",)),
    "self-taught": Page(
        "Self-taught evaluator",
        "Critic",
        "self_taught.md",
        "figures/self_taught",
        ("self_taught.parquet", "self_taught/*/evaluations.parquet", "self_taught/*/run.json"),
    ),
    "substrate": Page(
        "The small model",
        "Model",
        "substrate.md",
        "figures/substrate",
        ("models/*/rates.json", "logs/substrate_rates"),
    ),
    "diagonal": Page(
        "Loopholes and the grader",
        "Grader",
        "grader/diagonal.md",
        "figures/diagonal",
        ("grader/*", "logs/grader"),
    ),
}
CAPTIONS = {
    "trajectory": "Cosine of each sample's gradient with the basis, per replay step, vanilla and projected.",
    "distributions": "Cosine per sample by verdict: whether the rollout hacks and whether it is right.",
}
CARDS_SHOWN = 12


def captions_of(folder: Path) -> dict[str, str]:
    """Return the captions of a folder's figures, by file name without suffix, in the order to show."""
    path = folder / "captions.json"
    return read_json(path) if path.exists() else {}


def figure_names(folder: Path, first_screen: bool = False) -> list[str]:
    """Return a folder's figures in the order to show: those of a section, or the small one of the first screen."""
    captions = captions_of(folder)
    names = [*captions, *sorted({svg.stem for svg in folder.glob("*.svg")} - set(captions))]
    return [name for name in names if (name == "summary") == first_screen]


def _figures(folder: Path, prefix: str, first_screen: bool = False) -> list[dict]:
    """Return SVG files of a folder (see `figure_names`) with their captions, ready for the page."""
    captions = captions_of(folder)
    drawn = []
    for name in figure_names(folder, first_screen):
        svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
        caption = captions.get(name) or CAPTIONS.get(name) or name.replace("_", " ").replace("-", " ")
        drawn.append(
            {"name": name, "caption": caption, "svg": Markup(style.inline(svg, f"{prefix}-{name}", caption))}
        )
    return drawn


def _run(run: Run, results: Path, out: Path, software: list[dict]) -> dict:
    info = run.info
    versions = info.get("versions") or {}
    if versions not in software:
        software.append(versions)
    folder = results / "grpo" / run.cell.id
    log = info.get("log")
    return brief(run) | {
        "model": run.cell.model,
        "basis": run.cell.basis or "none",
        "steps": run.cell.steps,
        "code": info.get("code", "not recorded"),
        "sandbox": info.get("sandbox", "not recorded"),
        "device": f"{info.get('device', '?')}, {info.get('dtype', '?')}",
        "inputs": ", ".join(
            f"{name} {digest}" for name, digest in (info.get("inputs") or {}).items() if digest
        ),
        "software": software.index(versions) + 1,
        "settings": "\n".join(
            f"{key}: {json.dumps(value)}" for key, value in sorted(info["settings"].items())
        ),
        "folder": os.path.relpath(folder, out.parent),
        "log": os.path.relpath(log, out.parent) if log else "",
        "log_name": log or "",
    }


def _pages(results: Path, probes: dict[str, Table], config: Config, out: Path) -> list[dict]:
    """Return the pages of other stages that are there; those of R questions with the runs behind their rows."""
    pages = []
    for name, (title, menu, page, figures, made_from) in PAGES.items():
        path = results / page
        if path.exists():
            text = path.read_text(encoding="utf-8").split("\n", 1)
            body = text[1] if text[0].startswith("# ") and len(text) > 1 else "\n".join(text)
            sources, targets = (
                probe_sources(probes[name], config, results, out) if name in probes else ([], {})
            )
            id = f"{name}-files"
            found = sorted(file for pattern in made_from for file in results.glob(pattern))
            files = [
                (file.relative_to(results).as_posix(), os.path.relpath(file, out.parent)) for file in found
            ]
            sources.append({"name": "Files behind this page", "id": id, "runs": [], "files": files})
            pages.append(
                {
                    "name": name,
                    "title": title,
                    "menu": menu,
                    "body": prose.render(body, targets=targets, default=id),
                    "figures": _figures(results / figures, name),
                    "sources": sources,
                }
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


def build(config: Config, out: Path) -> str:
    """Return the page as text; `out` is where it will lie (links to runs are relative to it).

    Raises UserError with the path where a file of a run is damaged. Missing runs and pages are left out and named.
    """
    results = Path(config.results)
    questions = read_questions(config)
    cells = {cell.id: cell for question in questions.values() for cell in question.cells}
    loaded = load_runs(results, cells.values())
    made = [make_table(q, results, loaded) for q in questions.values() if q.kind != "aa"]
    tables = [table for table in made if table.question.kind == "table"]
    probes = {table.question.name: table for table in made if table.question.kind == "probe"}
    by_name = {table.question.name: table for table in tables}
    software: list[dict] = []
    shown = []
    for table in tables:
        name = table.question.name
        shown.append(question_section(table, _figures(results / "figures" / name, name)))
    top = [
        {"name": name, "title": by_name[name].question.title}
        | {"sentence": prose.inline(short(by_name[name]), row_ids(by_name[name]))}
        | {"figures": _figures(results / "figures" / name, f"top-{name}", first_screen=True)}
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
        model=config.model.name,
        totals=totals(tables),
        top=top,
        overview=[overview_row(table) for table in tables],
        questions=shown,
        checks=[self_check_section(q, results, loaded) for q in questions.values() if q.kind == "aa"],
        pages=_pages(results, probes, config, out),
        cards=_cards(results),
        rollouts=_grouped(examples_shown),
        kinds=sorted({example.kind for example in examples_shown}),
        modes=sorted({example.mode for example in examples_shown}),
        steps=sorted({example.step for example in examples_shown}),
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
    return (files("projected_grpo.pages") / "templates" / name).read_text(encoding="utf-8")


LARGEST = 10_000_000  # bytes


def write_report(config: Config, out: Path) -> None:
    """Write the page. Raises UserError where it would exceed 10 MB."""
    page = build(config, Path(out))
    if len(page.encode()) > LARGEST:
        raise UserError(f"{out}: the page would have {len(page.encode()):,} bytes; allowed: {LARGEST:,}")
    write_text(out, page)
