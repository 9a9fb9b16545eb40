"""Example rollouts for the report: per arm and step, chosen by verdict so that every kind is seen."""

from collections.abc import Iterable, Iterator
from html import escape
from types import SimpleNamespace

import numpy as np
import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.measures.measure import ROLLOUTS
from projected_grpo.measures.runs import FACTS, Run, read_facts

# Facts that the page shows, in order, and what stands beside them.
FLAGS = ("fmt_ok", "can_compile", "channel", "gt_pass", "loophole_used", "wrong_tests")
TEXTS = ("problem_id", "mode", "prompt", "completion", "error")
LONGEST = 4000  # characters of a text that are shown
BUDGET = 4_500_000  # bytes of the page that all examples together may take
MARKUP = 1100  # bytes of the page around one example's texts

# One rollout as the page shows it (`_of_run`); the texts are the model's, to be escaped.
Example = SimpleNamespace


def arm_of(cell: str) -> str:
    """Return the name that the runs of all seeds share."""
    return cell.rsplit("-s", 1)[0]


def _cut(text: str) -> str:
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]}\n[... {more} more characters]"


def _of_run(run: Run) -> Iterator[Example]:
    """Yield the first rollout of each kind in a step; UserError with the path on rows that no run writes.

    flags: None where the grader gives no such verdict; kind: by its two verdicts; size: about its bytes of the page.
    """
    path = run.folder / ROLLOUTS
    own = [flag for flag in FLAGS if flag not in FACTS]
    frame = read_facts(path, own, ("step", "reward"), TEXTS)
    if frame.empty:
        raise UserError(f"{path}: no rollout; delete the run's folder to remake it")
    for name in ("step", "reward", "channel"):
        if frame[name].isna().any():
            raise UserError(
                f"{path}: column {name!r} is empty in a row; delete the run's folder to remake it"
            )
    for row in frame.drop_duplicates(["step", "channel", "gt_pass"]).to_dict("records"):
        flags = {flag: None if pd.isna(row[flag]) else bool(row[flag]) for flag in FLAGS}
        texts = {key: "" if pd.isna(row[key]) else _cut(str(row[key])) for key in TEXTS}
        seen = [word for word, flag in (("hack", "channel"), ("solve", "gt_pass")) if flags[flag]]
        kind = " and ".join(seen) or ("not judged" if flags["gt_pass"] is None else "neither")
        size = MARKUP + sum(len(escape(texts[key]).encode()) for key in ("prompt", "completion"))
        named = {"arm": arm_of(run.cell.id), "cell": run.cell.id, "step": int(row["step"])}
        yield Example(**named, **texts, reward=row["reward"], flags=flags, kind=kind, size=size)


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
    for run in firsts.values():
        for example in _of_run(run) if (run.folder / ROLLOUTS).exists() else ():
            arms.setdefault(example.arm, {}).setdefault(example.step, []).append(example)
    found: list[Example] = []
    for count in range(max(map(len, arms.values()), default=0), 0, -1):
        found = [example for by_step in arms.values() for example in _spread(by_step, count)]
        if sum(example.size for example in found) <= budget:
            break
    sizes = np.cumsum([example.size for example in found])
    return found[: int(np.searchsorted(sizes, budget, side="right"))]
