"""Read run folders: a run counts with all its steps or not at all; a damaged file is an error."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from projected_grpo.cells.cell import Cell
from projected_grpo.environment.attempts import attempted
from projected_grpo.errors import UserError
from projected_grpo.measures.measure import MEASURES, RECORD, STEPS
from projected_grpo.measures.panels import DEPLOYED, PANEL_RATES, Facts, base_file, share_of
from projected_grpo.measures.steps import Incomplete, Steps, numbers, read_steps
from projected_grpo.parquet import read_arrow
from projected_grpo.records import read_sealed

# Rates after the last step, with the quarantine kept and ablated.
FINAL = tuple(name for name, measure in MEASURES.items() if measure.group == "final")
FACTS = ("gt_pass", "channel", "can_compile")


@dataclass(frozen=True)
class Run:
    """One finished run: its cell, its columns by step (`steps.read_steps`), and what `run.json` says."""

    cell: Cell
    folder: Path
    steps: Steps = field(repr=False)
    info: dict[str, Any] = field(repr=False)
    _facts: dict[str, Facts] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def measures(self) -> dict[str, float]:
        """Return the run's measures that it has, by name."""
        found = {name: measure.of(self) for name, measure in MEASURES.items()}
        return {name: value for name, value in found.items() if value is not None}

    def facts(self, file: str, key: str) -> Facts | None:
        """Return `FACTS` of a file's rollouts, its column `key` and the flags of the run's monitor; of those after
        training also whether they attempt a hack.

        None where the run has no such file. Raises UserError with the path where the file is damaged or a fact is none.
        """
        path = self.folder / file
        if file not in self._facts and path.exists():
            more = ("flagged",) if key == "step" and self.cell.setting.knob("monitor") else ()
            self._facts[file] = read_facts(path, key, more)
            found = self._facts[file][key]
            if key == "step" and not np.isin(found, self.steps["step"]).all():
                raise UserError(f"{path}: column 'step' has a step that the run has not; remake the run")
            if key == "panel" and Counter(found.tolist()) != Counter(
                self.info.get("deployed", found.tolist())
            ):
                raise UserError(
                    f"{path}: other rollouts than run.json counts; delete the run's folder to remake it"
                )
        return self._facts.get(file)


def read_facts(path: Path, key: str, more: Sequence[str] = (), numbers_beside: Sequence[str] = ()) -> Facts:
    """Read the facts of rollouts, and more flags, and one more column; of the panels also the texts, for `attempted`.

    Of other files nothing else: texts are most of them.
    """
    texts = ("completion",) if key == "panel" else ()
    table = read_arrow(path, (key, *FACTS, *more, *numbers_beside, *texts))
    facts = {name: numbers(table[name], name, path) for name in (*FACTS, *more)}
    for name, values in facts.items():
        if not np.isin(values[~np.isnan(values)], (0, 1)).all():
            raise UserError(f"{path}: column {name!r} has a value that is neither true, false nor empty")
    facts |= {name: numbers(table[name], name, path) for name in numbers_beside}
    if texts:
        facts["attempted"] = np.array(attempted(table["completion"].to_pylist()), float)
    column = table[key]
    return facts | {key: numbers(column, key, path) if key == "step" else np.array(column.to_pylist())}


def check_info(info: dict[str, Any], path: Path, cell: Cell) -> None:
    """Raise UserError where a `run.json` is another run's: of another cell, or made with other settings."""
    if info.get("cell") != cell.id:
        raise UserError(f"{path}: cell is {info.get('cell')!r}, its folder is that of {cell.id!r}")
    recorded, asked = _flat(info.get("settings")), _flat(json.loads(cell.params()))
    for key in sorted(recorded.keys() | asked.keys()):
        if recorded.get(key) != asked.get(key):
            raise UserError(
                f"{path}: settings{key} is {recorded.get(key)!r}, the config says {asked.get(key)!r}; "
                "make the run again, or undo the change of the config"
            )
    final = info.get("final")
    if final is not None and not isinstance(final, dict):
        raise UserError(f"{path}: final is {final!r}, allowed: a mapping of rates, or null")
    for name in FINAL:
        value = (final or {}).get(name)
        if final is not None and value is None and name.startswith("hack"):
            raise UserError(f"{path}: no final.{name}; delete the run's folder to remake it")
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        if value is not None and not number:
            raise UserError(f"{path}: final.{name} is {value!r}, allowed: a number in 0 ... 1, or null")


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """Return `.key.key` -> value of nested mappings."""
    if not isinstance(value, dict):
        return {key: value}
    return {k: v for name, inner in value.items() for k, v in _flat(inner, f"{key}.{name}").items()}


def load_run(results: Path, cell: Cell) -> Run:
    """Read `results/grpo/{cell}/`.

    Raises Incomplete where the run is absent or short (the caller leaves it out and names it), UserError with
    the path where a file is damaged, edited by hand, or of a run with other settings.
    """
    folder = Path(results) / "grpo" / cell.id
    record = folder / RECORD
    if not (folder / STEPS).exists():
        raise Incomplete("missing")
    held_out = cell.setting.held_out_mode
    if held_out and held_out not in (cell.setting.modes or ()):
        raise Incomplete(f"the pool has no problem of the held-out mode {held_out}")
    steps = read_steps(folder / STEPS, cell)
    if not record.exists():  # written last
        raise Incomplete("no run.json")
    info = read_sealed(record)
    check_info(info, record, cell)
    if cell.setting.final_eval and not info.get("final"):
        raise Incomplete("no final evaluation in run.json")
    if info.get("deployed") and not (folder / DEPLOYED).exists():
        raise Incomplete(f"no {DEPLOYED}")
    return Run(cell, folder, steps, info)


def base_rates(results: Path, model: str) -> dict[str, float]:
    """Return the rates of a base before training on the panels that runs are judged on; none without its file."""
    path = Path(results) / base_file(model)
    return _panel_rates(read_facts(path, "panel")) if path.exists() else {}


def _panel_rates(facts: Facts) -> dict[str, float]:
    found = {name: share_of(facts, *rate) for name, rate in PANEL_RATES.items()}
    return {name: value for name, value in found.items() if value is not None}


def stopped_rates(path: Path) -> dict[int, dict[str, float]]:
    """Return step -> the rates on the panels of a run that ends after it, and its `dose` (`stages/stopped.py`)."""
    facts, found = read_facts(path, "panel", numbers_beside=("after", "dose")), {}
    for step in np.unique(facts["after"]):
        own = {name: values[facts["after"] == step] for name, values in facts.items()}
        found[int(step)] = _panel_rates(own) | {"dose": float(own["dose"][0])}
    return found


Loaded = tuple[dict[str, Run], dict[str, str]]


def load_runs(results: Path, cells: Iterable[Cell]) -> Loaded:
    """Read many runs: (run by cell id, why by id of each cell that is left out).

    Raises UserError where two runs of one pool stand on different problems or rollouts of it: nothing pairs them.
    """
    runs, left_out = {}, {}
    for cell in cells:
        try:
            runs[cell.id] = load_run(results, cell)
        except Incomplete as reason:
            left_out[cell.id] = str(reason)
    first: dict[tuple[str, str], tuple[str, Run]] = {}  # pool, input -> its hash, the run that has it
    for run in runs.values():
        for name in ("problems", "pool"):
            own = run.info.get("inputs", {}).get(name)
            known, other = first.setdefault((run.cell.pool, name), (own, run))
            if own != known:
                raise UserError(
                    f"{run.folder / RECORD}: inputs.{name} is {own}, that of {other.cell.id} is {known}; "
                    "runs of one pool are paired, so make the older one again"
                )
    return runs, left_out
