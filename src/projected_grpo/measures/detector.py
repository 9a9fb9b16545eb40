"""How well directions rank the hacks of a run (Q18), as numbers of that run.

`results/detector/{cell}.parquet` has a row per window of steps, score and direction (`stages/detector.py`). In the
first and the last window: AUROC of the direction that is asked about, the same less the mean of random directions and
of placebo pair sets, the share of random directions that it lies above, the oracle's and the ceiling's, and its own
over unmatched pairs.
"""

from pathlib import Path

import numpy as np
import pandas as pd

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
        own = window[window["direction"].eq(subject)].set_index("score")["auroc"]
        found[f"auroc_{name}"] = own.get(CONCEPT, np.nan)
        found[f"auroc_alignment_{name}"] = own.get(ALIGNMENT, np.nan)
    last = frame[frame["first"].eq(frame["first"].max()) & frame["score"].eq(CONCEPT)]
    for one in last[last["direction"].eq(subject)].itertuples():
        found |= {"recall_last": one.recall, "auroc_unmatched": one.auroc_unmatched}
        found |= _beside(one.auroc, last.astype({"auroc": float}))
    return {key: float(value) for key, value in found.items() if not np.isnan(value)}


def _beside(value: float, others: pd.DataFrame) -> dict[str, float]:
    """Return how a direction lies beside random ones, each population of placebos, the oracle and the ceiling."""
    kinds = others["direction"].str.replace(r"_\d+$", "", regex=True)
    means, drawn = others["auroc"].groupby(kinds).mean(), others.loc[kinds.eq(RANDOM), "auroc"]
    found = {f"auroc_{kind}": mean for kind, mean in means.items() if kind in (ORACLE, CEILING)}
    for kind, mean in means.items():
        if kind == RANDOM or str(kind).startswith("placebo_"):
            found[f"auroc_over_{str(kind).removeprefix('placebo_')}"] = value - mean
    return found | ({"auroc_rank": (drawn < value).mean()} if len(drawn) else {})
