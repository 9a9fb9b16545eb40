"""`make publish`: pages of all finished runs as `docs/results/`, the index `docs/results.md`, and the README's finding.

The numbers of a results tree join `docs/results/runs.csv`; pages of questions are drawn from that file and the
questions alone, so that a tree of some seeds adds to what others have made. Pages of other stages are copied from the
tree where it has them. A page whose sentences need a number that is not known by run stays as it was published.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.config_files import check_there
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.linked import check_read
from projected_grpo.measures import beside, numbers
from projected_grpo.measures.measure import FILES
from projected_grpo.measures.panels import base_file
from projected_grpo.pages import question as pages
from projected_grpo.pages import style
from projected_grpo.pages.answer import Estimated, is_known
from projected_grpo.pages.edition import DEFAULT, Place, estimated, layered, outcomes_of, read_tree
from projected_grpo.pages.overview import README, index, write_readme
from projected_grpo.pages.page import address
from projected_grpo.pages.registry import STANDING
from projected_grpo.records import commit
from projected_grpo.strict_yaml import read_mapping

CONFIRMATION = Path("config/confirmation.yaml")


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
    write_text(Path(f"{place.folder}.md"), index(own, made, outcomes, place))
    if readme_file is not None:
        quoted = {f"{at}/{name}": found for at, each in beyond.items() for name, found in each.items()}
        for file, docs in ((readme_file, place.docs), (place.docs / "index.md", Path())):
            if file.exists():
                write_readme(file, made | quoted, docs)
    return list(written)


def of_results(config: Config, questions: Mapping[str, Question]) -> pd.DataFrame:
    """Return the numbers of a results tree. Raises UserError on a run that is not as it was made."""
    frame, (runs, _) = numbers.of_tree(config, questions.values())
    results, asked = Path(config.results), questions.values()
    read = [run.folder / file for run in runs.values() for file in FILES]
    read += [results / file for question in asked for file in beside.files(question, config)]
    read += [results / base_file(cell.model) for question in asked for cell in question.cells]
    check_read(*(path for path in dict.fromkeys(read) if path.exists()))
    return frame


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


def related(
    made: Mapping[str, Estimated], outcomes: pd.DataFrame, fresh: Mapping[str, Estimated] | None = None
) -> dict[str, Estimated]:
    """Return questions that know the outcomes which are corrected together, and themselves on fresh seeds."""
    found = {name: one for name, one in (fresh or {}).items() if is_known(one)}
    return {name: replace(one, outcomes=outcomes, fresh=found.get(name)) for name, one in made.items()}


def first_edition(place: Place) -> dict[tuple[str, str], dict[str, str]]:
    """Return question, measure -> row -> Holm's p as published first, in families that held controls, too."""
    file = place.folder / "families.csv"
    if not file.exists():
        return {}
    every = pd.read_csv(file, dtype=str).groupby(["question", "measure"])
    return {key: dict(zip(own["row"], own["p_holm_557e809"], strict=True)) for key, own in every}


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


def command(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    work: Callable[[Config, dict[str, Question], Place, argparse.Namespace], str],
) -> int:
    """Run a command on the results of a config and print what it says; a UserError as one line, and return 2."""
    parser.add_argument(
        "--configfile", nargs="+", default=[DEFAULT], type=Path, help="laid over the default, in turn"
    )
    parser.add_argument("--docs", default="docs", type=Path)
    options = parser.parse_args(arguments)
    files = options.configfile
    try:
        for file in files:
            check_there(file)
        config, questions = read_tree(*files)
        name = "" if all(file.resolve() == DEFAULT.resolve() for file in files) else Path(config.results).name
        said = work(config, questions, Place(options.docs, name), options)
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
        return f"wrote {len(names)} pages and {place.folder}.md"

    return command(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
