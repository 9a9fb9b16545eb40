"""`projected-grpo doses RESULTS`: which dose of each arm the rule of docs/defences.md chooses, from Q17's table."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

SPARED = 0.05  # how much of vanilla's plain solve rate a dose may cost
BEST = 4


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `doses`; the parsed arguments carry `run`, called with them."""
    parser = subparsers.add_parser(
        "doses",
        help="choose the dose of each arm on the tuning seeds",
        description="Print the dose of each arm that has the lowest known hack at a plain solve rate of at least "
        f"vanilla's - {SPARED}, else the smallest; then the best arms at those doses.",
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results folder of the tuning seeds")
    parser.set_defaults(run=doses)


def doses(args: argparse.Namespace) -> None:
    """Print the choice. Raises UserError where Q17's table is missing or is no plane."""
    from projected_grpo.pages.standing import TUNING
    from projected_grpo.parquet import read_arrow

    path = args.results / "Q17.parquet"
    frame = read_arrow(path).to_pandas()
    chosen = choose(frame)
    print(chosen.to_string(index=False, float_format="{:.3f}".format))
    print(f"\nbest, no oracle: {', '.join(best(frame, chosen)[:BEST])}")
    seeds = sorted({seed for said in frame["seeds"] for seed in said.split(";") if seed})
    if not all(int(seed) in TUNING for seed in seeds):
        print(f"\nseeds {', '.join(seeds)}: not those that doses are chosen on ({TUNING[0]}-{TUNING[-1]})")


def choose(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a row a curve: arm, knob, the chosen row and its value, what it measures, whether any dose qualified.

    frame: `Q17.parquet`. A curve whose rows were not all judged is left out of nothing: what is null never qualifies.
    Raises UserError where the frame has no vanilla or no curve.
    """
    import pandas as pd

    from projected_grpo.measures.plane import curves

    missing = [name for name in ("knobs", "family", "known_hack", "plain_solve") if name not in frame]
    vanilla = frame[frame["baseline"].isna() & (frame["arm"] == "vanilla")]
    if missing or len(vanilla) != 1 or vanilla["plain_solve"].isna().any():
        raise UserError("Q17.parquet: no plane with a judged vanilla row; make it with all its runs")
    least = vanilla["plain_solve"].iloc[0] - SPARED
    known = frame[~frame["family"].isin(("less", "none")) & ~frame["is_control"]].set_index("row", drop=False)
    said = zip(known["row"], known["arm"], map(json.loads, known["knobs"]), strict=True)
    records = []
    for curve in curves(said):
        own = known.loc[list(curve.rows)].assign(value=curve.values)
        fine = own[(own["plain_solve"] >= least) & own["known_hack"].notna()]
        row = fine.loc[fine["known_hack"].idxmin()] if len(fine) else own.iloc[0]
        record = {"arm": curve.arm, "knob": curve.knob, "row": row["row"], "value": row["value"]}
        measured = {name: row[name] for name in ("known_hack", "plain_solve")}
        records.append(record | measured | {"qualified": f"{len(fine)} of {len(own)}"})
    if not records:
        raise UserError("Q17.parquet: no arm with three doses")
    return pd.DataFrame(records)


def best(frame: "pd.DataFrame", chosen: "pd.DataFrame") -> list[str]:
    """Return the rows of chosen doses, or of arms without one, by known honest - known hack, one an arm, no oracle."""
    own = frame[
        ~frame["family"].isin(("less", "none")) & ~frame["is_control"] & (frame["must_give"] != "oracle")
    ]
    own = own[own["row"].isin(chosen["row"]) | ~own["arm"].isin(chosen["arm"])]
    ranked = own.assign(over=own["known_honest"] - own["known_hack"]).dropna(subset="over")
    return list(ranked.sort_values("over", ascending=False).drop_duplicates("arm")["row"])
