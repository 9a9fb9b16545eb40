"""What a page is made of. Rules plan with this: it draws nothing and imports little."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from projected_grpo.cells.cell import Cell, Question, load_questions, make_cell
from projected_grpo.cells.config import Config
from projected_grpo.cells.setting import Setting
from projected_grpo.evaluator.kinds import CriticKind, critic_kinds
from projected_grpo.measures.measure import FILES
from projected_grpo.measures.panels import base_file
from projected_grpo.yaml_layers import QuestionFiles


def banner(config: Config) -> str:
    """Return what stands above all that is made: that it is a trial, or of one seed; else nothing."""
    if config.trial:
        return "A trial of the machinery: every rule runs, and no number here means anything."
    if len(config.seeds) == 1:
        return f"One seed ({config.seeds[0]}): nothing here is tested, and another seed may say the opposite."
    return ""


def spreads(config: Config) -> dict[float, dict[str, float]]:
    """Return the pilot's std over seeds of a paired difference by mix and measure; empty for a model without."""
    return {float(mix): spread for mix, spread in config.pilot.get(config.model.name, {}).items()}


@dataclass(frozen=True)
class Context:
    """The name of a page (its path below the results folder), the config and the questions.

    `more`: the cells that the page asked for, by id; they may stand in no question.
    """

    name: str
    config: Config
    questions: dict[str, Question]
    more: dict[str, Cell] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, name: str, config: Config) -> "Context":
        """Read the questions that the config names.

        Raises UserError where the file is missing, a row is unknown, or the questions are not those of the plan.
        """
        return cls(name, config, load_questions(QuestionFiles(config.questions).parsed, config))

    @property
    def results(self) -> Path:
        return Path(self.config.results)

    @property
    def question(self) -> Question:
        """Return the question whose page it is."""
        return self.questions[self.name]

    @property
    def models(self) -> dict[str, int]:
        """Return each model and the seed of its replication, or of what seeds share where they share it."""
        own, shared = self.config.is_replicated, self.config.shared_seed
        return {self.config.model_name(seed): seed if own else shared for seed in self.config.seeds}

    def below(self, *paths: str) -> list[str]:
        """Return files of the results folder."""
        return [str(self.results / path) for path in paths]

    def run_files(self) -> list[str]:
        """Return the files that the question's tables are made of."""
        cells = self.question.cells if self.name in self.questions else ()
        bases = dict.fromkeys(base_file(cell.model) for cell in cells)
        return self.below(*(f"grpo/{cell.id}/{file}" for cell in cells for file in FILES), *bases)

    def text(self) -> str:
        """Return all that decides the page beside files and code, as stable text."""
        config, probe = self.config, self.config.probe.model_dump()
        said: object = probe
        if self.name in self.questions:
            question = self.question
            bases = sorted({row.setting.basis for row in question.rows if row.setting.basis})
            knobs = {name: config.knobs(name).model_dump() for name in bases}
            trend = config.small.model_dump(include={"link", "sizes", "variants"})
            more = {"probe": {"probe": probe, "detector": config.detector.model_dump()}, "trend": trend}
            primary = config.primary.model_dump(mode="json")
            own = [question.model_dump_json(), knobs, spreads(config), config.floors, primary]
            said = [*own, more.get(question.kind)]
        return "\n".join(filter(None, [banner(config), json.dumps(said, sort_keys=True)]))

    def vanilla(self, seed: int) -> Cell:
        """Return a replication's vanilla run with the default settings."""
        return self.run(Setting(), seed)

    def critics(self) -> dict[CriticKind, dict[int, str]]:
        """Return the kinds of critic, each with its folder below the results folder by the seed of a replication."""
        return {
            kind: {seed: f"self_taught/{kind.of(model)}" for model, seed in self.models.items()}
            for kind in critic_kinds(self.config)
        }

    def traced(self, seed: int) -> list[Cell]:
        """Return the runs whose rollouts the self-taught critic sees: what hacks, and what had no reason to."""
        return [self.vanilla(seed), self.run(Setting(arm="gt_only"), seed)]

    def run(self, setting: Setting, seed: int) -> Cell:
        """Return a replication's run: that of a question, which may be evaluated at its end, or one more."""
        plain = make_cell(setting, seed, self.config)
        cell = self._twins.get(plain.twin, plain)
        return self.more.setdefault(cell.id, cell)

    @cached_property
    def _twins(self) -> dict:
        return {cell.twin: cell for question in self.questions.values() for cell in question.cells}
