"""`make archive`: texts and facts of what published runs were judged on, `deployed.parquet` beside their `runs.csv`.

What stands there already stays, so that several results trees add up. A run is taken where its rates are those that
were published; one that was made again since is refused.
"""

import argparse
import math
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pandas as pd

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.errors import UserError
from projected_grpo.files import atomic
from projected_grpo.linked import check_read
from projected_grpo.measures import numbers
from projected_grpo.measures.measure import FILES
from projected_grpo.measures.panels import DEPLOYED
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages.edition import Place
from projected_grpo.pages.publish import command
from projected_grpo.parquet import read_parquet

MOST = 30_000_000  # bytes that a repository takes beside its tables
# Equal and similar texts stand side by side, which is what makes the file small.
ORDER = ["panel", "problem_id", "completion", "cell", "sample"]
# Rates that facts alone give.
CHECKED = ("known_hack", "known_honest", "novel_hack", "novel_honest", "plain_solve")


def of_tree(config: Config, questions: Mapping[str, Question], published: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all published runs that a results tree has.

    Raises UserError on one whose rates are not those that were published.
    """
    known = set(published["cell"])
    cells = {cell.id: cell for question in questions.values() for cell in question.cells if cell.id in known}
    runs, _ = load_runs(Path(config.results), cells.values())
    judged = [run for run in runs.values() if (run.folder / DEPLOYED).exists()]
    check_read(*(path for run in judged for path in map(run.folder.joinpath, FILES) if path.exists()))
    rates = published.set_index(["cell", "measure"])["value"]
    for run, measure in product(judged, CHECKED):
        told, value = rates.get((run.cell.id, measure)), run.measures.get(measure)
        if told is not None and value is not None and not math.isclose(told, value, abs_tol=1e-9):
            raise UserError(
                f"{run.folder / DEPLOYED}: {measure} is {value:.6g}, published {told:.6g}; publish this run first"
            )
    found = [read_parquet(run.folder / DEPLOYED).assign(cell=run.cell.id) for run in judged]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame({"cell": []})


def archive(config: Config, questions: Mapping[str, Question], folder: Path) -> tuple[int, int, int]:
    """Write the archive of a folder of published pages; return (runs in it, runs published, bytes).

    Raises UserError, and leaves the file that is there, without a published run here, or where it would be `MOST` bytes
    or more.
    """
    store = folder / DEPLOYED
    if not (folder / "runs.csv").exists():
        raise UserError(f"{folder / 'runs.csv'}: not there; `make publish` with the same CONFIG comes first")
    published = numbers.read(folder / "runs.csv")
    frame = of_tree(config, questions, published)
    if not len(frame):
        raise UserError(
            f"{config.results}: none of the published runs is here; run `make archive` where they were made"
        )
    if store.exists():
        old = read_parquet(store)
        frame = pd.concat([old[~old["cell"].isin(frame["cell"])], frame], ignore_index=True)
    frame = frame[frame["cell"].isin(published["cell"])]
    with atomic(store) as temporary:
        frame.sort_values(ORDER).to_parquet(temporary, index=False, compression="zstd", compression_level=19)
        size = temporary.stat().st_size
        if size >= MOST:
            raise UserError(
                f"{store}: {size / 1e6:.1f} MB, allowed: below {MOST / 1e6:.0f}; keep it outside of the repository"
            )
    runs = published.loc[~published["cell"].str.contains("/"), "cell"]
    return frame["cell"].nunique(), runs.nunique(), size


def main(arguments: list[str] | None = None) -> int:
    """Archive the config's published runs."""
    parser = argparse.ArgumentParser(
        prog="python -m projected_grpo.pages.archive", description=__doc__.splitlines()[0]
    )

    def work(config: Config, questions: dict, place: Place, _options: argparse.Namespace) -> str:
        here, published, size = archive(config, questions, place.folder)
        return f"{place.folder / DEPLOYED}: {here} of {published} published runs, {size / 1e6:.1f} MB"

    return command(parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main())
