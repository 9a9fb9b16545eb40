"""The page of the probe's acceptance tests, T1-T4 of every replication. A FAIL is a result."""

from collections.abc import Mapping

from projected_grpo.measures import replays
from projected_grpo.measures.beside import n_steps
from projected_grpo.pages import stage
from projected_grpo.pages.context import Context
from projected_grpo.pages.needs import replay_folders
from projected_grpo.pages.page import Page


def records_of(seed: int, own: str, read: Mapping[str, replays.Replay]) -> list[stage.Record]:
    """Return the numbers of one replication's replays; rows: the probe's `own` basis, and the others."""
    found = {own: replays.replay_numbers(read["vanilla"], read["projected"])}
    for name, replay in read.items():
        if name != "projected":
            basis = own if name == "vanilla" else name
            found[basis] = found.get(basis, {}) | replays.contrast_numbers(replay)
    return [(row, key, seed, value) for row, by in found.items() for key, value in by.items()]


def make(context: Context) -> Page:
    """Return the acceptance page. Raises UserError where a replay is missing or damaged."""
    probe, steps, records = context.config.probe, n_steps(context.config), []
    for seed, each in replay_folders(context).items():
        read = {name: replays.read_replay(context.results / "probe" / at, steps) for name, at in each.items()}
        records += records_of(seed, probe.basis, read)
    controls = [name for name in probe.compare if context.config.knobs(name).control != "none"]
    shown = [at for each in replay_folders(context).values() for at in each.values()]
    return page_of(context, stage.Numbers(records), [probe.basis, *probe.compare], controls, shown)


def page_of(
    context: Context, numbers: stage.Numbers, bases: list[str], controls: list[str], folders: list[str]
) -> Page:
    """Return the page of these numbers; bases: the probe's own first; controls: those without content."""
    drawn = {"replications": numbers.strip(bases, "t4", "T4: Welch t of wrong hacks against right ones", 2)}
    more = {"own": bases[0], "bases": bases, "controls": controls, "folders": folders}
    return stage.page(context, "probe.md.j2", numbers, drawn, **more)
