"""What a page is made of. Rules plan with this: it draws nothing and imports little."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from projected_grpo.cells import cell as cells
from projected_grpo.measures.measure import FILES
from projected_grpo.strict_yaml import read_yaml


@dataclass(frozen=True)
class Context:
    """The name of a page (its path below the results folder), the config and the questions.

    `more`: the vanilla cells that the page asked for, by id; they may stand in no question.
    """

    name: str
    config: Any
    questions: dict[str, cells.Question]
    more: dict[str, cells.Cell] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, name: str, config: Any) -> "Context":
        """Read the questions that the config names. Raises UserError where the file is missing or a row is unknown."""
        return cls(name, config, cells.load_questions(read_yaml(config["questions"]), config))

    @property
    def results(self) -> Path:
        return Path(self.config["results"])

    @property
    def question(self) -> cells.Question | None:
        return self.questions.get(self.name)

    @property
    def seeds(self) -> list[int]:
        return cells.seeds(self.config)

    @property
    def models(self) -> dict[str, int]:
        """Return each model and the seed of its replication, the first of all where seeds share it."""
        shared = not cells.is_replicated(self.config)
        return {
            cells.model_name(self.config, seed): cells.FIRST_SEED if shared else seed for seed in self.seeds
        }

    def knobs(self, basis: str) -> dict[str, Any]:
        """Return all knobs of a basis."""
        return cells.knobs(self.config, basis)

    def default(self, knob: str) -> Any:
        """Return a knob's value where a basis does not say."""
        return self.config["basis"][knob]

    def below(self, *paths: str) -> list[str]:
        """Return files of the results folder."""
        return [str(self.results / path) for path in paths]

    def run_files(self) -> list[str]:
        """Return the files that the question's tables are made of."""
        ids = [cell.id for cell in self.question.cells] if self.question else []
        return self.below(*(f"grpo/{id}/{file}" for id in ids for file in FILES))

    def text(self) -> str:
        """Return all that decides the page beside files and code, as stable text."""
        rows = self.question.rows if self.question else ()
        bases = sorted({row.setting.basis for row in rows if row.setting.basis})
        said = [self.question, {name: self.knobs(name) for name in bases}]
        if not rows or self.question.kind == "probe":
            said.append(self.config["probe"])
        return json.dumps(said, sort_keys=True, default=vars)

    def vanilla(self, seed: int, mix: float | None = None) -> cells.Cell:
        """Return a replication's vanilla run: that of a question, which may be evaluated at its end, or one more."""
        setting = cells.Setting() if mix is None else cells.Setting(mix=mix)
        plain = cells.make_cell(setting, seed, self.config)
        cell = self._twins.get(plain.twin, plain)
        return self.more.setdefault(cell.id, cell)

    @cached_property
    def _twins(self) -> dict:
        return {cell.twin: cell for question in self.questions.values() for cell in question.cells}
