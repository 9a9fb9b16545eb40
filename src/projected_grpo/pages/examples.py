"""Example rollouts for the report: per arm and step, chosen by verdict so that every kind is seen."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.measures.measure import ROLLOUTS
from projected_grpo.measures.runs import Run
from projected_grpo.parquet import read_parquet

# Facts that the page shows, in order, and what stands beside them.
FLAGS = ("fmt_ok", "can_compile", "channel", "gt_pass", "loophole_used", "wrong_tests")
TEXTS = ("step", "problem_id", "mode", "prompt", "completion", "reward", "error")
LONGEST = 4000  # characters of a text that are shown
BUDGET = 4_500_000  # bytes of the page that all examples together may take
MARKUP = 1100  # bytes of the page around one example's texts


@dataclass(frozen=True)
class Example:
    """One rollout as the page shows it; the texts are the model's, to be escaped."""

    arm: str
    cell: str
    step: int
    mode: str
    problem_id: str
    reward: float
    flags: dict[str, bool | None]  # None: the grader gives no such verdict here
    error: str  # why there is no full verdict; empty where there is
    prompt: str
    completion: str

    @classmethod
    def read(cls, cell: str, row: dict) -> "Example":
        """Return the example of a line of a rollouts file."""

        def cut(text: str) -> str:
            more = len(text) - LONGEST
            return text if more <= 0 else f"{text[:LONGEST]}\n[... {more} more characters]"

        flags = {flag: None if pd.isna(row[flag]) else bool(row[flag]) for flag in FLAGS}
        texts = {key: cut(str(row[key])) for key in ("mode", "problem_id", "prompt", "completion")}
        error = "" if pd.isna(row["error"]) else row["error"]
        return cls(arm_of(cell), cell, row["step"], reward=row["reward"], flags=flags, error=error, **texts)

    @property
    def kind(self) -> str:
        """Return what it is, by its two verdicts; a problem without hidden tests has no `gt_pass`."""
        seen = {"hack": self.flags["channel"], "solve": self.flags["gt_pass"]}
        unseen = "not judged" if seen["solve"] is None else "neither"
        return " and ".join(word for word, is_so in seen.items() if is_so) or unseen

    @cached_property
    def size(self) -> int:
        """Return about how many bytes of the page it takes."""
        return MARKUP + sum(len(escape(text).encode()) for text in (self.prompt, self.completion))


def arm_of(cell: str) -> str:
    """Return the name that the runs of all seeds share."""
    return cell.rsplit("-s", 1)[0]


def _check(frame: pd.DataFrame, path: Path) -> None:
    """Raise UserError with the path on rows that no run writes."""
    if frame.empty:
        raise UserError(f"{path}: no rollout; delete the run's folder to remake it")
    for column, kinds in {"step": "iu", "reward": "iuf", "channel": "b"}.items():
        if frame[column].dtype.kind not in kinds or frame[column].isna().any():
            raise UserError(f"{path}: column {column!r} has a value that is none of the kind, or is empty")
    for column in FLAGS:
        if not frame[column].dropna().isin([True, False]).all():
            raise UserError(f"{path}: column {column!r} has a value that is neither true, false nor empty")


def _spread(by_step: dict[int, list[Example]], count: int) -> list[Example]:
    """Return the examples of `count` steps: the last, the first, and others evenly between."""
    steps = sorted(by_step)
    places = np.linspace(len(steps) - 1, 0, min(count, len(steps))).round().astype(int)
    return [example for place in sorted(set(places.tolist())) for example in by_step[steps[place]]]


def examples(runs: Iterable[Run], budget: int = BUDGET) -> list[Example]:
    """Return examples of the first finished seed of every arm: the first rollout of each kind in a step.

    All steps where they fit into `budget` bytes of the page, else as many of each arm as fit, the last one
    before all others; where even those do not fit, the first of them that do. Raises UserError with the path
    where a rollouts file is damaged.
    """
    firsts: dict[str, Run] = {}
    for run in runs:
        firsts.setdefault(arm_of(run.cell.id), run)
    arms: dict[str, dict[int, list[Example]]] = {}
    for arm, run in firsts.items():
        path = run.folder / ROLLOUTS
        if not path.exists():
            continue
        frame = read_parquet(path, [*TEXTS, *FLAGS])
        _check(frame, path)
        for row in frame.drop_duplicates(["step", "channel", "gt_pass"]).to_dict("records"):
            example = Example.read(run.cell.id, row)
            arms.setdefault(arm, {}).setdefault(example.step, []).append(example)
    most = max((len(by_step) for by_step in arms.values()), default=0)
    for count in range(most, 0, -1):
        found = [example for by_step in arms.values() for example in _spread(by_step, count)]
        if sum(example.size for example in found) <= budget:
            return found
    lasts = [example for by_step in arms.values() for example in _spread(by_step, 1)]
    sizes = np.cumsum([example.size for example in lasts])
    return lasts[: int(np.searchsorted(sizes, budget, side="right"))]
