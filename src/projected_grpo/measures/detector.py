"""How well directions rank the hacks of a run (Q18), as numbers of that run.

`results/detector/{cell}.parquet` has a row per window of steps, score and direction (`stages/detector.py`). In the
first and the last window: AUROC of the direction that is asked about, the same less the mean of random directions and
of placebo pair sets, the share of random directions that it lies above, the oracle's and the ceiling's, and its own
over unmatched pairs.
"""

import re
from pathlib import Path

import numpy as np

from projected_grpo.errors import UserError
from projected_grpo.parquet import read_parquet

CONCEPT, ALIGNMENT = "concept", "alignment"
RANDOM, ORACLE, CEILING = "random", "oracle", "ceiling"
LEAST = 20  # pairs of a window: with fewer a run has no AUROC there
COLUMNS = ("score", "direction", "first", "last", "pairs", "auroc", "auroc_unmatched", "recall")


def ranking_numbers(path: Path, subject: str) -> dict[str, float]:
    """Return measure -> number of a run's rankings. Raises UserError on a file without the subject."""
    frame = read_parquet(path, COLUMNS)
    if subject not in set(frame["direction"]):
        raise UserError(f"{path}: has no direction {subject!r}; delete it to remake it")
    frame = frame[frame["pairs"].astype(float) >= LEAST]
    found: dict[str, float] = {}
    for name, start in (("first", frame["first"].min()), ("last", frame["first"].max())):
        window = frame[frame["first"].eq(start)]
        own = window[window["direction"].eq(subject)].set_index("score")
        for score, prefix in ((CONCEPT, "auroc"), (ALIGNMENT, "auroc_alignment")):
            if score not in own.index:
                continue
            value = float(own.loc[score, "auroc"])
            found[f"{prefix}_{name}"] = value
            others = window[window["score"].eq(score)]
            drawn = others.loc[others["direction"].eq(RANDOM), "auroc"].astype(float).to_numpy()
            if name == "last" and score == CONCEPT:
                found |= _beside(value, drawn, others, subject)
                found["recall_last"] = float(own.loc[score, "recall"])
                found["auroc_unmatched"] = float(own.loc[score, "auroc_unmatched"])
    return {key: value for key, value in found.items() if not np.isnan(value)}


def _beside(value: float, drawn: np.ndarray, others, subject: str) -> dict[str, float]:
    """Return how a direction lies beside random ones, each population of placebos, the oracle and the ceiling."""
    found = {}
    if len(drawn):
        found = {"auroc_over_random": value - drawn.mean(), "auroc_rank": float((drawn < value).mean())}
    by_kind: dict[str, list[float]] = {}
    for one in others.itertuples():
        kind = re.sub(r"_\d+$", "", one.direction)
        if kind.startswith("placebo_"):
            by_kind.setdefault(kind.removeprefix("placebo_"), []).append(float(one.auroc))
        elif one.direction in (ORACLE, CEILING):
            found[f"auroc_{one.direction}"] = float(one.auroc)
    return found | {f"auroc_over_{kind}": value - np.mean(own) for kind, own in by_kind.items()}
