"""How well directions rank the hacks of a run (Q18), as numbers of that run.

`results/detector/{cell}.parquet` has a row per window of steps, score and direction (`stages/detector.py`). In the
first and the last window: AUROC of the direction that is asked about, the same less the mean of random directions and
of placebo pair sets, the share of random directions that it lies above, the oracle's and the ceiling's, and its own
over unmatched pairs.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.parquet import read_parquet

CONCEPT, ALIGNMENT = "concept", "alignment"
LEAST = 20  # pairs of a window: with fewer a run has no AUROC there
COLUMNS = ("score", "direction", "first", "last", "pairs", "auroc", "auroc_unmatched", "recall")


def ranking_numbers(path: Path, subject: str) -> dict[str, float]:
    """Return measure -> number of a run's rankings. Raises UserError on a file without the subject."""
    frame = read_parquet(path, COLUMNS)
    if subject not in set(frame["direction"]):
        raise UserError(f"{path}: has no direction {subject!r}; delete it to remake it")
    start, end = frame["first"].min(), frame["first"].max()  # the run's, whatever pairs they have
    frame = frame[frame["pairs"].astype(float) >= LEAST].astype({"auroc": float})
    found: dict[str, Any] = {}
    for name, at in (("first", start), ("last", end)):
        own = frame[frame["first"].eq(at) & frame["direction"].eq(subject)].set_index("score")["auroc"]
        found |= {f"auroc_{name}": own.get(CONCEPT), f"auroc_alignment_{name}": own.get(ALIGNMENT)}
    last = frame[frame["first"].eq(end) & frame["score"].eq(CONCEPT)]
    kinds = last["direction"].str.replace(r"_\d+$", "", regex=True)
    means, drawn = last["auroc"].groupby(kinds).mean(), last.loc[kinds.eq("random"), "auroc"]
    for one in last[last["direction"].eq(subject)].itertuples():
        found |= {"recall_last": one.recall, "auroc_unmatched": one.auroc_unmatched}
        found |= {f"auroc_{kind}": means.get(kind) for kind in ("oracle", "ceiling")}
        others = means[means.index.str.fullmatch("random|placebo_.*")]
        found |= {
            f"auroc_over_{str(kind).removeprefix('placebo_')}": one.auroc - mean
            for kind, mean in others.items()
        }
        found["auroc_rank"] = drawn.lt(one.auroc).mean()
    return {key: float(value) for key, value in found.items() if not pd.isna(value)}
