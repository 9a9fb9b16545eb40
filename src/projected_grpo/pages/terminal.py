"""What a call that made pages says at its end: means of three rows, then what so few seeds let them say."""

from collections.abc import Iterator
from pathlib import Path

from projected_grpo.measures import estimates as table
from projected_grpo.pages.words import percent, points
from projected_grpo.parquet import read_parquet

LINES = 3
RATES = ("hack", "honest")
CLAIM = 10  # seeds that a claim is made at


def lines(page: Path) -> Iterator[str]:
    """Yield the means of a question's baseline and first claims, with the change of each hack rate, and a caution."""
    path = page.with_suffix(".estimates.parquet")
    if not path.exists():
        return
    frame = read_parquet(path, ["row", "contrast", "to", "measure", "mean", "delta", "n", "p_holm"])
    rates = frame[frame["contrast"].eq(table.RATE) & frame["measure"].isin(RATES) & frame["n"].gt(0)]
    held = frame[frame["contrast"].eq(table.BASELINE)]
    hacking = held[held["measure"].eq("hack") & held["delta"].notna()]
    changes = {(one.row, "hack"): f" ({points(one.delta)} points)" for one in hacking.itertuples()}
    order = [*held["to"], *held.loc[held["p_holm"].notna(), "row"], *rates["row"]]
    for row in list(dict.fromkeys(order))[:LINES]:
        said = [
            f"{one.measure} {percent(one.mean)}{changes.get((row, one.measure), '')}"
            for one in rates[rates["row"].eq(row)].itertuples()
        ]
        if said:
            yield f"{row}: {', '.join(said)}"
    most = int(frame["n"].max()) if len(frame) else 0
    if 0 < most < CLAIM:
        yield f"{most} seed{'' if most == 1 else 's'}: a look. Claims are made at {CLAIM}."
