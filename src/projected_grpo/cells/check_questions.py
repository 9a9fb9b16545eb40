"""The parsed questions, against a config that has been checked."""

from collections.abc import Callable
from typing import NoReturn

from projected_grpo.arms import Tag
from projected_grpo.cells.bases import Bases
from projected_grpo.cells.cell import Cell, make_cell
from projected_grpo.cells.config import Config
from projected_grpo.cells.hyper import Training
from projected_grpo.cells.questions import OTHER_ROWS, Question, Questions, Row
from projected_grpo.cells.roles import check_roles
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.cells.setting import Setting
from projected_grpo.errors import SettingError, nearest
from projected_grpo.schema_errors import Fail, Keys, Misfit, ascii_repr, below, key_path, short, validate
from projected_grpo.yaml_layers import QuestionFiles

DETECTOR = "Q18"  # scores stored rollouts at weights rebuilt from delta_S
# Probe questions: each has a rule of its own; some ask about bases that differ in one knob.
PROBES = {"R5": None, "R6": "adapter", "R7": "loss", DETECTOR: None}
# Names of other pages, folders of figures, sections of the report, and tables that are published beside pages.
TAKEN = (
    *("substrate", "self_taught", "self_taught_grid", "diagonal", "grader", "probe", "uat", "none"),
    *("top", "main", "overview", "words", "rollouts", "cards", "runs", "families", "theme", "filters"),
)


class QuestionsCheck:
    """Checks of the parsed questions, each mistake one line that names their file."""

    def __init__(self, config: Config, bases: Bases, files: QuestionFiles):
        self.config, self.bases, self.files = config, bases, files
        # By id: each run once, and the row that it stands in first.
        self.runs: dict[str, tuple[Cell, Keys]] = {}

    def run(self) -> dict[str, Question]:
        """Return the questions as models. Raises UserError for the first mistake."""
        rest = {name: question for name, question in self.files.parsed.items() if name != "$schema"}
        try:
            questions = validate(Questions, rest).root
        except Misfit as error:
            self.files.fail(error.keys, error.problem + self.files.meant(error.keys))
        if not questions:
            self.files.fail([], "no question, allowed: at least one")
        for name, question in questions.items():
            wrong = below(self.files.fail, name)
            self._name(name, question.kind, wrong)
            self._rows(name, question, wrong)
        return questions

    def _name(self, name: str, kind: str, wrong: Fail) -> None:
        if kind == "probe" and name not in PROBES:
            allowed = f"table, plane, trend, aa; a probe is one of {', '.join(PROBES)}"
            wrong(["kind"], f"'probe', allowed: {allowed}")
        if name in PROBES and kind != "probe":
            wrong(["kind"], f"{kind!r}, allowed: probe, as {name} has a page of its own")
        if name == "aa" and kind != "aa":
            wrong(["kind"], f"{kind!r}, allowed: aa, the page of the pipeline against itself")
        if name.lower() in TAKEN:
            wrong([], "a page or figure of this name is made by the pipeline, allowed: another name")
        for other in self.files.parsed:
            if other != name and other.lower() == name.lower():
                wrong([], f"differs from {other} in letter case alone, allowed: another name")

    def _rows(self, name: str, question: Question, wrong: Fail) -> None:
        """Check every row by itself, then against the others of its question."""
        names = [row.name for row in question.rows]

        def check_row_name(keys: Keys, other: str | None) -> None:
            if other is not None and other not in names:
                wrong(keys, f"no row {ascii_repr(other)}; {nearest(other, names)}")

        check_row_name(["baseline"], question.baseline)
        cells: dict[str, Cell] = {}
        for number, row in enumerate(question.rows):
            if row.name in cells:
                (here, _), (path, keys) = (
                    self.files.where([name, "rows", n]) for n in (number, names.index(row.name))
                )
                first = key_path(keys[1:]) if path == here else f"{path}: {key_path(keys)}"
                wrong(["rows", number, "name"], f"{row.name!r} is {first}'s name, allowed: each once")
            for key in OTHER_ROWS:
                check_row_name(["rows", number, key], getattr(row, key))
            cells[row.name] = self._row(row, question.settings, name, number)
        self._compared(question, cells, wrong)
        check_roles(name, question, cells, self.config, self.files.fail)
        settings = [cell.setting for cell in cells.values()]
        if knob := PROBES.get(name):
            self._twins(knob, settings, below(wrong, "rows"))
        if name == DETECTOR:
            _check_rebuilt(settings, below(wrong, "rows"))
        for keys, other in question.named_rows():
            if other not in question.compared():
                check_row_name(keys, other)
        self._lines(question, wrong)

    def _compared(self, question: Question, cells: dict[str, Cell], wrong: Fail) -> None:
        """Check that no row is compared with itself: its difference would be 0 whatever the runs are."""
        for number, row in enumerate(question.rows):
            for key, other in (("baseline", question.baseline_of(row)), ("against", row.against)):
                if other is not None and cells[other].id == cells[row.name].id:
                    wrong(
                        ["rows", number, key],
                        f"{ascii_repr(other)} has the same runs, allowed: a row of other settings",
                    )

    def _lines(self, question: Question, wrong: Fail) -> None:
        """Check that the table can have each line that a sentence is of: else it is missing with all runs there."""
        for keys, row, contrast, _ in question.lines():
            own = len(keys) == 2  # of a sentence itself: it quotes others, and their rates
            for key, problem, hint in question.misnamed(row, contrast, *([] if own else ["rate"])):
                wrong([*keys, key] if own else keys, f"{problem}; {hint}")

    def _twins(self, knob: str, settings: list[Setting], wrong: Fail) -> None:
        """R6 and R7 hold two bases against each other that differ in one knob."""
        values = {getattr(self.config.knobs(row.basis), knob) for row in settings if row.basis}
        default = getattr(self.config.basis, knob)
        if len(values) < 2 or default not in values:
            said = ", ".join(sorted(values)) or "none"
            wrong([], f"{knob} of the rows' bases: {said}, allowed: {default} and at least one other")

    def _row(self, row: Row, shared: dict, question: str, number: int) -> Cell:
        """Check a row's settings against each other and the config; return its first cell."""
        extra = row.model_extra or {}
        said = shared | extra

        def wrong(key: str | int, problem: str, *below: str | int) -> NoReturn:
            where = ["rows", number] if key in extra or key not in shared else ["settings"]
            self.files.fail([question, *where, key, *below], problem)

        try:
            setting = make_setting(said)
        except Misfit as error:
            (key, *rest), problem = error.keys, error.problem
            if key in ("basis", "direction") and key not in said and problem.endswith("it"):
                problem = f"{problem.removesuffix('it')}one of: {', '.join(self.bases.names)}"
            wrong(key, problem, *rest)
        needs = setting.needs
        if source := needs.basis or needs.direction:
            key = "basis" if needs.basis else "direction"
            self.bases.check_name(source, [key], lambda keys, problem: wrong(keys[0], problem))
        if basis := needs.basis:
            axes, k = self.config.knobs(basis).axes, setting.knob("k") or 1
            if k > axes:
                wrong("k", f"{k}, allowed: 1 to {axes}, the axes of the basis {basis!r}")
        try:
            cell = make_cell(setting, self.config.seeds[0], self.config)
        except SettingError as error:
            wrong(error.key, error.problem)
        self._numbers(setting, cell.training, wrong)
        where: Keys = [question, "rows", number]
        first, its_place = self.runs.setdefault(cell.id, (cell, where))
        if differ := first.told_apart_from(cell):
            own, others = cell.setting.flat(), first.setting.flat()
            unlike = (f"{key} {short(own.get(key))}, not {short(others.get(key))}" for key in differ)
            same = f"{' and '.join(unlike)}; {self.files.place(its_place)} has the same id, {cell.id}"
            allowed = "settings that ids tell apart (numbers by six digits)"
            knob = type(setting.knobs).model_fields.get(differ[0])
            if knob is not None and not any(isinstance(part, Tag) for part in knob.metadata):
                allowed = "a Tag of this knob in its arm"
            wrong(differ[0], f"{same}, allowed: {allowed}")
        return cell

    def _numbers(self, setting: Setting, training: Training, wrong: Callable[[str, str], NoReturn]) -> None:
        """Check that a row's numbers and loopholes are within those of its model, run and pool."""
        for key in ("variant", "size") if setting.needs.critic else ():
            if (value := getattr(setting, key)) is not None:
                learned = "the critic has learned from runs of the default model"
                wrong(key, f"{value!r}, allowed with the monitor 'critic': null, {learned}")
        last = training.steps - 1
        if (refresh := setting.knob("refresh") or 0) > last:
            wrong("refresh", f"{refresh}, allowed: 0 to {last}, less than the steps of the run")
        pool = self.config.pool
        for mode in setting.modes or ():
            if mode not in pool.modes:
                wrong("modes", f"{mode!r} is not in pool.modes; {nearest(mode, pool.modes)}")
        modes, held_out = setting.modes or pool.modes, setting.held_out_mode
        # A pool of one mode, as the paper's, has no other to hold out: rows that do are left out.
        if held_out is not None and len(modes) > 1 and held_out not in modes:
            wrong("held_out_mode", f"{held_out!r} is no mode of the row; {nearest(held_out, modes)}")
        if self.config.is_small and (layer := setting.knob("layer")) is not None:
            last = self.config.small.of(setting.size or self.config.model.size).recipe.layers - 1
            if layer > last:
                wrong("layer", f"{layer}, allowed: 0 to {last}, the layers of the small model, or null")
        if training.prompts > pool.problems:
            problem = f"{setting.preset!r} has {training.prompts} prompts a step"
            wrong("preset", f"{problem}, allowed: 1 to {pool.problems}, the problems of the row")


def _check_rebuilt(settings: list[Setting], wrong: Fail) -> None:
    """Q18 rebuilds what sampled a rollout from delta_S and the plain prompt."""
    for number, setting in enumerate(settings):
        if setting.adapter != "antipasto":
            wrong([number, "adapter"], f"{setting.adapter!r}, allowed in {DETECTOR}: antipasto")
        if setting.defence.family in ("quarantine", "prompt"):
            why = "an arm that samples with delta_S alone, under the plain prompt"
            wrong([number, "arm"], f"{setting.arm!r}, allowed in {DETECTOR}: {why}")
