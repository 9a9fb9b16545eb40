"""Cells are data: `questions.yaml` + config -> one readable id and one full set of settings per distinct run.

A row of a question names settings; what it leaves out comes from the question's `settings`, then from
the defaults of `Setting`. Rows with equal settings share a cell, whatever question they stand in. Nothing here
knows Snakemake or torch: rules, scripts and tables all read this one expansion.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from projected_grpo.arms import Tag
from projected_grpo.arms.shared.prompted import CONTROLS
from projected_grpo.cells import questions as asked
from projected_grpo.cells.config import Config
from projected_grpo.cells.questions import Heading
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.cells.run_settings import RunSettings, Use
from projected_grpo.cells.setting import Setting
from projected_grpo.environment.monitors import COIN
from projected_grpo.errors import SettingError, UserError, nearest


class Cell(RunSettings):
    """One run: its id, the model of its replication, and every setting that can change its numbers."""

    id: str
    model: str
    pool: str  # below results/teacher_pool/: the model's, or one of other loopholes that its row names

    def params(self) -> str:
        """Return everything that decides the run's numbers as one stable JSON text."""
        return self.model_dump_json(include=set(RunSettings.model_fields))

    @property
    def steps(self) -> int:
        return self.training.steps

    def unlike(self, other: "Cell") -> list[str]:
        """Return the settings in which two runs differ, apart from what their axes are and how they are judged.

        A control of a direction is one of random axes that differs in none: the same k, gate, refresh, and all else.
        """
        # Which side of random axes is the hack-ward one is random, too.
        content = {"basis", "direction", "control", "sign", "final_eval", "k"}
        differ = [key for key in self.told_apart_from(other) if key not in content]
        mine, others = (cell.use and cell.use.k for cell in (self, other))
        return differ if mine == others else [*differ, "k"]

    def told_apart_from(self, other: "Cell") -> list[str]:
        """Return the settings of their rows in which two runs differ."""
        mine, others = self.setting.flat(), other.setting.flat()
        return [key for key in {**mine, **others} if mine.get(key) != others.get(key)]

    @property
    def twin(self) -> tuple[Setting, int]:
        """Return what tells trainings of one config apart: an evaluation after the last step changes none of them."""
        return self.setting.model_copy(update={"final_eval": False}), self.seed


class Row(Heading):
    """A row of a question's table: its cells in the order of the seeds, and the rows it is compared with."""

    setting: Setting
    cells: tuple[Cell, ...]
    control: str = "none"  # what its arm or its basis makes of its axes, if anything: random, shuffled, ...
    claims: bool = True  # neither a control of any kind nor a placebo: it may be a finding
    exploits: str | None = None  # whose exploits its axes are of, if any: more than anyone could write
    without_truth: bool = False  # whoever runs it needs no verdict on any rollout, nor an exploit of a lever

    @property
    def is_control(self) -> bool:
        """Whether its axes are random, without content: what removing anything at all does."""
        return self.control == "random"


class Question(asked.Question):
    """One table: what it asks, and its rows with their runs."""

    name: str
    rows: tuple[Row, ...]  # type: ignore[assignment]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the distinct cells of all rows, in order."""
        return tuple({cell.id: cell for row in self.rows for cell in row.cells}.values())


def tags(model: BaseModel) -> list[str]:
    """Return the id parts of the fields that differ from their defaults, in the order of the fields."""
    parts = []
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        tag = next((entry for entry in info.metadata if isinstance(entry, Tag)), None)
        if tag and value is not None and (info.is_required() or value != info.default):
            parts.append(tag.of(value))
    return parts


def cell_id(setting: Setting, seed: int) -> str:
    """Return a readable id: arm, its knobs and other settings that differ from their defaults, mix and seed."""
    return "-".join([setting.arm, *tags(setting.knobs), *tags(setting), f"m{setting.mix:g}", f"s{seed}"])


def make_cell(setting: Setting, seed: int, config: Config) -> Cell:
    """Complete a setting to the cell of one seed. Raises SettingError like `make_cells`."""
    return make_cells(setting, (seed,), config)[0]


def make_cells(setting: Setting, seeds: Iterable[int], config: Config) -> tuple[Cell, ...]:
    """Complete a setting to a cell per seed. Raises SettingError where setting, basis and config do not fit."""
    known: dict[str, Mapping[str, Any]] = {"size": config.small.sizes, "variant": config.small.variants}
    for key, named in known.items():
        value = getattr(setting, key)
        if value is not None and value not in named:
            raise SettingError(key, f"{value!r}; {nearest(value, named)}")
    for key, default in {"modes": config.pool.modes, "size": config.model.size}.items():
        if getattr(setting, key) == default:  # saying what is the default makes no other cell
            setting = setting.model_copy(update={key: None})
    use, needs = None, setting.needs
    training = config.grpo.training(setting.preset, setting.mix, setting.adapter, setting.lr)
    training = setting.defence.training(setting.knobs, training)
    if basis := needs.basis:
        own = config.knobs(basis)
        if own.adapter != setting.adapter:
            allowed = f"allowed: {own.adapter}, as the basis {basis!r}"
            raise SettingError("adapter", f"{setting.adapter!r}, {allowed}")
        setting, use = _with_axes(setting, own.use)
    if needs.clean_run:
        setting, use = _with_axes(setting, _of_clean_run(setting, config))
    source = needs.basis or needs.direction
    direction = config.knobs(source).direction if source and needs.direction else None
    complete = setting.model_copy(update={"modes": setting.modes or config.pool.modes})

    def cell(seed: int) -> Cell:
        model = config.model_name(seed, setting.size, setting.variant)
        own: dict[str, Any] = {"id": cell_id(setting, seed), "model": model, "seed": seed}
        own["pool"] = "-".join([model, *filter(None, ["+".join(setting.modes or ())])])
        own["basis"] = config.basis_file(basis, seed) if basis else None
        return Cell(**own, setting=complete, training=training, use=use, direction=direction)

    return tuple(map(cell, seeds))


def control_of(setting: Setting, config: Config) -> str:
    """Return which control a row is: of its arm's or its basis's axes, a coin, a sentence; `none` where it is none."""
    source = setting.source
    own = [setting.knob("control"), source and config.knobs(source).control]
    own.append("coin" if setting.knob("monitor") == COIN else "none")
    own.append(said if (said := setting.knob("sentence")) in CONTROLS else "none")
    return next((control for control in own if control not in (None, "none")), "none")


# Pair sets that hold exploits themselves, and whose; the beginnings of the names of those without a hack.
TEACHERS = "the teacher's own exploits"
FLAGGED = "rollouts that the weak detector flagged"
EXPLOITS = {"own_mode": TEACHERS, "own_mode34": TEACHERS, "self_taught_code": FLAGGED}
PLACEBOS = ("null_city", "placebo_")


def standing(setting: Setting, config: Config) -> dict[str, Any]:
    """Return what a row stands for, by the names of `Row`: none of it is part of a run."""
    source = setting.source
    knobs = config.knobs(source) if source else None
    control, pairs = control_of(setting, config), knobs.pairs if knobs else ""
    given, is_flipped = setting.defence.must_give(setting.knobs), setting.knob("sign") == -1
    # Of the pairs of random axes a row takes their number alone, if it fits no threshold on them.
    takes_none = knobs is not None and knobs.control == "random" and not setting.needs.fitted
    are_harmless = takes_none or pairs in config.defender_pairs
    return {
        "control": control,
        "claims": control == "none" and not is_flipped and not pairs.startswith(PLACEBOS),
        # Shuffled labels turn axes of the contrast, but keep them.
        "exploits": EXPLOITS.get(pairs) if control in ("none", "shuffled") else None,
        "without_truth": are_harmless if given == "pairs" else given in ("nothing", "a sentence", "critic"),
    }


def _with_axes(setting: Setting, default: Use) -> tuple[Setting, Use]:
    """Return a setting that says k only where it is not the default, and how much of its basis it uses."""
    k = setting.knob("k") or default.k
    if k == default.k and setting.knob("k"):  # saying what is the default makes no other cell
        setting = setting.model_copy(update={"knobs": setting.knobs.model_copy(update={"k": None})})
    return setting, default.model_copy(update={"k": k})


def _of_clean_run(setting: Setting, config: Config) -> Use:
    """Return how much of the clean run's axes is used by default. Raises SettingError where there are fewer."""
    steps, allowed = config.clean_training().steps, f"allowed with arm {setting.arm!r}"
    if setting.adapter != "antipasto":
        raise SettingError("adapter", f"{setting.adapter!r}, {allowed}: antipasto")
    if (k := setting.knob("k") or 1) > steps:
        raise SettingError("k", f"{k}, {allowed}: 1 to {steps}, steps of the clean run")
    return Use(k=min(config.basis.k, steps), drop_bottom_frac=0.0)


def is_possible(setting: Setting, config: Config) -> bool:
    """Return whether a row can be run: with its pair set, monitor, model and held-out loophole.

    Without a critic nobody writes the generated pair sets, and only one with weights of its own judges a run's rows; a
    given base has no other sizes and no corpus; a pool of one loophole has no other to hold out.
    """
    needs, critic = setting.needs, config.self_taught.critic
    source = needs.basis or needs.direction
    return (
        (source is None or critic != "none" or not config.knobs(source).is_generated)
        and (critic == "trained" or not needs.critic)
        and (config.is_small or (setting.size is None and setting.variant is None))
        and setting.held_out_mode in (None, *(setting.modes or config.pool.modes))
    )


def load_questions(parsed: Mapping[str, Any], config: Config) -> dict[str, Question]:
    """Expand the parsed `questions.yaml`, which `check.load` has found sound.

    Rows that are not possible are left out, and no row is compared with them; so are rows of other loopholes where the
    pool has no others, a question without rows, and a trend over small models beside a given base.
    """
    named = {name: entry for name, entry in parsed.items() if not name.startswith("$")}
    found = {}
    for name, entry in asked.Questions.model_validate(named).root.items():
        question = _question(name, entry, config)
        if question.rows and (config.is_small or question.kind != "trend"):
            found[name] = question
    return _share_final(found)


def _question(name: str, entry: asked.Question, config: Config) -> Question:
    settings = [(row, make_setting(entry.settings | (row.model_extra or {}))) for row in entry.rows]
    rows = [_row(entry, row, setting, config) for row, setting in settings if is_possible(setting, config)]
    first = {row.cells: row.name for row in reversed(rows)}
    # Rows on loopholes that are all that this pool has repeat the others.
    same = {
        row.name: first[row.cells] if row.setting.modes == config.pool.modes else row.name for row in rows
    }
    kept = [row for row in rows if same[row.name] == row.name]
    for i, row in enumerate(kept):  # none is compared with itself or with a row that is left out
        others = {key: same.get(getattr(row, key)) for key in asked.OTHER_ROWS}
        changed = {key: None if other == row.name else other for key, other in others.items()}
        kept[i] = row.model_copy(update=changed)
    return Question(**dict(entry) | {"name": name, "rows": tuple(kept)})


def _row(question: asked.Question, row: asked.Row, setting: Setting, config: Config) -> Row:
    heading = {key: getattr(row, key) for key in Heading.model_fields}
    return Row(
        **heading | {"baseline": question.baseline_of(row)} | standing(setting, config),
        setting=setting,
        cells=make_cells(setting, config.seeds[: question.seeds], config),
    )


def _share_final(questions: dict[str, Question]) -> dict[str, Question]:
    """Let a run that one question evaluates after its last step stand for the same training in the other questions."""
    every = [cell for question in questions.values() for cell in question.cells]
    final = {cell.twin: cell for cell in every if cell.setting.final_eval}

    def shared(question: Question) -> Question:
        cells = (tuple(final.get(cell.twin, cell) for cell in row.cells) for row in question.rows)
        rows = (row.model_copy(update={"cells": own}) for row, own in zip(question.rows, cells, strict=True))
        return question.model_copy(update={"rows": tuple(rows)})

    return {name: shared(question) for name, question in questions.items()}


def all_cells(questions: dict[str, Question]) -> dict[str, Cell]:
    """Return every distinct cell by id. Raises UserError where two settings share one id."""
    cells: dict[str, Cell] = {}
    for row in (row for question in questions.values() for row in question.rows):
        for cell in row.cells:
            add_cell(cells, cell)
    return cells


def add_cell(cells: dict[str, Cell], cell: Cell) -> Cell:
    """Add a run to those by id, and return it. Raises UserError where its id is that of other settings."""
    known = cells.setdefault(cell.id, cell)
    if known.params() != cell.params():
        differ = ", ".join(known.told_apart_from(cell)) or "the config's numbers"
        same = f"two runs that differ in {differ} have this id"
        raise UserError(f"{cell.id}: {same}, allowed: one setting a run")
    return known
