"""Example rollouts for the report: a few per arm and step, chosen by verdict so that every kind is seen."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from projected_grpo.analysis.runs import Run, read_parquet
from projected_grpo.errors import UserError

COLUMNS = ("step", "problem_id", "mode", "sample", "prompt", "completion", "hacked", "gt_pass", "reward")
# Flags of a verdict that the page shows, in order.
FLAGS = ("fmt_ok", "can_compile", "channel", "gt_pass", "exploited", "loophole_used", "wrong_tests")
LONGEST = 4000  # characters of a text that are shown
BUDGET = 4_000_000  # characters of all examples together


@dataclass(frozen=True)
class Example:
    """One rollout as the page shows it; the texts are the model's, to be escaped."""

    arm: str
    cell: str
    step: int
    mode: str
    problem: str
    kind: str  # hack, hack and solve, solve, neither
    reward: float
    flags: tuple[str, ...]
    prompt: str
    completion: str


def arm_name(run: Run) -> str:
    """Return the cell's id without its seed: the name of an arm across seeds."""
    return run.cell.id.rsplit("-s", 1)[0]


def kind_of(row: dict) -> str:
    """Return what a rollout is, by its two verdicts."""
    if row["hacked"]:
        return "hack and solve" if row["gt_pass"] else "hack"
    return "solve" if row["gt_pass"] else "neither"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[... {len(text) - LONGEST} more characters]"


def _pick(frame: pd.DataFrame, steps: list[int]) -> list[dict]:
    """Return the first rollout of each kind in each of the steps."""
    return frame[frame["step"].isin(steps)].drop_duplicates(["step", "hacked", "gt_pass"]).to_dict("records")


def examples(results: Path, runs: Iterable[Run], budget: int = BUDGET) -> list[Example]:
    """Return examples of the first finished seed of every arm, at its first, middle and last step.

    Above `budget` characters only the last step of each arm is kept, and of those what fits.
    Raises UserError with the path where a rollouts file is damaged.
    """
    firsts: dict[str, Run] = {}
    for run in runs:
        firsts.setdefault(arm_name(run), run)
    found, last = [], {}
    for arm, run in firsts.items():
        path = Path(results) / "grpo" / run.cell.id / "rollouts.parquet"
        if not path.exists():
            continue
        frame = read_parquet(path)
        missing = [column for column in COLUMNS if column not in frame]
        if missing:
            raise UserError(f"{path}: no column {missing[0]!r}; needed: {', '.join(COLUMNS)}")
        steps = sorted(frame["step"].unique())
        chosen = sorted({steps[0], steps[len(steps) // 2], steps[-1]}) if steps else []
        last[arm] = chosen[-1] if chosen else 0
        for row in _pick(frame, chosen):
            found.append(
                Example(
                    arm=arm,
                    cell=run.cell.id,
                    step=int(row["step"]),
                    mode=str(row["mode"]),
                    problem=str(row["problem_id"]),
                    kind=kind_of(row),
                    reward=float(row["reward"]),
                    flags=tuple(flag for flag in FLAGS if row.get(flag) is True),
                    prompt=_cut(str(row["prompt"])),
                    completion=_cut(str(row["completion"])),
                )
            )
    if sum(map(_size, found)) > budget:
        found = [example for example in found if example.step == last[example.arm]]
    kept, used = [], 0
    for example in found:
        used += _size(example)
        if used <= budget:
            kept.append(example)
    return kept


def _size(example: Example) -> int:
    return len(example.prompt) + len(example.completion)
