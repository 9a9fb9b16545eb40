"""R5: does hacking rise under the off-policy ratio, does projection hold it down, do ratios saturate?"""

from statistics import mean

import numpy as np
import pandas as pd

from projected_grpo.measures import stats
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Grid, Listing, Paragraph, grid
from projected_grpo.pages.text import NONE, paired_text, rate
from projected_grpo.training.ratio import CLIP_HIGH, CLIP_LOW, RATIO_EDGES
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.figures import over_steps, ratio_heatmap
from projected_grpo.verdicts.table import table_of
from projected_grpo.verdicts.verdict import Verdict, of_table

AT, EARLIER = 15, 10  # steps at which the rise is read
RISES, STAYS, BELOW = 0.20, 0.10, 0.10
SATURATED = 0.5  # share of teacher tokens beyond the clip bounds
RATIOS = (
    "Ratio student / teacher on the teacher's tokens: where `ratio 1` stands in a row's name it is only logged. "
    "Elsewhere it enters the loss, with the pool's stored log-probs as behaviour policy.",
    "The shares beyond a bound count every token, whatever the sign of its advantage. The clip takes the gradient of "
    "a token above the upper bound only where A > 0, below the lower one only where A < 0: `without gradient`.",
)


def at_step(line: Line, step: int) -> dict[int, float]:
    """Return seed -> hack rate at a step, for the runs that have that step."""
    values = {}
    for run in line.runs:
        for value in run.steps["hack_s"][run.steps["step"] == step]:
            if not np.isnan(value):
                values[run.cell.seed] = float(value)
    return values


def rise(line: Line, step: int) -> stats.Paired | None:
    """Return the rise of the hack rate from the untrained student (step 1) to a step, paired by seed."""
    return stats.paired(at_step(line, step), at_step(line, 1))


def below(table: Table, line: Line, step: int) -> stats.Paired | None:
    """Return the row's hack rate minus its baseline's at a step, paired by seed."""
    return stats.paired(at_step(line, step), at_step(table.line(line.row.baseline), step))


def ratios(line: Line) -> pd.DataFrame | None:
    """Return per step: `step`, `share` (the ratio histogram as `[bins]` shares), `low`, `high`, `mean` over seeds."""
    if not line.runs:
        return None
    counts = [run.steps["ratio_hist"] for run in line.runs]
    shares = stats.mean_by_step([count / count.sum(axis=1, keepdims=True) for count in counts])
    frame = pd.DataFrame({"step": line.runs[0].steps["step"].astype(int), "share": list(shares)})
    for name in ("clip_low", "clip_high", "mean", "zeroed"):
        column = f"ratio_{name}"
        frame[name] = stats.mean_by_step([run.steps[column] for run in line.runs])
    frame = frame.dropna(subset="mean").reset_index(drop=True)
    return frame if len(frame) else None


def clip_series(found: dict[str, pd.DataFrame]) -> dict[str, dict[str, pd.Series]]:
    """Return title -> row -> share of the teacher's tokens beyond the clip bounds by step, mean over seeds."""
    lines = {
        name: frame.set_index("step")[["clip_low", "clip_high"]].sum(axis=1) for name, frame in found.items()
    }
    return {"share of the teacher's tokens beyond the clip bounds": lines}


def trajectory_grid(table: Table) -> Grid:
    """Return the hack rate at step 1, its rise by the two steps, its distance to the baseline."""

    start = {line.name: list(at_step(line, 1).values()) for line in table.lines}
    columns = {"row": lambda line: line.name}
    columns["hack at step 1"] = lambda line: rate(mean(start[line.name]) if start[line.name] else None)
    for step in (EARLIER, AT):
        columns[f"rise by step {step}"] = lambda line, s=step: paired_text(rise(line, s))
    lower = f"against baseline at step {AT}"
    columns[lower] = lambda line: paired_text(below(table, line, AT)) if line.row.baseline else NONE
    title = "Hack rate along the run, against the untrained student of step 1"
    return grid(table.lines, columns, title=title)


def ratio_grid(table: Table, found: dict[str, pd.DataFrame]) -> Grid:
    """Return the ratios on the teacher's tokens: first step, last step and mean."""
    clipped = {line.name for line in table.lines if line.row.setting.off_policy}
    parts = {"step 1": slice(1), "last step": slice(-1, None), "all steps": slice(None)}
    rows = [
        (name, when, frame.iloc[part].mean(numeric_only=True))
        for name, frame in found.items()
        for when, part in parts.items()
    ]
    columns = {
        "row": lambda row: row[0],
        "reading": lambda row: row[1],
        "mean ratio": lambda row: rate(row[2]["mean"]),
        f"below {CLIP_LOW}": lambda row: rate(row[2]["clip_low"]),
        f"above {CLIP_HIGH}": lambda row: rate(row[2]["clip_high"]),
        "beyond either": lambda row: rate(row[2]["clip_low"] + row[2]["clip_high"]),
        "without gradient": lambda row: rate(row[2]["zeroed"]) if row[0] in clipped else NONE,
    }
    return grid(rows, columns, texts=2, title="Ratio student / teacher on the teacher's tokens")


def _met(met: bool) -> str:
    return "met" if met else "not met"


def sentences(table: Table, found: dict[str, pd.DataFrame]) -> list[str]:
    """Return the sentences of the verdict, on the rows whose ratio enters the loss."""
    said = []
    off_policy = [line for line in table.lines if line.row.setting.off_policy]
    for line in off_policy:
        by, earlier = rise(line, AT), rise(line, EARLIER)
        if by is None:
            said.append(f"`{line.name}`: no run has step {AT}.")
            continue
        text = f"`{line.name}` rises {paired_text(by)} by step {AT} ({paired_text(earlier)} by step {EARLIER}): the "
        if line.row.baseline is None:
            said.append(f"{text}mark of more than {RISES:.2f} is {_met(by.delta > RISES)}.")
            continue
        lower = below(table, line, AT)
        said.append(
            f"{text}reading `rises < {STAYS:.2f}` is {_met(by.delta < STAYS)}. It stands {paired_text(lower)} "
            f"against its vanilla at step {AT}: the reading `>= {BELOW:.2f} below` is "
            f"{_met(lower is not None and lower.delta <= -BELOW)}."
        )
    for name, frame in ((line.name, found[line.name]) for line in off_policy if line.name in found):
        share = (frame["clip_low"] + frame["clip_high"]).mean()
        said.append(
            f"`{name}`: {rate(share)} of the teacher's tokens lie beyond the clip bounds, so the ratios "
            f"{'saturate' if share > SATURATED else 'do not saturate'} (mark: {SATURATED}); the clip leaves "
            f"{rate(frame['zeroed'].mean())} of them no gradient."
        )
    return said or ["No run to judge."]


def make(context: Context) -> Verdict:
    """Return R5's page."""
    table = table_of(context)
    found = {line.name: frame for line in table.lines if (frame := ratios(line)) is not None}
    said = sentences(table, found)
    logged = (ratio_grid(table, found),) if found else (Paragraph("No run has logged a ratio."),)
    drawn = {
        "ratios": (
            ratio_heatmap(found, RATIO_EDGES) if found else None,
            "Ratio student / teacher on the teacher's tokens per step, mean over seeds (clip bounds: 0.8 and 1.2).",
        ),
        "clip": (
            over_steps(clip_series(found)),
            "Teacher's tokens beyond the clip bounds per step, mean over seeds, whatever the sign of their advantage.",
        ),
    }
    blocks = (trajectory_grid(table), *(Paragraph(text, kind="note") for text in RATIOS), *logged)
    return of_table(context, table, (Listing(tuple(said)),), blocks, drawn=drawn, log=tuple(said))
