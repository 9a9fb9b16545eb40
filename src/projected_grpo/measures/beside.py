"""Numbers of runs that other stages measured: rankings, replays, overlaps, early ends. They join the frame as measures.

Each reader says which files it needs of a question's runs, and what they hold by run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo.cells.cell import Cell, Question
from projected_grpo.cells.check_questions import DETECTOR, PROBES
from projected_grpo.cells.config import Config
from projected_grpo.files import read_json
from projected_grpo.measures import early_stopping

if TYPE_CHECKING:
    import pandas as pd

Number = tuple[Cell, str, float | None]  # run, measure, value; None: it has none


@dataclass(frozen=True)
class Beside:
    """What stands beside the runs of one question below the results folder."""

    question: Question
    config: Config

    @property
    def _results(self) -> Path:
        return Path(self.config.results)

    def files(self) -> list[str]:
        """Return the files of all readers that the question has, below the results folder."""
        readers = (self._rankings(), self._replays(), self._drifts(), self._losses(), self._overlaps())
        stopped = [early_stopping.file(cell.id) for cell in early_stopping.cells(self.question)]
        return list(dict.fromkeys([*(file for reader in readers for file in reader), *stopped]))

    def numbers(self) -> "pd.DataFrame":
        """Return the frame of what is there; a run without its file has no such number."""
        import pandas as pd

        from projected_grpo.measures import numbers

        records = [
            numbers.of_cell(cell) | {"measure": measure, "value": float(value)}
            for cell, measure, value in self._numbers()
            if value is not None
        ]
        stopped = numbers.of_stopped(self._results, [self.question])
        frames = [frame for frame in (pd.DataFrame(records, columns=numbers.COLUMNS), stopped) if len(frame)]
        return pd.concat(frames or [stopped], ignore_index=True)

    def _numbers(self) -> Iterator[Number]:
        for file, cells in self._rankings().items():
            if (self._results / file).exists():
                from projected_grpo.measures.detector import ranking_numbers

                found = ranking_numbers(self._results / file, self.config.detector.pairs)
                yield from ((cell, name, value) for cell in cells for name, value in found.items())
        yield from self._t4()
        for file, cell in self._drifts().items():
            if (self._results / file).exists():
                last = read_json(self._results / file)["looks"][-1]
                yield cell, "overlap_fresh", last["overlap_fresh"]
        for file, cell in self._losses().items():
            if (self._results / file).exists():
                found = read_json(self._results / file)
                yield cell, "overlap_losses", found["overlap"]
                yield cell, "overlap_reweighted", found["overlap_reweighted"]
        for file, cells in self._overlaps().items():
            if (self._results / file).exists():
                yield from _overlaps(cells, read_json(self._results / file)["bases"])

    def _rankings(self) -> dict[str, list[Cell]]:
        """Return file -> the run whose rollouts it ranks."""
        if self.question.name != DETECTOR:
            return {}
        return {f"detector/{cell.id}.parquet": [cell] for cell in self.question.cells}

    def _replays(self) -> dict[str, list[tuple[Cell, str]]]:
        """Return step file -> the runs whose basis it replays, with the replay's folder."""
        from projected_grpo.measures import replays

        found: dict[str, list[tuple[Cell, str]]] = {}
        for cell, folder in self._folders():
            for file in replays.files(folder, self.config):
                found.setdefault(file, []).append((cell, folder))
        return found

    def _folders(self) -> list[tuple[Cell, str]]:
        """Return each run of R6 and R7 with a basis of pairs, frozen, and the vanilla replay of that basis."""
        if not PROBES.get(self.question.name):
            return []
        return [(cell, f"{cell.model}/{cell.basis}/vanilla") for cell in self._frozen()]

    def _frozen(self) -> list[Cell]:
        frozen = [cell for cell in self.question.cells if cell.basis and not cell.setting.knob("refresh")]
        return [c for c in frozen if self.config.knobs(str(c.setting.basis)).control == "none"]

    def _t4(self) -> Iterator[Number]:
        from projected_grpo.measures import replays

        steps = replays.n_steps(self.config) if self._folders() else 0
        read: dict[str, float | None] = {}
        for cell, folder in self._folders():
            files = replays.files(folder, self.config)
            if all((self._results / file).exists() for file in files):
                if folder not in read:
                    samples = replays.read_replay(self._results / "probe" / folder, steps).samples
                    read[folder] = replays.readings(samples)["t4"].t
                yield cell, "t4", read[folder]

    def _drifts(self) -> dict[str, Cell]:
        if PROBES.get(self.question.name) != "adapter":
            return {}
        return {f"probe/drift/{cell.id}.json": cell for cell in self._frozen()}

    def _losses(self) -> dict[str, Cell]:
        """Return file -> the run along a GRPO basis whose tensor it compares with that of the NLL."""
        if PROBES.get(self.question.name) != "loss":
            return {}
        found = {}
        based = [(r, self.config.knobs(basis)) for r in self.question.rows if (basis := r.setting.basis)]
        for row, own in ((row, own) for row, own in based if own.loss == "grpo"):
            alike = (r for r, knobs in based if knobs.loss == "nll" and knobs.pairs == own.pairs)
            twin = next(alike, None)
            for cell, other in zip(row.cells, twin.cells if twin else (), strict=False):
                found[f"probe/{cell.model}/{other.basis}-vs-{cell.basis}.json"] = cell
        return found

    def _overlaps(self) -> dict[str, list[Cell]]:
        """Return file -> the runs on the model whose bases it compares with the exploits' own."""
        from projected_grpo.measures.uses import uses

        if self.question.kind != "trend":
            return {}
        by_model: dict[str, list[Cell]] = {}
        for cell in self.question.cells:
            by_model.setdefault(cell.model, []).append(cell)
        return {
            f"probe/overlaps/{self.question.name}/{model}.json": cells
            for model, cells in by_model.items()
            if uses(self.question, model, self.config)
        }


def _overlaps(cells: Iterable[Cell], measured: Iterable[dict]) -> Iterator[Number]:
    every = list(measured)
    for cell in cells:
        for one in every:
            use = cell.settings.use
            if use and cell.basis == one["basis"] and use.k == one["k"]:
                yield cell, "overlap", one["overlap"]
                yield cell, "cosine", one["cosine"]
