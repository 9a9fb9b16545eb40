"""What a row stands for in its table: a claim, its control, one of a population of placebos, a part of a pooled row."""

from projected_grpo.cells.cell import Cell, control_of
from projected_grpo.cells.config import Config
from projected_grpo.cells.questions import Heading, Question
from projected_grpo.errors import nearest
from projected_grpo.schema_errors import Fail, Keys

LEAST = 3  # placebos of a population: with fewer there is no spread to speak of


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
            if row.against is not None:
                self._against(row, [*where, "against"])
            self._population(row, where)
            if row.place_in is not None:
                self._place(row, [*where, "place_in"])
            if row.pooled is not None:
                self._pooled(row, [*where, "pooled"])

    def _against(self, row: Heading, keys: Keys) -> None:
        """Beyond random is told against random axes of the same k, gate, refresh and all else."""
        pair = [self.cells[row.name], self.cells[row.against]]
        is_random = [control_of(cell.setting, self.config) == "random" for cell in pair]
        if sum(is_random) == 1 and (differ := pair[0].unlike(pair[1])):
            allowed = "a row of random axes and one of the same k, gate, refresh and other settings"
            differ = f"{row.against!r} and this row differ in {', '.join(differ)}"
            self.fail(keys, f"{differ}, allowed: {allowed}")

    def _population(self, row: Heading, where: Keys) -> None:
        if row.population is None:
            if row.kind is not None:
                self.fail([*where, "kind"], f"{row.kind!r}, allowed without a population: null")
            return
        for key in ("against", "place_in", "pooled"):
            if (value := getattr(row, key)) is not None:
                self.fail([*where, key], f"{value!r}, allowed for a placebo of a population: null")

    def _place(self, row: Heading, keys: Keys) -> None:
        if self._baseline(row) is None:
            self.fail(keys, f"{row.place_in!r}, allowed for a row without baseline: null")
        names = sorted({other.population for other in self.rows.values()} - {None})
        if row.place_in not in names:
            self.fail(keys, f"no population {row.place_in!r} in {self.name}; {nearest(row.place_in, names)}")
        members = [other for other in self.rows.values() if other.population == row.place_in]
        if len(members) < LEAST:
            allowed = f"allowed: a population of {LEAST} or more"
            self.fail(keys, f"{row.place_in!r} has {len(members)} rows, {allowed}")
        for other in members:
            differ = self.cells[row.name].unlike(self.cells[other.name])
            differ += [] if self._baseline(row) == self._baseline(other) else ["baseline"]
            if differ:
                allowed = "allowed: in the basis alone"
                self.fail(keys, f"{other.name!r} and this row differ in {', '.join(differ)}, {allowed}")

    def _pooled(self, row: Heading, keys: Keys) -> None:
        """Rows of one pooled name have baselines of one pooled name, or none."""
        if row.pooled in self.rows:
            self.fail(keys, f"{row.pooled!r} is a row's name, allowed: another one")
        parts = [other for other in self.rows.values() if other.pooled == row.pooled]
        bases = {part.name: self._baseline(part) for part in parts}
        names = {part: self.rows[base].pooled if base else None for part, base in bases.items()}
        if len(set(names.values())) > 1:
            said = ", ".join(f"{name!r}: {pooled or 'none'}" for name, pooled in names.items())
            self.fail(keys, f"{row.pooled!r}, allowed: one `pooled` of the rows' baselines ({said})")

    def _baseline(self, row: Heading) -> str | None:
        other = row.baseline or self.baseline
        return None if other == row.name else other
