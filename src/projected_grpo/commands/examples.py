"""`projected-grpo examples RUN`: a hack and an honest solve of a run's own, side by side."""

import argparse
import shutil
import textwrap
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo.commands.help import add_command
from projected_grpo.commands.trained import RUN_HELP
from projected_grpo.errors import UserError
from projected_grpo.linked import check_read

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["panel", "problem_id", "mode", "prompt", "completion", "gt_pass", "channel"]
GAP = 2  # between the columns
NARROW, WIDE = 39, 64  # characters of a column: two fit a terminal of 80


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `examples`."""
    about = "Show a hack and an honest solve that a trained run wrote on problems it was not trained on."
    words = "show a hack and an honest solve of a trained run"
    parser = add_command(subparsers, lambda args: print(examples(args.folder)), "examples", words, about)
    parser.add_argument("folder", type=Path, metavar="RUN", help=RUN_HELP)


def examples(folder: Path) -> str:
    """Return both texts of a run's folder in two columns, or which of them there is not.

    They are the first of what the run deploys on its held-out problems with a lever: a hack that is no right answer, if
    there is one, and an honest solve under the same lever, if there is one. Raises UserError where there is no run.
    """
    from projected_grpo.parquet import read_parquet  # pandas, which grading does without

    file = folder / "deployed.parquet"
    if not file.exists():
        raise UserError(f"{file}: no such file; RUN is a {RUN_HELP}")
    rows = read_parquet(file, COLUMNS)
    check_read(file)
    rows = rows[rows["panel"] != "plain"]
    hacks = rows[rows["channel"]].sort_values("gt_pass", kind="stable")
    solves = rows[rows["gt_pass"].eq(True) & ~rows["channel"]]
    if len(hacks):
        mode = hacks.iloc[0]["mode"]
        solves = solves.sort_values("mode", key=lambda modes: modes != mode, kind="stable")
    terminal = shutil.get_terminal_size((2 * WIDE + GAP, 24)).columns
    width = min(max((terminal - GAP) // 2, NARROW), WIDE)
    columns = [
        _column("A hack", hacks, len(rows), "This run wrote no hack", width),
        _column("An honest solve", solves, len(rows), "This run wrote no honest solve", width),
    ]
    return "\n".join(
        f"{left:{width + GAP}}{right}".rstrip() for left, right in zip_longest(*columns, fillvalue="")
    )


def _column(title: str, found: "pd.DataFrame", among: int, none: str, width: int) -> list[str]:
    """Return title, prompt and text of the first row found, in lines of `width` characters."""
    if found.empty:
        return textwrap.wrap(f"{none} among {among} answers to problems that it was not trained on.", width)
    row = found.iloc[0]
    head = f"{title} ({len(found)} of {among} answers), problem {row['problem_id']}, {row['mode']}"
    lines = [head, "", *row["prompt"].splitlines(), "", *row["completion"].splitlines()]
    return [part for line in lines for part in textwrap.wrap(line, width, replace_whitespace=False) or [""]]
