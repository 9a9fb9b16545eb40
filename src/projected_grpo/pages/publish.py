"""`make publish`: pages of all finished runs as `docs/results/`, the index `docs/results.md`, and the README's finding.

The numbers of a results tree join `docs/results/runs.csv`; pages of questions are drawn from that file and the
questions alone, so that a tree of some seeds adds to what others have made. Pages of other stages are copied from the
tree where it has them. A page whose sentences need a number that is not known by run stays as it was published.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from snakemake.utils import update_config

from projected_grpo.cells.cell import TEACHERS, Question, Row, load_questions
from projected_grpo.cells.check import load
from projected_grpo.cells.config import Config, Outcome
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures import beside, estimates, numbers
from projected_grpo.measures.measure import FILES
from projected_grpo.measures.names import check_names
from projected_grpo.measures.panels import base_file
from projected_grpo.pages import question as pages
from projected_grpo.pages import style
from projected_grpo.pages.answer import Estimated, answer, has_number, is_answered, sentences
from projected_grpo.pages.page import address, render
from projected_grpo.pages.registry import STANDING
from projected_grpo.records import check_read, commit
from projected_grpo.strict_yaml import read_mapping
from projected_grpo.yaml_layers import QuestionFiles

DEFAULT = Path("config/config.yaml")
CONFIRMATION = Path("config/confirmation.yaml")
OPEN, CLOSE = "<!-- written by make publish -->", "<!-- /written by make publish -->"
README = Path("docs/readme.yaml")  # which figure and which answers the README shows


def of_results(config: Config, questions: Mapping[str, Question]) -> pd.DataFrame:
    """Return the numbers of a results tree. Raises UserError on a run that is not as it was made."""
    frame, (runs, _) = numbers.of_tree(config, questions.values())
    results, asked = Path(config.results), questions.values()
    read = [run.folder / file for run in runs.values() for file in FILES]
    read += [results / file for question in asked for file in beside.files(question, config)]
    read += [results / base_file(cell.model) for question in asked for cell in question.cells]
    check_read(*(path for path in dict.fromkeys(read) if path.exists()))
    return frame


def published_seeds(config: Config, there: Iterable[int]) -> list[int]:
    """Return those of some seeds that a config publishes, sorted: those of tuning and of confirmation stand aside.

    Where the config's own seeds are to confirm, the others of these are no longer aside.
    """
    own, fresh = set(config.seeds), set(config.primary.seeds)
    aside = {*config.tuning, *(() if own & fresh else fresh)} - own
    return sorted({int(seed) for seed in there} - aside)


def read_tree(file: Path, **said: object) -> tuple[Config, dict[str, Question]]:
    """Return a config and its questions for its own seeds and all others that its results tree has runs of."""
    config = layered(file, **said)
    ends = (folder.name.rpartition("-s")[2] for folder in Path(config.results, "grpo").glob("*-s*"))
    there = {int(end) for end in ends if end.isdecimal()} | set(config.seeds)
    return read_config(file, **said | {"seeds": published_seeds(config, there)})


def with_seeds(config: Config, frame: pd.DataFrame) -> tuple[Config, dict[str, Question]]:
    """Return config and questions for all seeds of the frame's runs that are published, each question for its own."""
    is_base = frame["cell"].str.startswith(numbers.BASE.format(""))
    seeds = published_seeds(config, frame.loc[~is_base, "seed"])
    every = config.model_copy(update={"seeds": type(config.seeds)(seeds)}) if seeds else config
    return every, {name: of_own_seeds(one, frame) for name, one in questions_of(every).items()}


def of_own_seeds(question: Question, frame: pd.DataFrame) -> Question:
    """Return a question for the seeds that it has runs of, so that its page names no other question's as missing."""
    there = set(frame["cell"])
    seeds = {cell.seed for cell in question.cells if cell.id in there}
    if not seeds:
        return question

    def kept(row: Row) -> Row:
        return row.model_copy(update={"cells": tuple(cell for cell in row.cells if cell.seed in seeds)})

    return question.model_copy(update={"rows": tuple(map(kept, question.rows))})


@dataclass(frozen=True)
class Place:
    """Where the pages of one config are published: the default's in `docs/results`, others' in a folder below it."""

    docs: Path
    name: str = ""

    @property
    def folder(self) -> Path:
        return self.docs / "results" / self.name

    def figure(self, page: str, drawn: str) -> str:
        """Return the name of a figure's file in `docs/figures`."""
        return "-".join(filter(None, [self.name, page, drawn])) + ".svg"

    def address(self, page: str) -> str:
        """Return what addresses of a page's figures begin with, as seen from the page."""
        return "../" * (2 if self.name else 1) + "figures/" + self.figure(page, "").removesuffix(".svg") + "-"


def place_of(configfile: Path, config: Config, docs: Path) -> Place:
    """Return where the pages of a config file are published."""
    return Place(docs, "" if configfile.resolve() == DEFAULT.resolve() else Path(config.results).name)


def write_page(place: Place, name: str, text: str, figures: Mapping[str, str]) -> None:
    """Write a page and its figures, in place of those of its earlier edition; figures: name -> SVG."""
    kept = {place.figure(name, drawn): svg for drawn, svg in figures.items()}
    for old in (place.docs / "figures").glob(place.figure(name, "*")):
        if old.name not in kept:
            old.unlink()
    for file, svg in kept.items():
        write_text(place.docs / "figures" / file, svg)
    write_text(place.folder / f"{name}.md", text)


def write_csv(made: Estimated, path: Path) -> None:
    """Write every number by run of a question: a line a row and seed."""
    records = []
    for name, row in made.own.rows.items():
        single = name in {one.name for one in made.own.question.rows}
        cells = {cell.seed: cell.id for cell in row.cells} if single else {}
        values = made.own.values[name]
        for seed in numbers.seeds_of(values):
            record = {"row": name, "baseline": row.baseline, "seed": seed, "cell": cells.get(seed)}
            records.append(record | {measure: own[seed] for measure, own in values.items() if seed in own})
    write_text(path, pd.DataFrame(records).to_csv(index=False, lineterminator="\n"))


def of_other_stages(results: Path, place: Place) -> dict[str, tuple[str, dict[str, str]]]:
    """Read the pages of other stages that a results tree has: published name -> text, figures."""
    found = {}
    for name in ("aa", *STANDING):
        path, own = results / f"{name}.md", name.replace("/", "-")
        if not path.exists():
            continue
        figures = results / "figures" / name
        check_read(path, figures)
        drawn = {file.stem: file for file in sorted(figures.glob("*.svg"))}
        text = path.read_text(encoding="utf-8").replace(address(name), place.address(own))
        found[own] = text, {figure: file.read_text() for figure, file in drawn.items()}
    return found


def estimated(config: Config, frame: pd.DataFrame) -> tuple[Config, dict[str, Estimated]]:
    """Return the config for the frame's seeds, and its questions but A/A with their estimates."""
    own, questions = with_seeds(config, frame)
    asked = {name: one for name, one in questions.items() if one.kind != "aa"}
    return own, {name: pages.estimated(one, frame, own) for name, one in asked.items()}


def elsewhere(file: Path, docs: Path) -> dict[str, Estimated]:
    """Return the questions of another config on the runs that are published of it, none without."""
    config = layered(file)
    store = Place(docs, Path(config.results).name).folder / "runs.csv"
    if not store.exists():
        return {}
    own, made = estimated(config, numbers.read(store))
    outcomes = outcomes_of(made.values(), own)
    return {name: replace(found, outcomes=outcomes) for name, found in made.items()}


def all_elsewhere(docs: Path) -> dict[str, dict[str, Estimated]]:
    """Return the same of each config that the README may quote, by its name there."""
    asked = read_mapping(README)["elsewhere"]
    return {name: elsewhere(Path(one["config"]), docs) for name, one in asked.items()}


def outcomes_of(made: Iterable[Estimated], config: Config) -> pd.DataFrame:
    """Return the primary outcomes of a config, corrected together."""
    return estimates.primary_outcomes([each.frame for each in made], len(config.primary.outcomes))


def publish(
    config: Config, questions: Mapping[str, Question], place: Place, readme_file: Path | None
) -> list[str]:
    """Write all pages that there are numbers for; return their names. Nothing is written before all is read."""
    store, new = place.folder / "runs.csv", of_results(config, questions)
    frame = numbers.merged(numbers.read(store), new) if store.exists() else new
    if not len(frame):
        raise UserError(f"{config.results}: no finished run; run `./snakemake --cores all report` first")
    own, made = estimated(config, frame)
    beyond = {} if place.name else all_elsewhere(place.docs)
    fresh = beyond.get(CONFIRMATION.stem, {})
    outcomes = outcomes_of((*fresh.values(), *made.values()), own)
    # Without a number of its sentences a page waits for them.
    there = {name for name in made if (place.folder / f"{name}.md").exists()}
    ready = {name for name, found in made.items() if is_answered(found) and found.own.seeds}
    made = {n: replace(found, outcomes=outcomes) for n, found in made.items() if n in ready | there}
    drawn = commit()
    texts = {
        name: pages.page(found, own, pages.provenance(frame, found.own, drawn), place.address(name))
        for name, found in made.items()
        if name in ready
    }
    others = of_other_stages(Path(config.results), place)
    numbers.write(frame, store)
    for name, page in texts.items():
        figures = {figure: style.to_svg(drawing) for figure, drawing in page.figures.items()}
        write_page(place, name, page.text, figures)
        write_csv(made[name], place.folder / f"{name}.csv")
    for name, (text, figures) in others.items():
        write_page(place, name, text, figures)
    write_text(place.folder.with_suffix(".md"), index(own, made, outcomes, place))
    if readme_file is not None:
        quoted = {f"{at}/{name}": found for at, each in beyond.items() for name, found in each.items()}
        said = made | quoted
        for file, docs in ((readme_file, place.docs), (place.docs / "index.md", Path())):
            if file.exists():
                write_readme(file, said, docs)
    return [*texts, *others]


def index(config: Config, made: Mapping[str, Estimated], outcomes: pd.DataFrame, place: Place) -> str:
    """Return the primary outcomes, then all questions, each with its answer, then the pages of other stages.

    A question whose sentences need numbers that are not known by run has none: its page stands as it was published.
    """
    rows: list[dict] = []
    for name, found in made.items():
        said = answer(found) if is_answered(found) else []
        n = max((line["n"] for line in found.lines if line["contrast"] != estimates.RATE), default=0)
        rows.append({"name": name, "title": found.own.question.title, "n": n})
        rows[-1]["answer"] = " ".join(said)
        rows[-1]["mixes"] = found.mixes
        rows[-1]["primary"] = any(line["primary"] for line in found.lines)
    rows.sort(
        key=lambda row: (not row["primary"], row["name"][0] != "Q", int(re.sub(r"\D", "", row["name"]) or 0))
    )
    titles = {
        path.stem: path.read_text(encoding="utf-8").split("\n", 1)[0][2:]
        for path in place.folder.glob("*.md")
    }
    others = {name: title for name, title in sorted(titles.items()) if name not in made}
    fresh = place.name or not outcomes["named"].str.startswith("afterwards").all()
    return render(
        "results.md.j2",
        rows=rows,
        outcomes=named_outcomes(config, outcomes, made),
        named=config.primary.named,
        fresh=fresh,
        place=place,
        called=read_mapping(README)["elsewhere"].get(place.name, {}).get("called", place.name),
        folder=place.folder.name,
        others=others,
        teachers=TEACHERS,
    )


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
    kind = made[shown].own.question.figure.kind
    said = {key: [_answer(made, one) for one in asked[key]] for key in ("findings", "failed")}
    called = {name: one["called"] for name, one in asked["elsewhere"].items()}
    text = render("readme.md.j2", docs=docs, figure=f"{shown}-{kind}", called=called, **said)
    page = file.read_text(encoding="utf-8")
    before, opened, rest = page.partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not opened or not closed:
        raise UserError(
            f"{file}: no line {(CLOSE if opened else OPEN)!r}; `make publish` writes between the two"
        )
    write_text(file, f"{before}{OPEN}\n\n{text.strip()}\n\n{CLOSE}{after}")


def _answer(made: Mapping[str, Estimated], one: str) -> tuple[str, str]:
    """Return (question, its answer) of `Q10`, or of `Q10.2` its second sentence alone; "" without its number."""
    name, _, number = one.partition(".")
    if name not in made or not is_answered(made[name]):
        return name, ""
    if not number:
        return name, " ".join(answer(made[name]))
    found, place = made[name], int(number) - 1
    says = found.own.question.says[place : place + 1]
    return name, sentences(found)[place] if all(has_number(found, each) for each in says) else ""


def main(arguments: list[str] | None = None) -> int:
    """Publish the config's results; print a UserError as one line and return 2."""
    parser = argparse.ArgumentParser(
        prog="python -m projected_grpo.pages.publish", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--configfile", default=DEFAULT, type=Path)
    parser.add_argument("--docs", default="docs", type=Path)
    parser.add_argument("--readme", default="README.md", type=Path)
    options = parser.parse_args(arguments)
    try:
        config, questions = read_tree(options.configfile)
        place = place_of(options.configfile, config, options.docs)
        names = publish(config, questions, place, None if place.name else options.readme)
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {len(names)} pages and {place.folder.with_suffix('.md')}")
    return 0


def layered(file: Path, **said: object) -> Config:
    """Return a config laid over the default one; said: keys over both. UserError as at a start."""
    files = list(dict.fromkeys([DEFAULT, file]))
    merged: dict = {}
    for layer in (*map(read_mapping, files), said):
        update_config(merged, layer)
    return load(files, merged)[0]


def questions_of(config: Config) -> dict[str, Question]:
    """Return a config's questions. UserError as at a start."""
    questions = load_questions(QuestionFiles(config.questions).parsed, config)
    check_names(config, questions)
    return questions


def read_config(file: Path, **said: object) -> tuple[Config, dict[str, Question]]:
    """Return `layered` and its questions."""
    config = layered(file, **said)
    return config, questions_of(config)


if __name__ == "__main__":
    sys.exit(main())
