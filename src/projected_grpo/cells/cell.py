"""Cells are data: `questions.yaml` + config -> one readable id and one full set of settings per distinct run.

A row of a question names settings; what it leaves out comes from the question's `settings`, then from
`DEFAULTS`. Rows with equal settings share a cell, whatever question they stand in. Nothing here knows Snakemake
or torch: rules, scripts and tables all read this one expansion.
"""

from dataclasses import dataclass, replace
from typing import Any

from projected_grpo.cells.run_settings import RunSettings, Training, Use
from projected_grpo.cells.setting import Setting, cell_id, make_setting
from projected_grpo.errors import UserError, nearest

FIRST_SEED = 41


@dataclass(frozen=True)
class Cell:
    """One run: its id, the model of its replication, and every setting that can change its numbers."""

    id: str
    model: str
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
    is_control: bool = False  # its axes are random, without content: what removing anything at all does


@dataclass(frozen=True)
class Question:
    """One table: what it asks and its rows. `kind` is `table`, `aa` or `probe` (a table with its own verdict)."""

    name: str
    title: str
    asks: str
    rows: tuple[Row, ...]
    kind: str = "table"
    primary: str | None = None  # measure that the answer is about; null: what the rows call for

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the distinct cells of all rows, in order."""
        return tuple({cell.id: cell for row in self.rows for cell in row.cells}.values())


def typed_seeds(value: Any) -> Any:
    """Return `seeds` as typed on a command line (`seeds=[41,42]`, `seeds=41,42`: texts) with its numbers as numbers."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, list):
        return [int(seed) if isinstance(seed, str) and seed.strip().isdigit() else seed for seed in value]
    return value


def seeds(config: dict) -> list[int]:
    """Return the seeds of a config: its list, or 41 ... 40+n for a number n."""
    value = typed_seeds(config["seeds"])
    return list(range(FIRST_SEED, FIRST_SEED + value)) if isinstance(value, int) else list(value)


def model_name(config: dict, seed: int) -> str:
    """Return `{model}` of a seed: a replication of its own on the small model, one shared model otherwise."""
    name = config["model"]["name"]
    return f"{name}-s{seed}" if is_replicated(config) else name


def is_replicated(config: dict) -> bool:
    """Whether each seed trains its own base, teacher and pool."""
    return config["model"]["base"] == "small"


def knobs(config: dict, basis: str) -> dict[str, Any]:
    """Return all knobs of a basis, `pairs` (its pair set) among them."""
    own = config.get("bases", {}).get(basis, {})
    return {"pairs": basis, "without_tag": None, **config["basis"], **own}


USE_KNOBS = ("k", "drop_bottom_frac")
# Pair sets that the self-taught evaluator writes: they have no file to check beforehand.
GENERATED_PAIRS = ("self_taught", "self_taught_code")
SEEDED_CONTROLS = ("random", "shuffled", "clean_vs_clean", "within_class")


def basis_file(config: dict, basis: str, seed: int) -> str:
    """Return the file name (no suffix) of a basis: seeded controls need one per seed where seeds share a model."""
    seeded = knobs(config, basis)["control"] in SEEDED_CONTROLS and not is_replicated(config)
    return f"{basis}-s{seed}" if seeded else basis


def extraction_knobs(config: dict, basis: str) -> dict[str, Any]:
    """Return the knobs that decide a basis file's content."""
    return {key: value for key, value in knobs(config, basis).items() if key not in USE_KNOBS}


def make_training(setting: Setting, config: dict) -> Training:
    """Resolve a row's hyper-parameters. Raises UserError on an unknown preset or a mix without a group size."""
    values = {key: value for key, value in config["grpo"].items() if key not in ("presets", "lora_lr")}
    presets = config["grpo"]["presets"]
    if setting.preset not in presets:
        raise UserError(f"preset {setting.preset!r} is unknown; {nearest(setting.preset, presets)}")
    preset = dict(presets[setting.preset])
    group = preset["group"]
    if isinstance(group, dict):
        sizes = {float(mix): size for mix, size in group.items()}
        if setting.mix not in sizes:
            allowed = ", ".join(f"{mix:g}" for mix in sizes)
            raise UserError(
                f"preset {setting.preset!r} has no group size for mix {setting.mix}; allowed: {allowed}"
            )
        preset["group"] = sizes[setting.mix]
    values |= preset
    if setting.adapter == "lora":
        values["lr"] = config["grpo"]["lora_lr"]
    if setting.lr is not None:
        values["lr"] = setting.lr
    return Training(**values)


def make_cell(setting: Setting, seed: int, config: dict) -> Cell:
    """Complete a setting to a cell. Raises UserError where setting, basis and config do not fit together."""
    use, file = None, None
    if setting.basis:
        own = knobs(config, setting.basis)
        if own["adapter"] != setting.adapter:
            raise UserError(
                f"basis {setting.basis!r} was extracted in {own['adapter']} space, the row's adapter is "
                f"{setting.adapter!r}; allowed: a basis of the same adapter"
            )
        if setting.knob("k") == own["k"]:  # saying what is the default makes no other cell
            setting = setting.model_copy(update={"knobs": setting.knobs.model_copy(update={"k": None})})
        use = Use(k=setting.knob("k") or own["k"], drop_bottom_frac=own["drop_bottom_frac"])
        file = basis_file(config, setting.basis, seed)
    name = cell_id(setting, seed)
    modes = setting.modes or tuple(config["pool"]["modes"])
    settings = RunSettings(
        seed=seed,
        setting=setting.model_copy(update={"modes": modes}),
        training=make_training(setting, config),
        basis=file,
        use=use,
    )
    return Cell(name, model_name(config, seed), settings)


def has_critic(config: dict) -> bool:
    """Return whether there is a self-taught evaluator."""
    return config["self_taught"]["critic"] != "none"


def has_pairs(basis: str | None, config: dict) -> bool:
    """Return whether a row's pair set can exist: without a critic nobody writes the generated ones."""
    generated = basis is not None and knobs(config, basis)["pairs"] in GENERATED_PAIRS
    return not generated or has_critic(config)


def has_held_out_mode(setting: Setting, config: dict) -> bool:
    """Return whether the loophole that a row holds out is one of its problems' (true where it holds out none)."""
    return setting.held_out_mode in (None, *(setting.modes or config["pool"]["modes"]))


# Keys of a row that name another row of its question: what it is compared with, no part of its cells.
OTHER_ROWS = ("baseline", "against")


def load_questions(questions: dict, config: dict) -> dict[str, Question]:
    """Expand the parsed `questions.yaml`; rows whose pair set nobody writes, or whose held-out loophole no problem
    has, are left out, and no row is compared with them.

    Raises UserError on an unknown key, or a `baseline` or `against` that is no row.
    """
    loaded = {}
    for name, entry in questions.items():
        if name.startswith("$"):
            continue
        shared = entry.get("settings", {})
        names = [row["name"] for row in entry["rows"]]
        rows = []
        for number, row in enumerate(entry["rows"]):
            where = f"{config['questions']}: {name}.rows[{number}]"
            own = {key: value for key, value in row.items() if key not in ("name", *OTHER_ROWS)}
            setting = make_setting({**shared, **own}, where)
            if not (has_pairs(setting.basis, config) and has_held_out_mode(setting, config)):
                continue
            others = {"baseline": row.get("baseline", entry.get("baseline")), "against": row.get("against")}
            for key, other in others.items():
                if other is not None and other not in names:
                    raise UserError(f"{where}.{key}: no row {other!r} in {name}; {nearest(other, names)}")
            try:
                cells = tuple(make_cell(setting, seed, config) for seed in seeds(config))
            except UserError as error:
                raise UserError(f"{where}: {error}") from error
            control = bool(setting.basis) and knobs(config, setting.basis)["control"] == "random"
            rows.append(Row(row["name"], setting, cells=cells, is_control=control, **others))
        kept = {row.name for row in rows}
        for i, row in enumerate(rows):  # none is compared with itself or with a row that is left out
            others = {key: getattr(row, key) for key in OTHER_ROWS}
            none = {key: None for key, other in others.items() if other == row.name or other not in kept}
            rows[i] = replace(row, **none)
        kind, primary = entry.get("kind", "table"), entry.get("primary")
        loaded[name] = Question(name, entry["title"], entry["asks"], tuple(rows), kind, primary)
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
    """Return every distinct cell by id. Raises UserError when two settings would share one id."""
    cells: dict[str, Cell] = {}
    for question in questions.values():
        for cell in question.cells:
            if cells.setdefault(cell.id, cell).params() != cell.params():
                raise UserError(f"{question.name}: two different settings share the cell id {cell.id}")
    return cells
