"""What other stages measured of runs: rankings, replays, overlaps, early ends. It joins the runs' own numbers.

Each source is files of a question's run below the results folder, and what reads its numbers off them. Rules plan with
this: it imports no statistics.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from projected_grpo.cells.cell import Cell, Question
from projected_grpo.cells.check_questions import DETECTOR, PROBES
from projected_grpo.cells.config import Config
from projected_grpo.cells.run_settings import Use
from projected_grpo.files import read_json

Found = dict[str, float | None]  # measure -> value of one run
Source = tuple[Cell, list[str], Callable[[list[Path]], Found]]  # a run, files beside it, what reads them
REFERENCE = "own_mode"  # the pairs of the exploits themselves, which every other set is held against


def n_steps(config: Config) -> int:
    """Return how many problems of a pool have the probe's hint: the modes stand in rotation."""
    probe, modes = config.probe, config.pool.modes
    return min(len(range(modes.index(probe.mode), config.pool.problems, len(modes))), probe.problems)


def replay_files(folder: str, config: Config) -> list[str]:
    """Return the step files of a replay, below the results folder; folder: below its `probe`."""
    return [f"probe/{folder}/step_{step:03d}.jsonl.gz" for step in range(n_steps(config))]


def early_ends(question: Question) -> dict[str, Cell]:
    """Return the runs of a plane whose earlier steps are points of its frontier, plain training's, by their file."""
    names = {row.baseline for row in question.rows if row.baseline}
    rows = [row for row in question.rows if {row.name} == names and question.kind == "plane"]
    cells = [cell for row in rows for cell in row.cells if row.setting.adapter == "antipasto"]
    return {f"stopped/{cell.id}.parquet": cell for cell in cells}


def uses(question: Question, model: str, config: Config) -> list[tuple[str, Use]]:
    """Return basis and use of the rows of a model whose axes come from pairs, each once, sorted."""
    found = {
        (cell.setting.basis, cell.use)
        for cell in question.cells
        if cell.model == model and cell.basis and cell.setting.adapter == "antipasto"
    }
    real = [(basis, use) for basis, use in found if basis and use and config.knobs(basis).control == "none"]
    return sorted(real, key=lambda pair: (pair[0], pair[1].k, pair[1].drop_bottom_frac))


def files(question: Question, config: Config) -> list[str]:
    """Return the files that stand beside a question's runs, below the results folder."""
    named = (file for _, files, _ in _sources(question, config) for file in files)
    return list(dict.fromkeys([*named, *early_ends(question)]))


def numbers(question: Question, config: Config) -> Iterator[tuple[Cell, dict[str, float]]]:
    """Yield each run with its numbers of other stages; one without the files has none."""
    for cell, files, read in _sources(question, config):
        paths = [Path(config.results) / file for file in files]
        if all(path.exists() for path in paths):
            yield cell, {name: float(value) for name, value in read(paths).items() if value is not None}


def _sources(question: Question, config: Config) -> Iterator[Source]:
    probe = PROBES.get(question.name)
    frozen = [cell for cell in question.cells if cell.basis and not cell.setting.knob("refresh")]
    if question.name == DETECTOR:
        for cell in question.cells:
            yield cell, [f"detector/{cell.id}.parquet"], partial(_ranking, subject=config.detector.pairs)
    for cell in frozen if probe else ():
        if config.knobs(str(cell.setting.basis)).control == "none":
            yield cell, replay_files(f"{cell.model}/{cell.basis}/vanilla", config), _t4
            if probe == "adapter":
                yield cell, [f"probe/drift/{cell.id}.json"], _drift
    if probe == "loss":
        yield from _losses(question, config)
    if question.kind == "trend":
        used = {cell.model: uses(question, cell.model, config) for cell in question.cells}
        for cell in (cell for cell in question.cells if used[cell.model]):
            yield cell, [f"probe/overlaps/{question.name}/{cell.model}.json"], partial(_overlap, cell=cell)


def _losses(question: Question, config: Config) -> Iterator[Source]:
    """Yield each run along a GRPO basis, whose tensor is compared with that of the NLL."""
    based = [(row, config.knobs(basis)) for row in question.rows if (basis := row.setting.basis)]
    twins = {own.pairs: row.cells for row, own in reversed(based) if own.loss == "nll"}
    for row, own in based:
        for cell, other in zip(row.cells, twins.get(own.pairs, ()), strict=False):
            if own.loss == "grpo":
                yield cell, [f"probe/{cell.model}/{other.basis}-vs-{cell.basis}.json"], _loss


def _ranking(paths: list[Path], subject: str) -> Found:
    from projected_grpo.measures.detector import ranking_numbers

    return dict(ranking_numbers(paths[0], subject))


def _t4(paths: list[Path]) -> Found:
    from projected_grpo.measures import replays

    return {"t4": replays.readings(replays.read_replay(paths[0].parent, len(paths)).samples)["t4"].t}


def _drift(paths: list[Path]) -> Found:
    return {"overlap_fresh": read_json(paths[0])["overlap_fresh"]}


def _loss(paths: list[Path]) -> Found:
    found = read_json(paths[0])
    return {"overlap_losses": found["overlap"], "overlap_reweighted": found["overlap_reweighted"]}


def _overlap(paths: list[Path], cell: Cell) -> Found:
    """Return how the run's axes lie beside the exploits' own, of all bases on its model."""
    use, bases = cell.use, read_json(paths[0])["bases"]
    own = [one for one in bases if use and cell.basis == one["basis"] and use.k == one["k"]]
    return {name: one[name] for one in own for name in ("overlap", "cosine")}
