"""Config, questions and pair sets are checked before any job starts; each mistake is one line.

The line names the file, the key, the wrong value and what is allowed. First come the models (what a single value may
be), then what no model says: names exist, numbers fit together, files are there.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from projected_grpo import arms
from projected_grpo.cells.bases import Bases
from projected_grpo.cells.check_questions import QuestionsCheck
from projected_grpo.cells.config import Config, Primary, WheelFile
from projected_grpo.cells.layers import Layers
from projected_grpo.cells.question_files import QuestionFiles
from projected_grpo.cells.questions import Heading, Question
from projected_grpo.cells.row_setting import ROW
from projected_grpo.cells.self_taught import ALIKE
from projected_grpo.cells.setting import Setting
from projected_grpo.environment import families
from projected_grpo.errors import SettingError, nearest
from projected_grpo.files import read_json, read_jsonl
from projected_grpo.hub import local_folder, split_revision
from projected_grpo.model.architecture import check_family
from projected_grpo.schema_errors import Fail, Keys, ascii_repr

# What a folder must hold: one file of each tuple.
CHECKPOINT = (
    ("config.json",),
    ("model.safetensors", "model.safetensors.index.json"),
    ("tokenizer.json", "tokenizer_config.json"),
)
CONFIG = (("config.json",),)
PEFT = (("adapter_config.json",), ("adapter_model.safetensors", "adapter_model.bin"))
# What stands in the repository and is no output.
OWN = ("benchmarks", "config", "docs", "envs", "examples", "profiles", "rules", "src", "tests", "workflow")
VANILLA_MIXES = (0.0, 0.125)  # whose runs show what the small model can learn


def load(
    paths: Sequence[str | Path], config: Mapping[str, Any], command_line: Mapping[str, Any] | None = None
) -> tuple[Config, dict]:
    """Check a merged config and the questions it names; return it typed, and them parsed.

    paths: the files the config is merged from, later ones over earlier; command_line: what `--config` says, its
    numbers as words. Raises UserError, one line.
    """
    layers = Layers(paths, config)
    checked = _ConfigCheck(layers, command_line or {})
    for path in checked.config.questions:
        if not Path(path).exists():
            checked.fail(["questions"], f"{path}: no such file")
    questions = QuestionFiles(checked.config.questions)
    found = QuestionsCheck(checked.config, checked.bases, questions).run()
    # Where primary outcomes were named for other questions, these have none.
    if layers.level("primary") >= layers.level("questions"):
        _check_primary(checked.config.primary, found, layers.fail)
    return checked.config, questions.parsed


def _check_primary(primary: Primary, questions: Mapping[str, Question], fail: Fail) -> None:
    """Every outcome is a number of its question's table of estimates; what a slope is of, no row says."""
    for number, outcome in enumerate(primary.outcomes):
        keys, name = ["primary", "outcomes", number], outcome.question
        if name not in questions:
            continue  # a question that was taken out takes its outcome with it: it counts, as one without a test
        rows = questions[name].compared(outcome.contrast)
        if outcome.row not in {None, *rows} and outcome.contrast != "slope":
            fail([*keys, "row"], f"no row {outcome.row!r} in {name}; {nearest(outcome.row, rows)}")


class _ConfigCheck:
    def __init__(self, layers: Layers, command_line: Mapping[str, Any]):
        self.config, self.fail = layers.typed(command_line), layers.fail
        self._results()
        self._folders()
        self._arms()
        self._model()
        self._presets()
        self._names()
        self.bases = Bases(self.config, layers)
        self._bases()
        self._pools()
        self._critic()

    def _folders(self) -> None:
        for key in ("pairs", "arms"):
            for folder in getattr(self.config, key):
                if not Path(folder).is_dir():
                    self.fail([key], f"{folder}: no such folder")

    def _arms(self) -> None:
        """Every arm that the config adds loads and is named by nothing else."""
        keys = ["arms"]
        arms.look_in([])
        taken = arms.files()
        for path in [path for folder in self.config.arms for path in sorted(Path(folder).glob("*.py"))]:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", path.stem):
                self.fail(keys, f"{path}: as an arm's name, allowed: small letters, digits and _")
            if other := taken.get(path.stem):
                self.fail(keys, f"{path}: {other} is an arm of this name, allowed: another one")
            taken[path.stem] = path
        arms.look_in(self.config.arms)
        for name, path in taken.items():
            for key in arms.load(name).Knobs.model_fields:
                if key in (*ROW, *Heading.model_fields):
                    self.fail(keys, f"{path}: a knob {key!r}, which every row has, allowed: another name")

    def _results(self) -> None:
        folder, here = Path(self.config.results), Path.cwd().resolve()
        place = (here / folder).resolve()
        top = place.relative_to(here).parts[:1] if place.is_relative_to(here) else ()
        wrong = {
            "a path without ~ and ..": self.config.results[0] == "~" or ".." in folder.parts,
            "a folder of its own": place == here or place in here.parents,
            "none of the folders that the project itself is in": top and (top[0] in OWN or top[0][0] == "."),
            "a folder; this is a file": place.exists() and not place.is_dir(),
        }
        for allowed in (allowed for allowed, is_so in wrong.items() if is_so):
            self.fail(["results"], f"{self.config.results!r}, allowed: {allowed}")

    def _model(self) -> None:
        model = self.config.model
        if model.base == "small":
            if model.teacher != "small":
                self.fail(["model", "teacher"], f"{model.teacher!r}, allowed with the base 'small': small")
            if model.warm is not None:
                self.fail(["model", "warm"], "a warm start, allowed with the base 'small': null")
        else:
            self._given_base(model.base)
            if model.teacher != "small":
                allowed = "small, a PEFT folder or a hub id (owner/name)"
                self._folder(["model", "teacher"], model.teacher, allowed, PEFT)
            elif model.warm is None:
                allowed = "a PEFT folder or hub id, or a warm start (model.warm)"
                self.fail(["model", "teacher"], f"'small', allowed with a given base: {allowed}")
        if model.teacher == "small":
            self._taught()
        if model.problems == "generated":
            return
        if not Path(model.problems).is_file():
            allowed = "allowed: generated, or a JSONL(.gz) file of rows (docs/scale.md)"
            self.fail(["model", "problems"], f"{ascii_repr(model.problems)} is no file, {allowed}")
        asked, rows = self.config.pool.problems, sum(1 for _ in read_jsonl(model.problems))
        if asked > rows:
            self.fail(["pool", "problems"], f"{asked}, allowed: 1 to {rows}, the rows of {model.problems}")

    def _taught(self) -> None:
        """A teacher that is trained here has a recipe, and learns every loophole of the pool."""
        taught, size = families.load(self.config.small.family).TAUGHT, self.config.model.size
        if size not in self.config.small.sizes:
            self.fail(["model", "size"], f"{size!r}; {nearest(size, self.config.small.sizes)}")
        for number, mode in enumerate(self.config.pool.modes):
            if mode not in taught:
                allowed = f"the teacher's corpus teaches {', '.join(taught)} alone"
                self.fail(["pool", "modes", number], f"{mode!r}; {allowed}")

    def _given_base(self, base: str | WheelFile) -> None:
        """A given base is of a kind that the door takes and, where its config lies here, of a family that is run."""
        keys: Keys = ["model", "base"]
        if isinstance(base, WheelFile):
            return
        allowed = "small, a Hugging Face checkpoint folder, a .gguf file, a hub id (owner/name) or a wheel"
        if base.endswith(".gguf"):
            if not Path(base).is_file():
                self.fail(keys, f"{ascii_repr(base)} is no file, allowed: {allowed}")
            return
        self._folder(keys, base, allowed, CONFIG)
        if folder := local_folder(base, "config.json"):
            file = folder / "config.json"
            check_family(read_json(file), str(file))

    def _folder(self, keys: Keys, name: str, allowed: str, files: Sequence[tuple[str, ...]]) -> None:
        """The folder holds one of each tuple of `files`, or it is no folder but a hub id."""
        if Path(name).is_dir():
            for names in files:
                if not any(Path(name, file).is_file() for file in names):
                    self.fail(keys, f"{ascii_repr(name)} is a folder without {names[0]}, allowed: {allowed}")
        elif name.startswith((".", "/", "~")) or split_revision(name)[0].count("/") != 1:
            self.fail(keys, f"{ascii_repr(name)} is no folder, allowed: {allowed}")

    def _presets(self) -> None:
        for name, preset in self.config.grpo.presets.items():
            sizes = preset.group if isinstance(preset.group, dict) else {}
            for mix, group in sizes.items():
                if float(mix) and not round(group * float(mix)):
                    keys = ["grpo", "presets", name, "group", mix]
                    self.fail(keys, f"{group}, allowed: enough rows that {mix} of them is at least one")
        if self.config.is_small and self.config.runs == "make":
            for mix in VANILLA_MIXES:
                try:
                    self.config.training(Setting().preset, mix, "antipasto")
                except SettingError as error:
                    own = "the small model's own runs have mix 0 and 0.125"
                    self.fail(["grpo", "presets"], f"{error.problem} ({own})")

    def _names(self) -> None:
        """Names that stand side by side in ids and folders differ, and so does what they make together."""
        small = self.config.small
        named = {"small.sizes": small.sizes, "small.variants": small.variants}
        named |= {"grpo.presets": self.config.grpo.presets}
        places: dict[str, str] = {}
        for place, names in named.items():
            for name in names:
                if (other := places.setdefault(name, place)) != place:
                    self.fail([*place.split("."), name], f"a name under {other}, too, allowed: another one")
        models: dict[str, tuple[str | None, str | None]] = {}
        sizes = [None, *(size for size in small.sizes if size != self.config.model.size)]
        for own in product(sizes, [None, *small.variants]) if self.config.is_small else ():
            model = self.config.model_name(self.config.seeds[0], *own)
            if (other := models.setdefault(model, own)) != own:
                keys = ["small", *(["variants", own[1]] if own[1] else ["sizes", own[0]])]
                same = f"size and variant {own} would be the model {model}, as {other} are"
                self.fail(keys, f"{same}, allowed: another name")

    def _bases(self) -> None:
        files: dict[str, str] = {}
        for seed, basis in product(self.config.seeds, self.bases.names):
            if (other := files.setdefault(self.config.basis_file(basis, seed), basis)) != basis:
                keys = ["bases", basis] if basis in self.bases.named else ["pairs"]
                self.fail(keys, f"{basis!r} is the file of {other!r} with seed {seed}, allowed: another name")
        for basis in self.bases.named:
            self.bases.check(basis)
        probe, pool = self.config.probe, self.config.pool
        for keys, basis in _named("probe", "basis", (probe.basis, *probe.compare)):
            self.bases.check_name(basis, keys, self.fail)
        for keys, basis in _named("detector", "pairs", self.config.detector.names):
            self.bases.check_name(basis, keys, self.fail)
            knobs = self.config.knobs(basis)
            if knobs.is_generated or knobs.control != "none" or knobs.adapter != "antipasto":
                allowed = "a pair set by hand, or a basis of one without control in antipasto's space"
                self.fail(keys, f"{basis!r}, allowed: {allowed}")
        mode = probe.mode
        if mode not in pool.modes:
            self.fail(["probe", "mode"], f"{mode!r} is not in pool.modes; {nearest(mode, pool.modes)}")
        if pool.modes.index(mode) >= pool.problems:
            self.fail(["pool", "problems"], f"{pool.problems}, none has probe.mode {mode!r}")

    def _pools(self) -> None:
        models = self.config.models
        for name, pool in self.config.probe.pools.items():
            keys: Keys = ["probe", "pools", name]
            if name in models:
                self.fail(keys, f"{name!r} is a replication's own pool, allowed: another name")
            if pool.model not in models:
                problem = f"{ascii_repr(pool.model)} is no replication; {nearest(pool.model, models)}"
                self.fail([*keys, "model"], problem)
            if not any(Path(pool.folder).glob("[!.]*.jsonl*")):
                allowed = "allowed: a folder of JSON-lines files of rollouts"
                self.fail([*keys, "folder"], f"{ascii_repr(pool.folder)} has none, {allowed}")

    def _critic(self) -> None:
        critic, keys = self.config.self_taught, ["self_taught", "grid"]
        others = [size for size in self.config.small.sizes if size != self.config.model.size]
        if (grid := critic.grid) == ALIKE:
            self.fail(keys, f"{ALIKE!r} is the name of other critics, allowed: another size")
        if grid is not None and grid not in others:
            self.fail(keys, f"{ascii_repr(grid)} is no other size than model.size; {nearest(grid, others)}")
        if critic.critic != "local":
            return
        if critic.model:
            allowed = "null for the base, a Hugging Face checkpoint folder or a hub id (owner/name)"
            self._folder(["self_taught", "model"], critic.model, allowed, CHECKPOINT)
        if critic.adapter:
            allowed = "null for none, a PEFT folder or a hub id (owner/name)"
            self._folder(["self_taught", "adapter"], critic.adapter, allowed, PEFT)


def _named(section: str, first: str, names: Iterable[str]) -> Iterable[tuple[Keys, str]]:
    """Return (keys, name) of the one that a section asks about first, then of those that stand beside it."""
    keys = [[section, first], *([section, "compare", number] for number, _ in enumerate(names))]
    return zip(keys, names, strict=False)
