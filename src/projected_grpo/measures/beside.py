"""Numbers of runs that other stages measured: rankings, replays, overlaps, early ends. They join the frame as measures.

Each source names files of a question's runs, and reads what they hold by run.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo.cells.cell import Cell, Question
from projected_grpo.cells.check_questions import DETECTOR, PROBES
from projected_grpo.cells.config import Config
from projected_grpo.files import read_json
from projected_grpo.measures import early_stopping, replay_files

if TYPE_CHECKING:
    import pandas as pd

    from projected_grpo.measures.runs import Loaded

Found = dict[str, float | None]  # measure -> value of one run
Reader = Callable[[list[Path], Cell], Found]
Source = tuple[
    list[str], Cell, Reader
]  # files below the results folder, the run, what reads its numbers off them


@dataclass(frozen=True)
class Beside:
    """What stands beside the runs of one question below the results folder."""

    question: Question
    config: Config

    def files(self) -> list[str]:
        """Return the files of all sources that the question has, below the results folder."""
        stopped = [early_stopping.file(cell.id) for cell in early_stopping.cells(self.question)]
        return list(dict.fromkeys([*(file for files, _, _ in self._sources() for file in files), *stopped]))

    def numbers(self) -> "pd.DataFrame":
        """Return the frame of what is there; a run without its files has no such number."""
        import pandas as pd

        from projected_grpo.measures import numbers

        results, records = Path(self.config.results), []
        for files, cell, read in self._sources():
            paths = [results / file for file in files]
            found = read(paths, cell) if all(path.exists() for path in paths) else {}
            known = {measure: float(value) for measure, value in found.items() if value is not None}
            records += [numbers.of_cell(cell) | {"measure": m, "value": value} for m, value in known.items()]
        stopped = numbers.of_stopped(results, [self.question])
        frames = [frame for frame in (pd.DataFrame(records, columns=numbers.COLUMNS), stopped) if len(frame)]
        return pd.concat(frames or [stopped], ignore_index=True)

    def _sources(self) -> Iterator[Source]:
        question, probe = self.question, PROBES.get(self.question.name)
        if question.name == DETECTOR:
            yield from (([f"detector/{cell.id}.parquet"], cell, self._ranking) for cell in question.cells)
        if probe:
            for cell in self._frozen():
                folder = f"{cell.model}/{cell.basis}/vanilla"
                yield replay_files.files(folder, self.config), cell, self._t4
        if probe == "adapter":
            yield from (([f"probe/drift/{cell.id}.json"], cell, _drift) for cell in self._frozen())
        if probe == "loss":
            yield from self._losses()
        if question.kind == "trend":
            from projected_grpo.measures.uses import uses

            models = {cell.model for cell in question.cells}
            used = {model for model in models if uses(question, model, self.config)}
            for cell in (cell for cell in question.cells if cell.model in used):
                yield [f"probe/overlaps/{question.name}/{cell.model}.json"], cell, _overlap

    def _frozen(self) -> list[Cell]:
        """Return the runs along a basis of pairs that is not refreshed."""
        frozen = [cell for cell in self.question.cells if cell.basis and not cell.setting.knob("refresh")]
        return [c for c in frozen if self.config.knobs(str(c.setting.basis)).control == "none"]

    def _losses(self) -> Iterator[Source]:
        """Yield each run along a GRPO basis, whose tensor is compared with that of the NLL."""
        based = [(r, self.config.knobs(basis)) for r in self.question.rows if (basis := r.setting.basis)]
        for row, own in ((row, own) for row, own in based if own.loss == "grpo"):
            alike = (r for r, knobs in based if knobs.loss == "nll" and knobs.pairs == own.pairs)
            twin = next(alike, None)
            for cell, other in zip(row.cells, twin.cells if twin else (), strict=False):
                yield [f"probe/{cell.model}/{other.basis}-vs-{cell.basis}.json"], cell, _loss

    def _ranking(self, paths: list[Path], cell: Cell) -> Found:
        from projected_grpo.measures.detector import ranking_numbers

        return dict(ranking_numbers(paths[0], self.config.detector.pairs))

    def _t4(self, paths: list[Path], cell: Cell) -> Found:
        from projected_grpo.measures import replays

        return {"t4": replays.readings(replays.read_replay(paths[0].parent, len(paths)).samples)["t4"].t}


def _drift(paths: list[Path], cell: Cell) -> Found:
    return {"overlap_fresh": read_json(paths[0])["looks"][-1]["overlap_fresh"]}


def _loss(paths: list[Path], cell: Cell) -> Found:
    found = read_json(paths[0])
    return {"overlap_losses": found["overlap"], "overlap_reweighted": found["overlap_reweighted"]}


def _overlap(paths: list[Path], cell: Cell) -> Found:
    """Return how the run's axes lie beside the exploits' own, of all bases on its model."""
    use, bases = cell.use, read_json(paths[0])["bases"]
    own = [one for one in bases if use and cell.basis == one["basis"] and use.k == one["k"]]
    return {name: one[name] for one in own for name in ("overlap", "cosine")}


def of_tree(config: Config, questions: Collection[Question]) -> "tuple[pd.DataFrame, Loaded]":
    """Return the numbers of questions in a results tree, and its runs with why others are left out."""
    import pandas as pd

    from projected_grpo.measures import numbers
    from projected_grpo.measures.runs import load_runs

    cells = {cell.id: cell for question in questions for cell in question.cells}
    loaded = load_runs(Path(config.results), cells.values())
    frames = [numbers.of_runs(loaded[0].values()), numbers.of_bases(Path(config.results), questions)]
    frames += [Beside(question, config).numbers() for question in questions]
    found = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    return found.drop_duplicates(["cell", "measure"]), loaded
