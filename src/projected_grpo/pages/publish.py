"""`make publish`: pages of all finished runs as `docs/results/`, the index `docs/results.md`, and the README's finding.

The numbers of a results tree join `docs/results/runs.csv`; pages of questions are drawn from that file and the
questions alone, so that a tree of some seeds adds to what others have made. Pages of other stages are copied from the
tree where it has them. A page whose sentences need a number that is not known by run stays as it was published.
"""

import argparse
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pandas as pd
from snakemake.utils import update_config

from projected_grpo.cells.cell import TEACHERS, Question, Row, load_questions
from projected_grpo.cells.check import load
from projected_grpo.cells.config import Config, Outcome
from projected_grpo.config_files import check_there
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures import beside, estimates, numbers
from projected_grpo.measures.measure import FILES
from projected_grpo.measures.names import check_names
from projected_grpo.measures.panels import DEPLOYED, base_file
from projected_grpo.pages import question as pages
from projected_grpo.pages import style
from projected_grpo.pages.answer import Estimated, answer, is_known, said
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


def for_seeds(config: Config, there: Iterable[int]) -> tuple[Config, dict[str, Question]]:
    """Return config and questions for those of some seeds that are published: tuning and confirmation stand aside.

    Where the config's own seeds are to confirm, the others of these are no longer aside.
    """
    own, fresh = set(config.seeds), set(config.primary.seeds)
    aside = {*config.tuning, *(() if own & fresh else fresh)} - own
    seeds = sorted({int(seed) for seed in there} - aside) or config.seeds
    every = config.model_copy(update={"seeds": type(config.seeds)(seeds)})
    return every, questions_of(every)


def read_tree(file: Path, **said: object) -> tuple[Config, dict[str, Question]]:
    """Return a config and its questions for its own seeds and all others that its results tree has runs of."""
    config = layered(file, **said)
    ends = (folder.name.rpartition("-s")[2] for folder in Path(config.results, "grpo").glob("*-s*"))
    return for_seeds(config, [*config.seeds, *(int(end) for end in ends if end.isdecimal())])


def with_seeds(config: Config, frame: pd.DataFrame) -> tuple[Config, dict[str, Question]]:
    """Return config and questions for all seeds of the frame's runs that are published, each question for its own."""
    is_base = frame["cell"].str.startswith(numbers.BASE.format(""))
    every, questions = for_seeds(config, frame.loc[~is_base, "seed"])
    return every, {name: of_own_seeds(one, frame) for name, one in questions.items()}


def of_own_seeds(question: Question, frame: pd.DataFrame) -> Question:
    """Return a question for the seeds of what it compares, so that its page names no other question's as missing.

    Rows of one baseline have the seeds of their group, as have groups with rows that are compared with each other. A
    group without any has those of the question.
    """
    there = set(frame["cell"].unique())
    own = {row.name: {cell.seed for cell in row.cells if cell.id in there} for row in question.rows}
    group = {row.name: row.baseline or row.name for row in question.rows}
    found: dict[str, set[int]] = {name: set() for name in group.values()}
    for row in (row for row in question.rows if row.baseline):
        found[group[row.name]] |= own[row.name] & own[str(row.baseline)]
    every = set[int]().union(*found.values()) or set[int]().union(*own.values())
    if not every:
        return question
    joined = {name: {name} for name in found}
    for names in _compared(question):
        whole = set[str]().union(*(joined[group[name]] for name in names))
        joined |= dict.fromkeys(whole, whole)
    seeds = {name: set[int]().union(*map(found.__getitem__, joined[name])) or every for name in found}

    def kept(row: Row) -> Row:
        cells = tuple(cell for cell in row.cells if cell.seed in seeds[group[row.name]])
        return row.model_copy(update={"cells": cells})

    return question.model_copy(update={"rows": tuple(map(kept, question.rows))})


def _compared(question: Question) -> Iterator[list[str]]:
    """Yield the names of rows that one number is of, beside a row and its baseline."""
    rows = {row.name: row for row in question.rows}
    yield from ([row.name, row.against] for row in question.rows if row.against)
    for pooled in {row.pooled for row in question.rows} - {None}:
        yield [row.name for row in question.rows if row.pooled == pooled]
    for weights in chain.from_iterable(kind.values() for kind in question.contrasts.values()):
        yield [name for name in weights if name in rows]


@dataclass(frozen=True)
class Place:
    """Where the pages of one config are published: the default's in `docs/results`, others' in a folder below it."""

    docs: Path
    name: str = ""

    @property
    def folder(self) -> Path:
        return self.docs / "results" / self.name


def place_of(configfile: Path, config: Config, docs: Path) -> Place:
    """Return where the pages of a config file are published."""
    return Place(docs, "" if configfile.resolve() == DEFAULT.resolve() else Path(config.results).name)


def write_page(place: Place, name: str, text: str, figures: Mapping[str, str]) -> None:
    """Write a page of a results tree and its figures, in place of its earlier edition; figures: name -> SVG."""
    own = name.replace("/", "-")
    prefix = f"{place.name}-{own}-".removeprefix("-")  # of the names of its figures in `docs/figures`
    kept = {f"{prefix}{drawn}.svg": svg for drawn, svg in figures.items()}
    for old in (place.docs / "figures").glob(f"{prefix}*.svg"):
        if old.name not in kept:
            old.unlink()
    for file, svg in kept.items():
        write_text(place.docs / "figures" / file, svg)
    seen = f"{'../../' if place.name else '../'}figures/{prefix}"  # from the page
    write_text(place.folder / f"{own}.md", text.replace(address(name), seen))


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
    frame = pd.DataFrame(records)
    keys = ["row", "baseline", "seed", "cell"]
    columns = keys + numbers.in_order(set(frame) - set(keys))
    write_text(path, frame[columns].to_csv(index=False, lineterminator="\n"))


def of_other_stages(results: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Read the pages of other stages that a results tree has: name -> text, figures."""
    found = {}
    for name in ("aa", *STANDING):
        path, figures = results / f"{name}.md", results / "figures" / name
        if path.exists():
            check_read(path, figures)
            drawn = {file.stem: file.read_text() for file in sorted(figures.glob("*.svg"))}
            found[name] = path.read_text(encoding="utf-8"), drawn
    return found


def estimated(
    config: Config, frame: pd.DataFrame, some: Container[str] | None = None
) -> tuple[Config, dict[str, Estimated]]:
    """Return the config for the frame's seeds, and its questions but A/A with their estimates; some: those alone."""
    own, questions = with_seeds(config, frame)
    asked = {n: one for n, one in questions.items() if one.kind != "aa" and (some is None or n in some)}
    return own, {name: pages.estimated(one, frame, own) for name, one in asked.items()}


def elsewhere(docs: Path) -> dict[str, dict[str, Estimated]]:
    """Return of each config that the README may quote, by its name there, the questions on its published runs."""
    found = {}
    for name, one in read_mapping(README)["elsewhere"].items():
        config = layered(Path(one["config"]))
        store = Place(docs, Path(config.results).name).folder / "runs.csv"
        if store.exists():
            own, made = estimated(config, numbers.read(store))
            found[name] = related(made, outcomes_of(made.values(), own))
    return found


def outcomes_of(made: Iterable[Estimated], config: Config) -> pd.DataFrame:
    """Return the primary outcomes of a config, corrected together."""
    return estimates.primary_outcomes([each.frame for each in made], len(config.primary.outcomes))


def related(
    made: Mapping[str, Estimated], outcomes: pd.DataFrame, fresh: Mapping[str, Estimated] | None = None
) -> dict[str, Estimated]:
    """Return questions that know the outcomes which are corrected together, and themselves on fresh seeds."""
    found = {name: one for name, one in (fresh or {}).items() if is_known(one)}
    return {name: replace(one, outcomes=outcomes, fresh=found.get(name)) for name, one in made.items()}


def publish(
    config: Config, questions: Mapping[str, Question], place: Place, readme_file: Path | None
) -> list[str]:
    """Write all pages that there are numbers for; return their names. Nothing is written before all is read."""
    store, new = place.folder / "runs.csv", of_results(config, questions)
    frame = numbers.merged(numbers.read(store), new) if store.exists() else new
    if not len(frame):
        raise UserError(
            f"{config.results}: no finished run; `./snakemake --cores all report`, of this config, makes them"
        )
    own, made = estimated(config, frame)
    beyond = {} if place.name else elsewhere(place.docs)
    fresh = beyond.get(CONFIRMATION.stem, {})
    outcomes = outcomes_of((*fresh.values(), *made.values()), own)
    made = related(made, outcomes, fresh)
    # Without a number of its sentences a page waits for them.
    ready = {name: found for name, found in made.items() if found.own.seeds and is_known(found)}
    drawn, first, written = commit(), first_edition(place), {}
    for name, found in ready.items():
        end, then = pages.provenance(frame, found.own, drawn), first.get((name, found.own.about.name))
        page = pages.page(found, own, end, published=True, earlier=then)
        written[name] = page.text, {figure: style.to_svg(each) for figure, each in page.figures.items()}
    written |= of_other_stages(Path(config.results))
    made = {n: found for n, found in made.items() if n in ready or (place.folder / f"{n}.md").exists()}
    numbers.write(frame, store)
    for name, (text, figures) in written.items():
        write_page(place, name, text, figures)
    for name, found in ready.items():
        write_csv(found, place.folder / f"{name}.csv")
    write_text(place.folder.with_suffix(".md"), index(own, made, outcomes, place))
    if readme_file is not None:
        quoted = {f"{at}/{name}": found for at, each in beyond.items() for name, found in each.items()}
        for file, docs in ((readme_file, place.docs), (place.docs / "index.md", Path())):
            if file.exists():
                write_readme(file, made | quoted, docs)
    return list(written)


def first_edition(place: Place) -> dict[tuple[str, str], dict[str, str]]:
    """Return question, measure -> row -> Holm's p as published first, in families that held controls, too."""
    file = place.folder / "families.csv"
    if not file.exists():
        return {}
    every = pd.read_csv(file, dtype=str).groupby(["question", "measure"])
    return {key: dict(zip(own["row"], own["p_holm_557e809"], strict=True)) for key, own in every}


def both_changes(second: Mapping[str, Estimated], docs: Path) -> list[tuple[Mapping, Mapping]]:
    """Return published changes of the default config's rows beside those of the same rows of another, claims first.

    They are changes in a question's own measure.
    """
    store = Place(docs).folder / "runs.csv"
    if not store.exists():
        return []
    both, (_, first) = [], estimated(layered(DEFAULT), numbers.read(store), second)
    for name in first:
        about = second[name].own.about.name
        for line in second[name].lines:
            if line["contrast"] == estimates.BASELINE and line["measure"] == about and line["n"]:
                there = first[name].line(line["row"], estimates.BASELINE, about)
                both += [(there, line)] if there and there["n"] else []
    return sorted(both, key=lambda pair: (pair[1]["question"], pair[1]["p_holm"] is None))


def index(config: Config, made: Mapping[str, Estimated], outcomes: pd.DataFrame, place: Place) -> str:
    """Return the primary outcomes, then all questions, each with its first sentence, then the pages of other stages.

    A question whose sentences need numbers that are not known by run has none: its page stands as it was published.
    """
    rows = []
    for name, found in made.items():
        frame = found.frame
        row = {"name": name, "made": found, "primary": frame["primary"].any()}
        row["n"] = max(frame.loc[frame["contrast"].ne(estimates.RATE), "n"], default=0)
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

    def quoted(one: str) -> tuple[str, str, bool]:
        name, _, number = one.partition(".")
        if name not in made:
            return name, "", False
        says = made[name].own.question.says[int(number or 1) - 1]
        shown = made[name].of(says.row, says.contrast, says.measure)["verdict"] == estimates.EFFECT
        return name, said(made[name], int(number or 0)), shown

    text = render(
        "readme.md.j2",
        docs=docs,
        figure=f"{shown}-{made[shown].own.question.figure.kind}",
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


def command(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    work: Callable[[Config, dict[str, Question], Place, argparse.Namespace], str],
) -> int:
    """Run a command on the results of a config and print what it says; a UserError as one line, and return 2."""
    parser.add_argument("--configfile", default=DEFAULT, type=Path)
    parser.add_argument("--docs", default="docs", type=Path)
    options = parser.parse_args(arguments)
    file = options.configfile
    try:
        check_there(file)
        config, questions = read_tree(file)
        said = work(config, questions, place_of(file, config, options.docs), options)
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(said)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Publish the config's results."""
    parser = argparse.ArgumentParser(
        prog="python -m projected_grpo.pages.publish", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--readme", default="README.md", type=Path)

    def work(config: Config, questions: dict, place: Place, options: argparse.Namespace) -> str:
        names = publish(config, questions, place, None if place.name else options.readme)
        return f"wrote {len(names)} pages and {place.folder.with_suffix('.md')}"

    return command(parser, arguments, work)


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
