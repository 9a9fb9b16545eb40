"""Cells are data: `questions.yaml` + config -> one readable id and one full set of settings per distinct run.

A row of a question names settings; what it leaves out comes from the question's `settings`, then from
the defaults of `Setting`. Rows with equal settings share a cell, whatever question they stand in. Nothing here
knows Snakemake or torch: rules, scripts and tables all read this one expansion.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from pydantic import BaseModel

from projected_grpo.arms import Tag
from projected_grpo.arms.shared.prompted import CONTROLS
from projected_grpo.cells.config import Config
from projected_grpo.cells.hyper import Training
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.cells.run_settings import RunSettings, Use
from projected_grpo.cells.setting import Setting
from projected_grpo.cells.wording import Wording
from projected_grpo.environment.monitors import COIN
from projected_grpo.errors import SettingError, UserError, nearest


@dataclass(frozen=True)
class Cell:
    """One run: its id, the model of its replication, and every setting that can change its numbers."""

    id: str
    model: str
    pool: str  # below results/teacher_pool/: the model's, or one of other loopholes that its row names
    settings: RunSettings

    def params(self) -> str:
        """Return everything that decides the run's numbers as one stable JSON text."""
        return self.settings.model_dump_json()

    @property
    def seed(self) -> int:
        return self.settings.seed

    @property
    def setting(self) -> Setting:
        return self.settings.setting

    @property
    def basis(self) -> str | None:
        """Name of the basis file below results/basis/{model}/."""
        return self.settings.basis

    @property
    def training(self) -> Training:
        return self.settings.training

    @property
    def steps(self) -> int:
        return self.training.steps

    def unlike(self, other: "Cell") -> list[str]:
        """Return the settings in which two runs differ, apart from what their axes are and how they are judged.

        A control of a direction is one of random axes that differs in none: the same k, gate, refresh, and all else.
        """
        # Which side of random axes is the hack-ward one is random, too.
        content = {"basis", "direction", "control", "sign", "final_eval"}
        used = [cell.settings.use and cell.settings.use.k for cell in (self, other)]
        differ = [key for key in self.told_apart_from(other) if key not in content | {"k"}]
        return [*differ, *(["k"] if used[0] != used[1] else [])]

    def told_apart_from(self, other: "Cell") -> list[str]:
        """Return the settings of their rows in which two runs differ."""
        mine, others = self.setting.flat(), other.setting.flat()
        return [key for key in {**mine, **others} if mine.get(key) != others.get(key)]

    @property
    def twin(self) -> tuple[Setting, int]:
        """Return what tells trainings of one config apart: an evaluation after the last step changes none of them."""
        return self.setting.model_copy(update={"final_eval": False}), self.seed


@dataclass(frozen=True)
class Row:
    """A row of a question's table: its cells in the order of the seeds, and the rows it is compared with."""

    name: str
    setting: Setting
    baseline: str | None
    cells: tuple[Cell, ...]
    against: str | None = None  # a second row that it is paired with, where the question is arm against arm
    population: str | None = None  # it is a placebo, one of those of this name
    kind: str | None = None  # of placebo
    place_in: str | None = None  # the population of placebos that it is held against
    pooled: str | None = None  # rows of one such name are one more row: their mean by seed
    control: str = "none"  # what its arm or its basis makes of its axes, if anything: random, shuffled, ...
    claims: bool = True  # neither a control of any kind nor a placebo: it may be a finding
    exploits: str | None = None  # whose exploits its axes are of, if any: more than anyone could write
    without_truth: bool = False  # whoever runs it needs no verdict on any rollout, nor an exploit of a lever

    @property
    def is_control(self) -> bool:
        """Whether its axes are random, without content: what removing anything at all does."""
        return self.control == "random"


@dataclass(frozen=True)
class Question:
    """One table: what it asks and its rows. `kind` is `table`, `plane`, `trend`, `aa` or `probe`, as pages are made."""

    name: str
    title: str
    asks: str
    rows: tuple[Row, ...]
    kind: str = "table"
    primary: str | None = None  # measure that the answer is about; null: what the rows call for
    wording: Wording = field(default_factory=Wording)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the distinct cells of all rows, in order."""
        return tuple({cell.id: cell for row in self.rows for cell in row.cells}.values())

    def text(self) -> str:
        """Return everything that the question says as one stable JSON text."""
        return json.dumps(asdict(self), sort_keys=True, default=lambda model: model.model_dump(mode="json"))


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
    for key, named in {"size": config.small.sizes, "variant": config.small.variants}.items():
        value = getattr(setting, key)
        if value is not None and value not in named:
            raise SettingError(key, f"{value!r}; {nearest(value, named)}")
    for key, default in {"modes": config.pool.modes, "size": config.model.size}.items():
        if getattr(setting, key) == default:  # saying what is the default makes no other cell
            setting = setting.model_copy(update={key: None})
    use = None
    training = config.training(setting.preset, setting.mix, setting.adapter, setting.lr)
    training = setting.defence.training(setting.knobs, training)
    if setting.basis:
        own = config.knobs(setting.basis)
        if own.adapter != setting.adapter:
            raise SettingError(
                "adapter", f"{setting.adapter!r}, allowed: {own.adapter}, as the basis {setting.basis!r}"
            )
        setting, use = _with_axes(setting, own.use)
    if setting.needs.clean_run:
        setting, use = _with_axes(setting, _of_clean_run(setting, config))
    basis = setting.basis
    direction = config.knobs(setting.source).direction if setting.needs.direction else None
    complete = setting.model_copy(update={"modes": setting.modes or config.pool.modes})
    cells = []
    for seed in seeds:
        file = config.basis_file(basis, seed) if basis else None
        settings = RunSettings(
            seed=seed, setting=complete, training=training, basis=file, use=use, direction=direction
        )
        model = config.model_name(seed, setting.size, setting.variant)
        pool = "-".join([model, *filter(None, ["+".join(setting.modes or ())])])
        cells.append(Cell(cell_id(setting, seed), model, pool, settings))
    return tuple(cells)


def control_of(setting: Setting, config: Config) -> str:
    """Return which control a row is: of its arm's or its basis's axes, a coin, a sentence; `none` where it is none."""
    own = [setting.knob("control"), setting.source and config.knobs(setting.source).control]
    own.append("coin" if setting.knob("monitor") == COIN else "none")
    own.append(said if (said := setting.knob("sentence")) in CONTROLS else "none")
    return next((control for control in own if control not in (None, "none")), "none")


# Pair sets that hold exploits themselves, and whose; the beginnings of the names of those without a hack.
TEACHERS = "the teacher's own exploits"
FLAGGED = "rollouts that the weak detector flagged"
EXPLOITS = {"own_mode": TEACHERS, "own_mode34": TEACHERS, "self_taught_code": FLAGGED}
PLACEBOS = ("null_city", "placebo_")


def may_claim(setting: Setting, config: Config) -> bool:
    """Return whether a row is no placebo and no control: axes or labels at random, V flipped, no hack in the pairs."""
    if control_of(setting, config) != "none" or setting.knob("sign") == -1:
        return False
    return not (setting.source and config.knobs(setting.source).pairs.startswith(PLACEBOS))


def whose_exploits(setting: Setting, config: Config) -> str | None:
    """Return whose exploits a row acts along; None where its axes come from no contrast of such.

    Shuffled labels turn axes of the contrast, but keep them.
    """
    if not setting.source or control_of(setting, config) not in ("none", "shuffled"):
        return None
    return EXPLOITS.get(config.knobs(setting.source).pairs)


def is_without_truth(setting: Setting, config: Config) -> bool:
    """Return whether nobody who runs a row needs to know which rollouts hack, nor an exploit that pays."""
    given = setting.defence.must_give(setting.knobs)
    if given != "pairs":
        return given in ("nothing", "a sentence", "critic")
    knobs = config.knobs(setting.source)
    if (
        knobs.control == "random" and not setting.needs.fitted
    ):  # their number is all that it takes of the pairs
        return True
    return knobs.pairs in config.defender_pairs


def _with_axes(setting: Setting, default: Use) -> tuple[Setting, Use]:
    """Return a setting that says k only where it is not the default, and how much of its basis it uses."""
    k = setting.knob("k") or default.k
    if k == default.k and setting.knob("k"):  # saying what is the default makes no other cell
        setting = setting.model_copy(update={"knobs": setting.knobs.model_copy(update={"k": None})})
    return setting, default.model_copy(update={"k": k})


def _of_clean_run(setting: Setting, config: Config) -> Use:
    """Return how much of the clean run's axes is used by default. Raises SettingError where there are fewer."""
    if setting.adapter != "antipasto":
        raise SettingError("adapter", f"{setting.adapter!r}, allowed with arm {setting.arm!r}: antipasto")
    steps = config.clean_training().steps
    if (k := setting.knob("k") or 1) > steps:
        allowed = f"allowed with arm {setting.arm!r}: 1 to {steps}, steps of the clean run"
        raise SettingError("k", f"{k}, {allowed}")
    return Use(k=min(config.basis.k, steps), drop_bottom_frac=0.0)


def is_possible(setting: Setting, config: Config) -> bool:
    """Return whether a row can be run: with its pair set, monitor, model and held-out loophole.

    Without a critic nobody writes the generated pair sets, and only one with weights of its own judges a run's rows; a
    given base has no other sizes and no corpus; a pool of one loophole has no other to hold out.
    """
    source = setting.source
    return (
        (source is None or config.has_critic or not config.knobs(source).is_generated)
        and (config.has_trained_critic or not setting.needs.critic)
        and (config.is_small or (setting.size is None and setting.variant is None))
        and setting.held_out_mode in (None, *(setting.modes or config.pool.modes))
    )


# Keys of a row that name another row of its question: what it is compared with, no part of its cells.
OTHER_ROWS = ("baseline", "against")
# Keys of a row that say what it stands for in its table.
ROLES = ("population", "kind", "place_in", "pooled")


def load_questions(questions: dict, config: Config) -> dict[str, Question]:
    """Expand the parsed `questions.yaml`, which `check.load` has found sound.

    Rows whose pair set nobody writes, whose monitor nobody trains, whose held-out loophole no problem has, or which
    want another small model beside a given base, are left out, and no row is compared with them. So are rows of other
    loopholes where the pool has no others, a question without rows, and a trend over small models beside a given base.
    """
    loaded = {}
    for name, entry in questions.items():
        if name.startswith("$") or (entry.get("kind") == "trend" and not config.is_small):
            continue
        shared = entry.get("settings", {})
        rows = []
        for row in entry["rows"]:
            own = {key: value for key, value in row.items() if key not in ("name", *OTHER_ROWS, *ROLES)}
            setting = make_setting({**shared, **own}, f"{name}: {row['name']}")
            if not is_possible(setting, config):
                continue
            others = {"baseline": row.get("baseline", entry.get("baseline")), "against": row.get("against")}
            roles = {key: row.get(key) for key in ROLES}
            cells = make_cells(setting, config.seeds[: entry.get("seeds")], config)
            said = {"control": control_of, "claims": may_claim, "exploits": whose_exploits}
            said["without_truth"] = is_without_truth
            said = {key: of(setting, config) for key, of in said.items()}
            rows.append(Row(row["name"], setting, cells=cells, **said, **others, **roles))
        first = {}
        for row in rows:
            first.setdefault(row.cells, row.name)
        # Rows on loopholes that are all that this pool has repeat the others.
        again = {r.name for r in rows if r.setting.modes == config.pool.modes and first[r.cells] != r.name}
        same = {row.name: first[row.cells] if row.name in again else row.name for row in rows}
        rows = [row for row in rows if row.name not in again]
        for i, row in enumerate(rows):  # none is compared with itself or with a row that is left out
            others = {key: same.get(getattr(row, key)) for key in OTHER_ROWS}
            rows[i] = replace(row, **{k: None if other == row.name else other for k, other in others.items()})
        kind, primary = entry.get("kind", "table"), entry.get("primary")
        wording = Wording.model_validate({k: v for k, v in entry.items() if k in Wording.model_fields})
        if rows:
            loaded[name] = Question(name, entry["title"], entry["asks"], tuple(rows), kind, primary, wording)
    return _share_final(loaded)


def _share_final(questions: dict[str, Question]) -> dict[str, Question]:
    """Let a run that one question evaluates after its last step stand for the same training in the other questions."""
    every = [cell for question in questions.values() for cell in question.cells]
    final = {cell.twin: cell for cell in every if cell.setting.final_eval}

    def shared(row: Row) -> Row:
        return replace(row, cells=tuple(final.get(cell.twin, cell) for cell in row.cells))

    return {
        name: replace(question, rows=tuple(shared(row) for row in question.rows))
        for name, question in questions.items()
    }


def all_cells(questions: dict[str, Question]) -> dict[str, Cell]:
    """Return every distinct cell by id. Raises UserError where two settings share one id."""
    cells: dict[str, Cell] = {}
    for question in questions.values():
        for row in question.rows:
            for cell in row.cells:
                add_cell(cells, cell)
    return cells


def add_cell(cells: dict[str, Cell], cell: Cell) -> Cell:
    """Add a run to those by id, and return it. Raises UserError where its id is that of other settings."""
    known = cells.setdefault(cell.id, cell)
    if known.params() != cell.params():
        differ = ", ".join(known.told_apart_from(cell)) or "the config's numbers"
        raise UserError(
            f"{cell.id}: two runs that differ in {differ} have this id, allowed: one setting a run"
        )
    return known
