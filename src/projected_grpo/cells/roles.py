"""What a row stands for in its table: a claim, its control, one of a population of placebos, a part of a pooled row."""

from collections.abc import Callable
from typing import NoReturn

from projected_grpo.cells.cell import Cell, control_of
from projected_grpo.cells.config import Config
from projected_grpo.cells.config_errors import Keys
from projected_grpo.cells.questions import Heading, Question
from projected_grpo.errors import nearest

LEAST = 3  # placebos of a population: with fewer there is no spread to speak of
Fail = Callable[[Keys, str], NoReturn]


class Roles:
    """Checks that rows are only held against what differs from them in content alone."""

    def __init__(self, fail: Fail, config: Config, name: str, question: Question, cells: dict[str, Cell]):
        self.fail, self.config, self.name = fail, config, name
        self.rows = {row.name: row for row in question.rows}
        self.baseline, self.cells = question.baseline, cells

    def check(self) -> None:
        """Raise UserError for the first mistake."""
        for number, row in enumerate(self.rows.values()):
            where: Keys = [self.name, "rows", number]
            self._against(row, where)
            self._population(row, where)
            if row.place_in is not None:
                self._place(row, where)
            if row.pooled is not None:
                self._pooled(row, where)

    def _against(self, row: Heading, where: Keys) -> None:
        """Beyond random is told against random axes of the same k, gate, refresh and all else."""
        if row.against is None:
            return
        pair = [self.cells[row.name], self.cells[row.against]]
        if sum(control_of(cell.setting, self.config) == "random" for cell in pair) == 1 and (
            differ := pair[0].unlike(pair[1])
        ):
            self.fail(
                [*where, "against"],
                f"{row.against!r} and this row differ in {', '.join(differ)}, allowed: a row of random axes and one of "
                "the same k, gate, refresh and other settings",
            )

    def _population(self, row: Heading, where: Keys) -> None:
        for key in ("against", "place_in", "pooled"):
            if row.population is not None and getattr(row, key) is not None:
                self.fail(
                    [*where, key], f"{getattr(row, key)!r}, allowed for a placebo of a population: null"
                )
        if row.kind is not None and row.population is None:
            self.fail([*where, "kind"], f"{row.kind!r}, allowed without a population: null")

    def _place(self, row: Heading, where: Keys) -> None:
        keys = [*where, "place_in"]
        if self._baseline(row) is None:
            self.fail(keys, f"{row.place_in!r}, allowed for a row without baseline: null")
        names = sorted({other.population for other in self.rows.values()} - {None})
        if row.place_in not in names:
            self.fail(keys, f"no population {row.place_in!r} in {self.name}; {nearest(row.place_in, names)}")
        members = [other for other in self.rows.values() if other.population == row.place_in]
        if len(members) < LEAST:
            self.fail(
                keys, f"{row.place_in!r} has {len(members)} rows, allowed: a population of {LEAST} or more"
            )
        for other in members:
            differ = self.cells[row.name].unlike(self.cells[other.name])
            differ += [] if self._baseline(row) == self._baseline(other) else ["baseline"]
            if differ:
                self.fail(
                    keys,
                    f"{other.name!r} and this row differ in {', '.join(differ)}, allowed: in the basis alone",
                )

    def _pooled(self, row: Heading, where: Keys) -> None:
        """Rows of one pooled name have baselines of one pooled name, or none."""
        if row.pooled in self.rows:
            self.fail([*where, "pooled"], f"{row.pooled!r} is a row's name, allowed: another one")
        names = {
            other.name: self.rows[base].pooled if (base := self._baseline(other)) else None
            for other in self.rows.values()
            if other.pooled == row.pooled
        }
        if len(set(names.values())) > 1:
            said = ", ".join(f"{name!r}: {pooled or 'none'}" for name, pooled in names.items())
            self.fail(
                [*where, "pooled"], f"{row.pooled!r}, allowed: one `pooled` of the rows' baselines ({said})"
            )

    def _baseline(self, row: Heading) -> str | None:
        other = row.baseline or self.baseline
        return None if other == row.name else other
