"""Rows of a question that differ in one knob of their basis (LoRA or SVD space, NLL or GRPO loss), and T4 of both."""

from collections.abc import Mapping
from dataclasses import dataclass

from projected_grpo.cells.cell import Row
from projected_grpo.cells.setting import Setting
from projected_grpo.measures import stats
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Grid, Listing, Source, grid
from projected_grpo.pages.text import NONE, p_value
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.replays import Sides, files, n_steps, read_replay, t4, t4_problem_means
from projected_grpo.verdicts.table import table_of

# What a twin may differ in beside the basis: the adapter is the knob itself in R6 and brings its own rate.
FREE = ("basis", "adapter", "lr")


@dataclass(frozen=True)
class Twins:
    """Two rows alike but for one knob: `reference` has the default, `other` the new value."""

    reference: Row
    other: Row

    @property
    def bases(self) -> tuple[str, str]:
        return self.reference.setting.basis, self.other.setting.basis


def _rest(setting: Setting, context: Context, knob: str) -> tuple[dict, dict]:
    own = setting.model_dump(exclude={"knobs"}) | setting.knobs.model_dump()
    own = {key: value for key, value in own.items() if key not in FREE}
    return own, context.config.knobs(setting.basis).model_dump(exclude={knob})


def twins(context: Context, knob: str) -> list[Twins]:
    """Return the twin rows of the question that use a basis; the knob's default is that of the config's `basis`."""
    rows = [row for row in context.question.rows if row.setting.basis]
    default = getattr(context.config.basis, knob)
    rest = {row.name: _rest(row.setting, context, knob) for row in rows}
    plain = [row for row in rows if getattr(context.config.knobs(row.setting.basis), knob) == default]
    found = []
    for row in (row for row in rows if row not in plain):
        same = [other for other in plain if rest[other.name] == rest[row.name]]
        found += [Twins(reference, row) for reference in same[:1]]
    return found


def replay_folders(context: Context, knob: str) -> dict[str, dict[int, str]]:
    """Return basis -> seed -> folder (below results/probe/) of the vanilla replays that T4 needs."""
    folders: dict[str, dict[int, str]] = {}
    for pair in twins(context, knob):
        for row in (pair.reference, pair.other):
            for cell in row.cells:
                seeds = folders.setdefault(row.setting.basis, {})
                folder = f"{cell.model}/{cell.basis}/vanilla"
                if folder not in seeds.values():  # seeds that share model and basis share the replay
                    seeds[cell.seed] = folder
    return folders


def replay_files(context: Context, knob: str) -> list[str]:
    """Return the step files of all of them, below the results folder."""
    folders = [folder for own in replay_folders(context, knob).values() for folder in own.values()]
    return [path for folder in folders for path in files(folder, context.config)]


def sources(context: Context, knob: str) -> tuple[Source, ...]:
    """Return what stands behind the bases in tables of T4."""
    folders = replay_folders(context, knob).items()
    return tuple(Source(basis, files=tuple(f"probe/{f}" for f in own.values())) for basis, own in folders)


@dataclass(frozen=True)
class Sight:
    """T4 of one basis on every replication's pool."""

    basis: str
    samples: dict[int, Sides]
    problems: dict[int, Sides]  # over per-problem means

    @property
    def t(self) -> dict[int, float]:
        return {seed: sides.t for seed, sides in self.samples.items() if sides.t is not None}


def read_sights(context: Context, knob: str) -> dict[str, Sight]:
    """Read the replays of all twins' bases and compute T4 of each."""
    sights, steps = {}, n_steps(context.config)
    for basis, by_seed in replay_folders(context, knob).items():
        replays = {seed: read_replay(context.results / "probe" / f, steps) for seed, f in by_seed.items()}
        sights[basis] = Sight(
            basis,
            {seed: t4(replay.samples) for seed, replay in replays.items()},
            {seed: t4_problem_means(replay.samples) for seed, replay in replays.items()},
        )
    return sights


def t4_grid(sights: Mapping[str, Sight]) -> Grid:
    """Return T4 per basis and seed."""

    def shown(sides: Sides | None) -> str:
        if sides is None or sides.t is None:
            return f"{sides.short} short" if sides and sides.short else NONE
        return f"{sides.t:.2f}"

    def mean(by_seed: Mapping[int, Sides]) -> str:
        ts = [sides.t for sides in by_seed.values() if sides.t is not None]
        return f"{sum(ts) / len(ts):.2f}" if ts else NONE

    def passed(by_seed: Mapping[int, Sides]) -> str:
        return f"{sum(sides.passed for sides in by_seed.values())} of {len(by_seed)}"

    columns = {"basis": lambda sight: sight.basis}
    for seed in sorted({seed for sight in sights.values() for seed in sight.samples}):
        columns[f"t (seed {seed})"] = lambda sight, s=seed: shown(sight.samples.get(s))
    columns["mean t"] = lambda sight: mean(sight.samples)
    columns["t > 2, p < 0.05"] = lambda sight: passed(sight.samples)
    columns["mean t by problem"] = lambda sight: mean(sight.problems)
    return grid(sights.values(), columns, title="T4 on the same pools")


def compare_t(other: Sight, reference: Sight) -> str:
    """Say on how many replications the other basis's t is at least the reference's, and the paired difference."""
    pair = stats.paired(other.t, reference.t)
    if pair is None:
        return f"`{other.basis}` and `{reference.basis}` have no pool on which both have a t."
    higher = sum(other.t[seed] >= reference.t[seed] for seed in pair.seeds)
    text = f"`{other.basis}` has at least the t of `{reference.basis}` on {higher} of {pair.n} pools "
    text += f"(mean difference {pair.delta:+.2f}"
    text += f", 95% [{pair.lo:+.2f}, {pair.hi:+.2f}], p {p_value(pair.p)}" if pair.lo is not None else ""
    return text + ")."


def t4_blocks(pairs: list[Twins], sights: Mapping[str, Sight]) -> tuple[Listing, Grid]:
    """Return the comparison of the twins' T4, and T4 of every basis."""
    bases = dict.fromkeys(pair.bases for pair in pairs)
    return Listing(tuple(compare_t(sights[other], sights[ours]) for ours, other in bases)), t4_grid(sights)


def read(context: Context, knob: str) -> tuple[Table, list[Twins], dict[str, Sight]]:
    """Return what a page of twins is made of: the question's table, the twins, T4 of their bases."""
    table = table_of(context)
    return table, twins(context, knob), read_sights(context, knob)


def difference(arm: Line, baseline: Line, measure: str) -> stats.Paired | None:
    """Return arm - baseline of one measure, paired by seed, whatever rows they are."""
    return stats.paired(arm.values.get(measure, {}), baseline.values.get(measure, {}))
