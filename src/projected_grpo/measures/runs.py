"""Read run folders: a run counts with all its steps or not at all; a damaged file is an error."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from projected_grpo.cells.cell import Cell
from projected_grpo.environment.attempts import attempted
from projected_grpo.errors import UserError
from projected_grpo.measures.measure import MEASURES, RECORD, ROLLOUTS, STEPS
from projected_grpo.measures.panels import DEPLOYED, panel_rates
from projected_grpo.measures.steps import Incomplete, Steps, numbers, read_steps
from projected_grpo.parquet import read_arrow
from projected_grpo.records import read_sealed

# Rates after the last step, with the quarantine kept and ablated.
FINAL = tuple(name for name, measure in MEASURES.items() if measure.group == "final")
FACTS = ("gt_pass", "channel", "can_compile")


@dataclass(frozen=True)
class Run:
    """One finished run: its cell, its columns by step (`steps.read_steps`), and what `run.json` says.

    The facts of its rollouts, never their texts, are read when they are asked for. Raises UserError with the path where
    such a file is damaged, or a fact is none.
    """

    cell: Cell
    folder: Path
    steps: Steps = field(repr=False)
    info: dict[str, Any] = field(repr=False)

    @cached_property
    def measures(self) -> dict[str, float]:
        """Return the run's measures that it has, by name."""
        found = {name: measure.number(self) for name, measure in MEASURES.items()}
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def rollouts(self) -> pd.DataFrame | None:
        """Return `FACTS` of its rollouts with their `step` and the flags of its monitor; None without the file."""
        path = self.folder / ROLLOUTS
        if not path.exists():
            return None
        flags = ["flagged"] if self.cell.setting.knob("monitor") else []
        facts = read_facts(path, flags, ["step"])
        if not np.isin(facts["step"], self.steps["step"]).all():
            raise UserError(f"{path}: column 'step' has a step that the run has not; remake the run")
        return facts

    @cached_property
    def deployed(self) -> dict[str, float]:
        """Return its rates on the panels, after training; none without the file."""
        path = self.folder / DEPLOYED
        if not path.exists():
            return {}
        facts = read_panels(path)
        if Counter(facts["panel"]) != Counter(self.info.get("deployed", facts["panel"])):
            raise UserError(
                f"{path}: other rollouts than run.json counts; delete the run's folder to remake it"
            )
        return panel_rates(facts)


def read_facts(
    path: Path, flags: Sequence[str] = (), beside: Sequence[str] = (), texts: Sequence[str] = ()
) -> pd.DataFrame:
    """Read `FACTS` and flags of rollouts as 0, 1 or NaN, the numbers `beside` them, and texts; nothing else."""
    table = read_arrow(path, (*FACTS, *flags, *beside, *texts))
    facts = {name: numbers(table[name], name, path) for name in (*FACTS, *flags, *beside)}
    for name in (*FACTS, *flags):
        if not np.isin(facts[name][~np.isnan(facts[name])], (0, 1)).all():
            raise UserError(f"{path}: column {name!r} has a value that is neither true, false nor empty")
    return pd.DataFrame(facts | {name: table[name].to_pylist() for name in texts})


def read_panels(path: Path, beside: Sequence[str] = ()) -> pd.DataFrame:
    """Read the facts of rollouts by `panel`, and whether their texts attempt a hack."""
    facts = read_facts(path, beside=beside, texts=("panel", "completion"))
    tried = attempted(facts.pop("completion").tolist())
    return facts.assign(attempted=np.array(tried, float))


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
    if final is None:
        return
    if not isinstance(final, dict):
        raise UserError(f"{path}: final is {final!r}, allowed: a mapping of rates, or null")
    for name in FINAL:
        value, optional = final.get(name), not name.startswith("hack")
        if not (optional if value is None else type(value) in (int, float) and 0 <= value <= 1):
            allowed = f"a number in 0 ... 1{', or null' * optional}; delete the run's folder to remake it"
            raise UserError(f"{path}: final.{name} is {value!r}, allowed: {allowed}")


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
