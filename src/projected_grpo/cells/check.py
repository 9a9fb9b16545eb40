"""Config, questions and pair sets are checked before any job starts; each mistake is one line.

The line names the file, the key, the wrong value and what is allowed. First come the JSON schemas in
`workflow/schemas` (what a single value may be), then what no schema says: names exist, numbers fit together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from projected_grpo.cells import cell as cells
from projected_grpo.cells.bases import Bases, axes
from projected_grpo.cells.config import Config
from projected_grpo.cells.hyper import SettingError
from projected_grpo.cells.schema import first_error, key_path, short
from projected_grpo.cells.setting import make_setting
from projected_grpo.errors import UserError, nearest
from projected_grpo.files import read_jsonl
from projected_grpo.strict_yaml import read_yaml
from projected_grpo.training.teacher_pool import found_files

# What a folder must hold: one file of each tuple.
CHECKPOINT = (
    ("config.json",),
    ("model.safetensors", "model.safetensors.index.json"),
    ("tokenizer.json", "tokenizer_config.json"),
)
PEFT = (("adapter_config.json",), ("adapter_model.safetensors",))
# Probe questions: each has a rule of its own.
PROBES = ("R5", "R6", "R7")
_MISSING = object()


def checked_questions(paths: Sequence[str | Path], config: dict) -> dict:
    """Check a merged config, then read and check the questions it names; return them parsed.

    paths: the files the config is merged from, later ones over earlier. Raises UserError, one line.
    """
    checked = _ConfigCheck(paths, config).run()
    questions = read_yaml(config["questions"])
    _QuestionsCheck(checked, questions).run()
    return questions


def check(paths: Sequence[str | Path], config: dict, questions: object) -> None:
    """Check a merged config and its parsed questions. Raises UserError, one line, for the first mistake."""
    _QuestionsCheck(_ConfigCheck(paths, config).run(), questions).run()


class _ConfigCheck:
    def __init__(self, paths: Sequence[str | Path], config: dict):
        self.layers = [(str(path), read_yaml(path)) for path in paths]
        self.config = config

    def run(self) -> "_ConfigCheck":
        for path, layer in self.layers:
            if not isinstance(layer, dict):
                raise UserError(f"{path}: found {short(layer)}, allowed: a mapping of settings")
        if wrong := first_error("config", self.config, complete=True):
            self.fail(*wrong)
        self._seeds()
        self._model()
        self._bases()
        self._pools()
        return self

    def fail(self, keys: list[str | int], problem: str) -> NoReturn:
        raise UserError(f"{self.file_of(keys)}: {key_path(keys)}: {problem}")

    def file_of(self, keys: Sequence[str | int]) -> str:
        """The last file that gives `keys` the value in use; `--config` where the command line gives it."""
        value = _get(self.config, keys)
        if value is _MISSING:  # it belongs with all the others, in the first file
            return self.layers[0][0]
        for path, layer in reversed(self.layers):
            found = _get(layer, keys)
            if found == value or str(found) == str(value) == "nan":  # which equals nothing, itself neither
                return path
        return "--config"

    def _seeds(self) -> None:
        seeds = self.config["seeds"]
        if isinstance(seeds, list) and len(set(seeds)) < len(seeds):
            self.fail(["seeds"], f"{short(seeds)}, allowed: each seed once")
        self.typed = Config.model_validate(self.config)

    def _model(self) -> None:
        model = self.config["model"]
        if model["base"] == "small":
            if model["teacher"] != "small":
                self.fail(["model", "teacher"], f"{model['teacher']!r}, allowed with the base 'small': small")
        else:
            self._folder("base", "a Hugging Face checkpoint folder", CHECKPOINT)
            if model["teacher"] == "small":
                self.fail(["model", "teacher"], "'small', allowed with a given base: a PEFT folder or hub id")
            self._folder("teacher", "a PEFT folder", PEFT)
        problems = model["problems"]
        if problems != "generated" and not Path(problems).is_file():
            self.fail(
                ["model", "problems"],
                f"{problems!r} is no file, allowed: generated, or a JSONL(.gz) file of rows (docs/scale.md)",
            )
        if problems != "generated":
            asked, rows = self.config["pool"]["problems"], sum(1 for _ in read_jsonl(problems))
            if asked > rows:
                self.fail(["pool", "problems"], f"{asked}, allowed: 1 to {rows}, the rows of {problems}")

    def _folder(self, key: str, what: str, files: Sequence[tuple[str, ...]]) -> None:
        """The folder holds one of each tuple of `files`, or it is no folder but a hub id."""
        name = self.config["model"][key]
        allowed = f"allowed: small, {what} or a hub id (owner/name)"
        folder = Path(name).expanduser()
        if folder.is_dir():
            for names in files:
                if not any((folder / file).is_file() for file in names):
                    self.fail(["model", key], f"{name!r} is a folder without {names[0]}, {allowed}")
        elif name.startswith((".", "/", "~")) or name.count("/") != 1:
            self.fail(["model", key], f"{name!r} is no folder, {allowed}")

    def _bases(self) -> None:
        self.bases = Bases(self.config, self.fail)
        for basis in self.bases.named:
            self.bases.check(basis)
        probe = self.config["probe"]
        self.bases.check_name(probe["basis"], ["probe", "basis"], self.fail)
        for number, basis in enumerate(probe["compare"]):
            self.bases.check_name(basis, ["probe", "compare", number], self.fail)
        mode, modes = probe["mode"], self.config["pool"]["modes"]
        if mode not in modes:
            self.fail(["probe", "mode"], f"{mode!r} is not in pool.modes; {nearest(mode, modes)}")

    def _pools(self) -> None:
        models = self.typed.models
        for name, pool in self.config["probe"]["pools"].items():
            keys, model, folder = ["probe", "pools", name], pool["model"], pool["folder"]
            if name in models:
                self.fail(keys, f"{name!r} is a replication's own pool, allowed: another name")
            if model not in models:
                self.fail([*keys, "model"], f"{model!r} is no replication; {nearest(model, models)}")
            if not found_files(folder):
                allowed = "allowed: a folder of JSON-lines files of rollouts"
                self.fail([*keys, "folder"], f"{folder!r} has none, {allowed}")


class _QuestionsCheck:
    """The parsed questions, against a config that has been checked."""

    def __init__(self, checked: _ConfigCheck, questions: object):
        self.config, self.bases, self.questions = checked.config, checked.bases, questions
        self.typed = checked.typed
        self.path = str(self.config["questions"])

    def run(self) -> None:
        if wrong := first_error("questions", self.questions):
            self.fail(*wrong)
        for name, question in self.questions.items():
            if not name.startswith("$"):
                self._question(name, question)

    def fail(self, keys: list[str | int], problem: str) -> NoReturn:
        raise UserError(f"{self.path}: {key_path(keys)}: {problem}")

    def _question(self, name: str, question: dict) -> None:
        rows, shared = question["rows"], question.get("settings", {})
        names = [row["name"] for row in rows]
        if question.get("kind") == "probe" and name not in PROBES:
            self.fail([name, "kind"], f"'probe', allowed: table, aa; a probe is one of {', '.join(PROBES)}")
        if "baseline" in question:
            self._other_row([name, "baseline"], question["baseline"], names)
        for number, row in enumerate(rows):
            where = [name, "rows", number]
            if row["name"] in names[:number]:
                first = names.index(row["name"])
                self.fail([*where, "name"], f"{row['name']!r} is rows[{first}]'s name, allowed: each once")
            for key in cells.OTHER_ROWS:
                if key in row:
                    self._other_row([*where, key], row[key], names)
            own = {key: [*where, key] for key in row}
            inherited = {key: [name, "settings", key] for key in shared}
            self._row({**shared, **row}, where, inherited | own)

    def _other_row(self, keys: list[str | int], other: str, names: list[str]) -> None:
        if other not in names:
            self.fail(keys, f"no row {other!r}; {nearest(other, names)}")

    def _row(self, row: dict, where: list[str | int], places: dict[str, list[str | int]]) -> None:
        """Check a row's settings against each other and the config; `places`: where each of them stands."""

        def wrong(key: str, problem: str) -> NoReturn:
            self.fail(places.get(key, [*where, key]), problem)

        own = {key: value for key, value in row.items() if key not in ("name", *cells.OTHER_ROWS)}
        setting = make_setting(own, f"{self.path}: {key_path(where)}")
        if setting.basis:
            self.bases.check_name(setting.basis, places["basis"], self.fail)
            most = axes(self.typed.knobs(setting.basis).model_dump())
            if (setting.knob("k") or 1) > most:
                wrong(
                    "k", f"{setting.knob('k')}, allowed: 1 to {most}, the axes of the basis {setting.basis!r}"
                )
        try:
            cells.make_cell(setting, self.typed.seeds[0], self.typed)
        except SettingError as error:
            wrong(error.key, error.problem)
        self._modes(setting.model_dump(), wrong)

    def _modes(self, setting: dict, wrong) -> None:
        pool = self.config["pool"]["modes"]
        for mode in setting["modes"] or []:
            if mode not in pool:
                wrong("modes", f"{mode!r} is not in pool.modes; {nearest(mode, pool)}")
        modes, held_out = setting["modes"] or pool, setting["held_out_mode"]
        # A pool of one mode, as the paper's, has no other to hold out: rows that do are left out.
        if held_out is not None and len(modes) > 1 and held_out not in modes:
            wrong("held_out_mode", f"{held_out!r} is no mode of the row; {nearest(held_out, modes)}")


def _get(value: object, keys: Sequence[str | int]) -> object:
    """The value at a key path, _MISSING where it leads nowhere."""
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return value
