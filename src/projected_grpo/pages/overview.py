"""`docs/results.md`, which lists all questions with their answers, and the README's first screen."""

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from projected_grpo.cells.cell import TEACHERS, Row
from projected_grpo.cells.config import Config, Outcome
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures import estimates, numbers, plane
from projected_grpo.measures.panels import DEPLOYED
from projected_grpo.pages.answer import NO_LINE, Estimated, answer, is_known, n_of_answer, said
from projected_grpo.pages.edition import DEFAULT, Place, estimated, layered
from projected_grpo.pages.page import render
from projected_grpo.strict_yaml import read_mapping

OPEN, CLOSE = "<!-- written by make publish -->", "<!-- /written by make publish -->"
README = Path("docs/readme.yaml")  # which figure and which answers the README shows


def index(config: Config, made: Mapping[str, Estimated], outcomes: pd.DataFrame, place: Place) -> str:
    """Return the primary outcomes, then all questions, each with its first sentence, then the pages of other stages.

    A question whose sentences need numbers that are not known by run has none: its page stands as it was published.
    """
    rows = []
    for name, found in made.items():
        row = {"name": name, "made": found, "primary": found.frame["primary"].any(), "n": n_of_answer(found)}
        rows.append(row | {"answer": answer(found)[0] if is_known(found) else ""})
    rows.sort(
        key=lambda row: (not row["primary"], row["name"][0] != "Q", int(re.sub(r"\D", "", row["name"]) or 0))
    )
    entry = read_mapping(README)["elsewhere"].get(place.name, {})
    titles = {path.stem: path.read_text("utf-8").split("\n", 1)[0][2:] for path in place.folder.glob("*.md")}
    return render(
        "results.md.j2",
        rows=rows,
        outcomes=named_outcomes(config, outcomes, made),
        named=config.primary.named,
        named_seeds=config.primary.seeds,
        fresh=place.name or not outcomes["named"].str.startswith("afterwards").all(),
        place=place,
        texts=(place.folder / DEPLOYED).exists(),
        called=entry.get("called", place.name),
        first=entry.get("beside"),
        both=both_changes(made, place.docs) if "beside" in entry else [],
        others={name: title for name, title in sorted(titles.items()) if name not in made},
        teachers=TEACHERS,
    )


def both_changes(second: Mapping[str, Estimated], docs: Path) -> list[tuple[Mapping, Mapping]]:
    """Return published changes of the default config's rows beside those of the same rows of another, claims first.

    They are changes in a question's own measure; single placebos are left to its page.
    """
    store = Place(docs).folder / "runs.csv"
    if not store.exists():
        return []
    both, (_, first) = [], estimated(layered(DEFAULT), numbers.read(store), second)
    for name in first:
        own = second[name].own
        about, placebos = own.about.name, {row.name for row in own.rows.values() if row.population}
        for line in second[name].lines:
            asked = (line["contrast"], line["measure"]) == (estimates.BASELINE, about)
            if asked and line["n"] and line["row"] not in placebos:
                there = first[name].line(line["row"], estimates.BASELINE, about)
                both += [(there, line)] if there and there["n"] else []
    return sorted(both, key=lambda pair: (pair[1]["question"], pair[1]["p_holm"] is None))


def named_outcomes(
    config: Config, found: pd.DataFrame, made: Mapping[str, Estimated]
) -> list[tuple[Outcome, Mapping, Row | None]]:
    """Return each outcome that the config names, with its line of all that are corrected together, and its row."""
    lines = {(e["question"], e["row"], e["measure"], e["contrast"]): e for e in found.to_dict("records")}
    named = []
    for one in config.primary.outcomes:
        keys = [(one.question, one.row, one.measure, own) for own in (one.contrast, estimates.POOLED)]
        line = next((lines[key] for key in keys if key in lines), {"n": 0})
        rows = made[one.question].own.rows if one.question in made else {}
        named.append((one, line, rows.get(one.row or "")))
    return named


def write_readme(file: Path, made: Mapping[str, Estimated], docs: Path) -> None:
    """Fill the README between its two marks; it stays as it is where the figure's question has no number.

    Raises UserError where it has not both marks, in order.
    """
    asked = read_mapping(README)
    shown = asked["figure"]
    if shown not in made:
        return

    def quoted(one: str) -> tuple[str, str, Mapping]:
        name, _, number = one.partition(".")
        if name not in made:
            return name, "", NO_LINE
        says = made[name].own.question.says[int(number or 1) - 1]
        return name, said(made[name], int(number or 0)), made[name].told(says)

    text = render(
        "readme.md.j2",
        docs=docs,
        q=made[shown].own.question,
        figure=f"{shown}-{made[shown].own.question.figure.kind}",
        seeds=sorted({seed for part in plane.panels(made[shown].own) for seed in part.seeds}),
        called={name: one["called"] for name, one in asked["elsewhere"].items()},
        findings=map(quoted, asked["findings"]),
        failed=map(quoted, asked["failed"]),
    )
    page = file.read_text(encoding="utf-8")
    before, opened, rest = page.partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not opened or not closed:
        raise UserError(
            f"{file}: no line {(CLOSE if opened else OPEN)!r}; `make publish` writes between the two"
        )
    write_text(file, f"{before}{OPEN}\n\n{text.strip()}\n\n{CLOSE}{after}")
