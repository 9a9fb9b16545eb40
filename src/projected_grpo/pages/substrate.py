"""Is the phenomenon there? Base, teacher and plain GRPO of every replication against the marks they should reach.

The page decides nothing and drops nobody: a replication below a mark stays in every table and is named here.
"""

from projected_grpo.files import read_json
from projected_grpo.measures.measure import MEASURES, honest_by_step
from projected_grpo.measures.runs import Run, load_runs
from projected_grpo.pages import stage
from projected_grpo.pages.context import Context
from projected_grpo.pages.needs import SUBSTRATE_RUNS, substrate_cells
from projected_grpo.pages.page import Page
from projected_grpo.pages.words import short

RATES = ("hack", "solve", "honest")
TAIL = 10  # steps at the end of a long run, held against as many before them


def late_rise(run: Run) -> float:
    """Return the honest rate of the last `TAIL` steps less that of the `TAIL` before them; NaN in a short run."""
    by_step = honest_by_step(run)
    if by_step is None or len(by_step) < 2 * TAIL:
        return float("nan")
    return float(by_step[-TAIL:].mean() - by_step[-2 * TAIL : -TAIL].mean())


def make(context: Context) -> Page:
    """Return the page of the small model.

    Rows: base and teacher on the problems of training, and on held-out ones; the runs at their end. Measures: rates,
    over all modes or by one; `times`: honest by the base's; `room`: the same, at least 2 where a run still rises, None
    where that decides and is not known.
    """
    records: list[stage.Record] = []
    start: dict[int, float] = {}
    for model, seed in context.models.items():
        for who, halves in read_json(context.results / f"models/{model}/rates.json").items():
            for half, by_mode in halves.items():
                row = who if half == "training" else f"{who}, {half.replace('_', '-')}"
                records += [(row, name, seed, by_mode["all"][name]) for name in RATES]
                records += [
                    (row, f"hack_{mode}", seed, own["hack"]) for mode, own in by_mode.items() if mode != "all"
                ]
                start |= {seed: by_mode["all"]["honest"]} if row == "base" else {}
    cells = {name: substrate_cells(context, name) for name in SUBSTRATE_RUNS}
    runs, _ = load_runs(context.results, [cell for own in cells.values() for cell in own.values()])
    modes = [name for name, measure in MEASURES.items() if measure.group == "modes"]
    for name, own in cells.items():
        for seed, run in ((seed, runs[cell.id]) for seed, cell in own.items() if cell.id in runs):
            records += [(name, rate, seed, run.measures.get(rate)) for rate in (*RATES, *modes)]
            times = run.measures["honest"] / max(start[seed], 1e-9)
            rise = late_rise(run)
            room = times if times >= 2 or rise <= 0 else 2.0 if rise > 0 else None
            records += [(name, "times", seed, times), (name, "room", seed, room)]
    numbers = stage.Numbers(records)
    heads = {name: MEASURES[name].head for name in (*RATES, *modes)}
    return stage.page(
        context, "substrate.md.j2", numbers, heads=heads, runs=list(SUBSTRATE_RUNS), cells=short(runs)
    )
