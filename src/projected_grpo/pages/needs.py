"""Which files each page reads beside the runs of its question. Rules plan with this: it draws nothing."""

from collections.abc import Callable, Iterable

from projected_grpo.cells.cell import Cell
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.measures import beside
from projected_grpo.measures.measure import ROLLOUTS, STEPS
from projected_grpo.pages.context import Context

MATRIX = "grader/matrix.json"
CRITIC_FILES = ("run.json", "evaluations.parquet", "cards.parquet")
GRID_FILES = ("run.json", "evaluations.parquet")
# What the page of the small model looks at, and nothing else: plain GRPO, and GRPO whose reward is the hidden tests.
SUBSTRATE_RUNS: dict[str, dict] = {
    "vanilla, mix 0.125": {"mix": 0.125},
    "vanilla, mix 0": {"mix": 0.0},
    "gt_only, mix 0": {"arm": "gt_only", "mix": 0.0},
    "gt_only, mix 0, long": {"arm": "gt_only", "mix": 0.0, "preset": "long"},
}


def question(context: Context) -> list[str]:
    """Return what other stages measured of a question's runs."""
    return context.below(*beside.files(context.question, context.config))


def probe(context: Context) -> list[str]:
    """Return the replays."""
    folders = [folder for each in replay_folders(context).values() for folder in each.values()]
    return context.below(
        *(path for folder in folders for path in beside.replay_files(folder, context.config))
    )


def replay_folders(context: Context) -> dict[int, dict[str, str]]:
    """Return by replication the folder of each replay: the probe's own two, then those of other bases."""
    config, found = context.config, {}
    for seed in config.seeds if config.is_replicated else config.seeds[:1]:
        model = config.model_name(seed)
        found[seed] = {arm: f"{arm}_seed{seed}" for arm in ("vanilla", "projected")}
        found[seed] |= {
            name: f"{model}/{config.basis_file(name, seed)}/vanilla" for name in config.probe.compare
        }
    return found


def critic(context: Context) -> list[str]:
    """Return the critic's rounds, and the rollouts that its traces come from."""
    return _rounds(context, [f"self_taught/{model}" for model in context.models], CRITIC_FILES)


def critic_grid(context: Context) -> list[str]:
    """Return the rounds of all four critics, and the rollouts that they are measured on."""
    folders = [folder for by_seed in context.critics().values() for folder in by_seed.values()]
    return _rounds(context, folders, GRID_FILES)


def _rounds(context: Context, folders: Iterable[str], names: Iterable[str]) -> list[str]:
    traced = [path for seed in context.models.values() for path in traced_rollouts(context, seed)]
    return [*context.below(*(f"{folder}/{name}" for folder in folders for name in names)), *traced]


def traced_rollouts(context: Context, seed: int) -> list[str]:
    """Return where a replication's traces come from."""
    return context.below(*(f"grpo/{cell.id}/{ROLLOUTS}" for cell in context.traced(seed)))


def substrate(context: Context) -> list[str]:
    """Return the rates of base and teacher, and the runs."""
    rates = (f"models/{model}/rates.json" for model in context.models)
    cells = (cell for name in SUBSTRATE_RUNS for cell in substrate_cells(context, name).values())
    runs = (f"grpo/{cell.id}/{file}" for cell in cells for file in (STEPS, ROLLOUTS, "run.json"))
    return context.below(*rates, *runs)


def substrate_cells(context: Context, name: str) -> dict[int, Cell]:
    """Return seed -> the cell of one of the runs that the small model's page looks at."""
    setting = make_setting(SUBSTRATE_RUNS[name])
    return {seed: context.run(setting, seed) for seed in context.models.values()}


# A/A needs the runs alone.
NEEDS: dict[str, Callable[[Context], list[str]]] = {
    "aa": lambda _: [],
    "grader": lambda context: context.below(MATRIX),
}
NEEDS |= {need.__name__: need for need in (question, probe, critic, critic_grid, substrate)}
