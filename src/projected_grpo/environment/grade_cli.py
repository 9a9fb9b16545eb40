"""`projected-grpo grade`: verdicts for completions of any model, without the pipeline.

Streams: rows go in and out one by one, whatever their number.
"""

import argparse
import gzip
import json
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from projected_grpo.arguments import output_file
from projected_grpo.environment.grade import Grader, Item
from projected_grpo.environment.levers import LEVERS, lever_of
from projected_grpo.environment.problems import Problem, load_problems
from projected_grpo.environment.rows import numbered_rows
from projected_grpo.errors import UserError
from projected_grpo.files import atomic

EXAMPLE = """\
example:
  projected-grpo grade problems.jsonl.gz rollouts.jsonl --out verdicts.jsonl --mode run_tests

A row of COMPLETIONS has `problem_id`, `completion` and, unless --mode is given, `mode` (default: the problem's own).
A row of VERDICTS repeats it and adds fmt_ok, can_compile, gt_pass, channel, hacked, passed, exploited, reward,
loophole_used, wrong_tests and error. Rows come out in the order they came in.
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `grade`; the parsed arguments carry `run`, called with them."""
    parser = subparsers.add_parser(
        "grade",
        help="grade completions: strict oracle and loophole channel",
        description="Grade completions by the strict oracle and by the channel of their loophole mode.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("problems", type=Path, metavar="PROBLEMS", help="problem rows, .jsonl or .jsonl.gz")
    parser.add_argument(
        "completions", type=Path, metavar="COMPLETIONS", help="rows to grade, .jsonl or .jsonl.gz"
    )
    parser.add_argument(
        "--out",
        type=output_file,
        required=True,
        metavar="VERDICTS",
        help="file to write (.gz by suffix)",
    )
    parser.add_argument("--mode", metavar="M", help=f"grade all rows under this mode: {', '.join(LEVERS)}")
    parser.add_argument(
        "--workers", type=_positive, default=2, metavar="N", help="sandbox processes (default: 2)"
    )
    parser.add_argument("--cache", type=Path, metavar="FILE", help="verdicts kept from run to run")
    parser.add_argument(
        "--allow-weak-sandbox",
        action="store_true",
        help="go on where only resource limits work: submissions can then read files and use the network",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Grade the file. Raises UserError with file, line and reason; then nothing stands under the name of --out."""
    if args.mode is not None:
        lever_of(args.mode, "--mode")
    problems = load_problems(args.problems)
    if not args.completions.exists():
        raise UserError(f"{args.completions}: no such file")
    rows: deque[dict[str, Any]] = deque()
    with (
        Grader(problems, args.workers, args.cache, args.allow_weak_sandbox) as grader,
        atomic(args.out) as temporary,
        (gzip.open if args.out.suffix == ".gz" else open)(temporary, "wt", encoding="utf-8") as out,
        _progress(args.completions) as bar,
    ):
        for found in grader.stream(_items(args, grader.problems, rows)):
            out.write(json.dumps(rows.popleft() | found) + "\n")
            bar.update()


def _items(args: argparse.Namespace, problems: dict[Any, Problem], rows: deque) -> Iterator[Item]:
    """Yield what to grade and leave each input row in `rows` for the output."""
    by_text = {str(problem_id): problem_id for problem_id in problems}
    for where, row in numbered_rows(args.completions):
        problem_id, completion = row.get("problem_id"), row.get("completion")
        if not isinstance(problem_id, int | str) or isinstance(problem_id, bool):
            raise UserError(f"{where}: key 'problem_id' must be an integer or a string")
        if problem_id not in problems:
            if str(problem_id) not in by_text:
                raise UserError(f"{where}: problem_id {problem_id!r} is not in {args.problems}")
            problem_id = by_text[str(problem_id)]
        if not isinstance(completion, str):
            raise UserError(f"{where}: key 'completion' must be a string")
        mode = args.mode or row.get("mode") or problems[problem_id].mode
        if not isinstance(mode, str):
            raise UserError(
                f"{where}: key 'mode' is missing; allowed: {', '.join(LEVERS)}, for all rows by --mode"
            )
        lever_of(mode, where)
        rows.append(row | {"mode": mode})
        yield problem_id, mode, completion


def _progress(path: Path) -> Any:
    """A bar on a terminal, nothing elsewhere."""
    from tqdm import tqdm

    total = None
    if sys.stderr.isatty() and path.is_file():  # a pipe can be read only once
        # What is wrong with the file is said where its rows are read.
        with (
            suppress(OSError, EOFError, zlib.error),
            (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file,
        ):
            total = sum(1 for _ in file)
    return tqdm(total=total, unit="completion", disable=not sys.stderr.isatty())


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value
