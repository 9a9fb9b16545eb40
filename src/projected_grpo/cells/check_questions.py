"""The parsed questions, against a config that has been checked."""

from collections.abc import Callable
from typing import NoReturn

from projected_grpo.cells.bases import Bases
from projected_grpo.cells.cell import OTHER_ROWS, Cell, make_cell
from projected_grpo.cells.config import Config
from projected_grpo.cells.question_files import QuestionFiles
from projected_grpo.cells.questions import Question, Questions, Row
from projected_grpo.cells.roles import Roles
from projected_grpo.cells.row_setting import setting_of
from projected_grpo.cells.setting import Setting
from projected_grpo.errors import SettingError, UserError, nearest
from projected_grpo.schema_errors import Keys, Misfit, ascii_repr, key_path, short, validate

DETECTOR = "Q18"  # scores stored rollouts at weights rebuilt from delta_S
# Probe questions: each has a rule of its own; some ask about bases that differ in one knob.
PROBES = {"R5": None, "R6": "adapter", "R7": "loss", DETECTOR: None}
# Names of other pages, folders of figures and sections of the report.
TAKEN = (
    *("substrate", "self_taught", "self_taught_grid", "diagonal", "grader", "probe", "uat", "none"),
    *("top", "main", "overview", "words", "rollouts", "cards", "runs", "theme", "filters"),
)
Wrong = Callable[[str, str], NoReturn]


class QuestionsCheck:
    """Checks of the parsed questions, each mistake one line that names their file."""

    def __init__(self, config: Config, bases: Bases, files: QuestionFiles):
        self.config, self.bases, self.files, self.questions = config, bases, files, files.parsed
        # By id: each run once, and the row that it stands in first.
        self.runs: dict[str, tuple[Cell, Keys]] = {}

    def run(self) -> dict[str, Question]:
        """Return the questions as models. Raises UserError for the first mistake."""
        rest = {name: question for name, question in self.questions.items() if name != "$schema"}
        try:
            questions = validate(Questions, rest).root
        except Misfit as error:
            self.fail(error.keys, error.problem)
        if not questions:
            self.fail([], "no question, allowed: at least one")
        for name, question in questions.items():
            self._question(name, question)
        return questions

    def fail(self, keys: Keys, problem: str) -> NoReturn:
        """Raise the one line."""
        raise UserError(self.files.line(keys, problem))

    def _question(self, name: str, question: Question) -> None:
        self._name(name, question.kind)
        names = [row.name for row in question.rows]
        if question.baseline is not None:
            self._other_row([name, "baseline"], question.baseline, names)
        cells = []
        for number, row in enumerate(question.rows):
            where: Keys = [name, "rows", number]
            if row.name in names[:number]:
                first = names.index(row.name)
                self.fail([*where, "name"], f"{row.name!r} is rows[{first}]'s name, allowed: each once")
            for key in OTHER_ROWS:
                if (other := getattr(row, key)) is not None:
                    self._other_row([*where, key], other, names)
            cells.append(self._row(row, question.settings, name, where))
        Roles(self.fail, self.config, name, question, dict(zip(names, cells, strict=True))).check()
        if knob := PROBES.get(name):
            self._twins(name, knob, [cell.setting for cell in cells])
        if name == DETECTOR:
            self._rebuilt(name, cells)
        for keys, other in question.named_rows():
            if other not in question.compared():
                self._other_row([name, *keys], other, names)

    def _name(self, name: str, kind: str) -> None:
        if kind == "probe" and name not in PROBES:
            allowed = f"table, plane, trend, aa; a probe is one of {', '.join(PROBES)}"
            self.fail([name, "kind"], f"'probe', allowed: {allowed}")
        if name in PROBES and kind != "probe":
            self.fail([name, "kind"], f"{kind!r}, allowed: probe, as {name} has a page of its own")
        if name == "aa" and kind != "aa":
            self.fail([name, "kind"], f"{kind!r}, allowed: aa, the page of the pipeline against itself")
        if name.lower() in TAKEN:
            self.fail([name], "a page or figure of this name is made by the pipeline, allowed: another name")
        for other in self.questions:
            if other != name and other.lower() == name.lower():
                self.fail([name], f"differs from {other} in letter case alone, allowed: another name")

    def _twins(self, name: str, knob: str, settings: list[Setting]) -> None:
        """R6 and R7 hold two bases against each other that differ in one knob."""
        values = {getattr(self.config.knobs(row.basis), knob) for row in settings if row.basis}
        default = getattr(self.config.basis, knob)
        if len(values) < 2 or default not in values:
            said = ", ".join(sorted(values)) or "none"
            allowed = f"allowed: {default} and at least one other"
            self.fail([name, "rows"], f"{knob} of the rows' bases: {said}, {allowed}")

    def _rebuilt(self, name: str, cells: list[Cell]) -> None:
        """Q18 rebuilds what sampled a rollout from delta_S and the plain prompt."""
        for number, cell in enumerate(cells):
            setting, where = cell.setting, [name, "rows", number]
            if setting.adapter != "antipasto":
                self.fail([*where, "adapter"], f"{setting.adapter!r}, allowed in {name}: antipasto")
            if setting.defence.family in ("quarantine", "prompt"):
                why = "an arm that samples with delta_S alone, under the plain prompt"
                self.fail([*where, "arm"], f"{setting.arm!r}, allowed in {name}: {why}")

    def _other_row(self, keys: Keys, other: str, names: list[str]) -> None:
        if other not in names:
            self.fail(keys, f"no row {ascii_repr(other)}; {nearest(other, names)}")

    def _row(self, row: Row, shared: dict, question: str, where: Keys) -> Cell:
        """Check a row's settings against each other and the config; return its first cell."""
        said = shared | row.model_extra

        def wrong(key: str, problem: str, *below: str | int) -> NoReturn:
            inherited = key in shared and key not in row.model_extra
            self.fail([*([question, "settings"] if inherited else where), key, *below], problem)

        try:
            setting = setting_of(said)
        except Misfit as error:
            (key, *below), problem = error.keys, error.problem
            if key in ("basis", "direction") and key not in said and problem.endswith("it"):
                problem = f"{problem.removesuffix('it')}one of: {', '.join(self.bases.names)}"
            wrong(key, problem, *below)
        if setting.basis:
            self.bases.check_name(setting.basis, [], lambda _, problem: wrong("basis", problem))
            axes, k = self.config.knobs(setting.basis).axes, setting.knob("k") or 1
            if k > axes:
                wrong("k", f"{k}, allowed: 1 to {axes}, the axes of the basis {setting.basis!r}")
        if setting.needs.direction:
            self.bases.check_name(setting.source, [], lambda _, problem: wrong("direction", problem))
        try:
            cell = make_cell(setting, self.config.seeds[0], self.config)
        except SettingError as error:
            wrong(error.key, error.problem)
        for key in ("variant", "size"):
            if setting.needs.critic and (value := getattr(setting, key)) is not None:
                learned = "the critic has learned from runs of the default model"
                wrong(key, f"{value!r}, allowed with the monitor 'critic': null, {learned}")
        steps = cell.training
        if (refresh := setting.knob("refresh") or 0) >= steps.steps:
            wrong("refresh", f"{refresh}, allowed: 0 to {steps.steps - 1}, less than the steps of the run")
        self._modes(setting, wrong)
        self._layer(setting, wrong)
        if steps.prompts > (most := self.config.pool.problems):
            problem = f"{setting.preset!r} has {steps.prompts} prompts a step, allowed: 1 to {most}"
            wrong("preset", f"{problem}, the problems of the row")
        first, its_place = self.runs.setdefault(cell.id, (cell, where))
        if differ := first.told_apart_from(cell):
            own, others = cell.setting.flat(), first.setting.flat()
            said = " and ".join(
                f"{key} {short(own.get(key))}, not {short(others.get(key))}" for key in differ
            )
            same = f"{key_path(its_place)} has the same id, {cell.id}"
            wrong(differ[0], f"{said}; {same}, allowed: settings that ids tell apart (numbers by six digits)")
        return cell

    def _layer(self, setting: Setting, wrong: Wrong) -> None:
        if not self.config.is_small or (layer := setting.knob("layer")) is None:
            return
        layers = self.config.small.of(setting.size or self.config.model.size).recipe.layers
        if layer >= layers:
            wrong("layer", f"{layer}, allowed: 0 to {layers - 1}, the layers of the small model, or null")

    def _modes(self, setting: Setting, wrong: Wrong) -> None:
        pool = self.config.pool.modes
        for mode in setting.modes or ():
            if mode not in pool:
                wrong("modes", f"{mode!r} is not in pool.modes; {nearest(mode, pool)}")
        modes, held_out = setting.modes or pool, setting.held_out_mode
        # A pool of one mode, as the paper's, has no other to hold out: rows that do are left out.
        if held_out is not None and len(modes) > 1 and held_out not in modes:
            wrong("held_out_mode", f"{held_out!r} is no mode of the row; {nearest(held_out, modes)}")
