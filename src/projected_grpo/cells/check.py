"""Config, questions and pair sets are checked before any job starts; each mistake is one line.

The line names the file, the key, the wrong value and what is allowed. First come the models (what a single value may
be), then what no model says: names exist, numbers fit together, files are there.
"""

import os
import re
from collections.abc import Mapping, Sequence
from glob import glob
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from projected_grpo import arms
from projected_grpo.cells.bases import Bases
from projected_grpo.cells.check_questions import QuestionsCheck
from projected_grpo.cells.config import Config, WheelFile
from projected_grpo.cells.config_errors import ascii_repr
from projected_grpo.cells.layers import Layers
from projected_grpo.cells.question_files import QuestionFiles
from projected_grpo.cells.questions import Heading
from projected_grpo.cells.row_setting import ROW
from projected_grpo.cells.self_taught import ALIKE
from projected_grpo.cells.setting import Setting
from projected_grpo.environment import families
from projected_grpo.errors import SettingError, nearest
from projected_grpo.files import read_json, read_jsonl
from projected_grpo.hub import local_folder, split_revision
from projected_grpo.model.architecture import check_family

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
    checked = _ConfigCheck(Layers(paths, config), command_line or {})
    for path in checked.config.questions:
        if not Path(path).exists():
            checked.fail(["questions"], f"{path}: no such file")
    questions = QuestionFiles(checked.config.questions)
    QuestionsCheck(checked.config, checked.bases, questions).run()
    return checked.config, questions.parsed


def has_gpu() -> bool:
    """Whether this machine shows a GPU to its processes; asked without torch, which takes seconds to import."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
    return not hidden and any(glob(pattern) for pattern in ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/kfd"))


class _ConfigCheck:
    def __init__(self, layers: Layers, command_line: Mapping[str, Any]):
        self.config, self.fail = layers.typed(command_line), layers.fail
        self._results()
        self._tracker()
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
        arms.look_in([])
        taken = arms.files()
        for folder in self.config.arms:
            for path in sorted(Path(folder).glob("*.py")):
                if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", path.stem):
                    self.fail(["arms"], f"{path}: as an arm's name, allowed: small letters, digits and _")
                if path.stem in taken:
                    self.fail(
                        ["arms"], f"{path}: {taken[path.stem]} is an arm of this name, allowed: another one"
                    )
                taken[path.stem] = path
        arms.look_in(self.config.arms)
        for name in taken:
            for key in arms.load(name).Knobs.model_fields:
                if key in (*ROW, *Heading.model_fields):
                    self.fail(
                        ["arms"], f"{taken[name]}: a knob {key!r}, which every row has, allowed: another name"
                    )

    def _results(self) -> None:
        folder = Path(self.config.results)
        here = Path.cwd().resolve()
        if self.config.results.startswith("~") or ".." in folder.parts:
            self._wrong_results("a path without ~ and ..")
        place = (here / folder).resolve()
        if place == here or place in here.parents:
            self._wrong_results("a folder of its own")
        top = place.relative_to(here).parts[0] if place.is_relative_to(here) else ""
        if top in OWN or top.startswith("."):
            self._wrong_results("none of the folders that the project itself is in")
        if place.exists() and not place.is_dir():
            self._wrong_results("a folder; this is a file")

    def _wrong_results(self, allowed: str) -> None:
        self.fail(["results"], f"{self.config.results!r}, allowed: {allowed}")

    def _tracker(self) -> None:
        if self.config.tracker == "trackio" and not find_spec("trackio"):
            self.fail(["tracker"], "'trackio' is not installed; .venv/bin/pip install trackio")

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
        taught, sizes = families.load(self.config.small.family).TAUGHT, self.config.small.sizes
        if self.config.model.size not in sizes:
            self.fail(
                ["model", "size"], f"{self.config.model.size!r}; {nearest(self.config.model.size, sizes)}"
            )
        for number, mode in enumerate(self.config.pool.modes):
            if mode not in taught:
                allowed = f"the teacher's corpus teaches {', '.join(taught)} alone"
                self.fail(["pool", "modes", number], f"{mode!r}; {allowed}")

    def _given_base(self, base: str | WheelFile) -> None:
        """A given base is of a kind that the door takes and, where its config lies here, of a family that is run."""
        keys: list[str | int] = ["model", "base"]
        if isinstance(base, WheelFile):
            return
        allowed = "small, a Hugging Face checkpoint folder, a .gguf file, a hub id (owner/name) or a wheel"
        if base.endswith(".gguf"):
            if not Path(base).is_file():
                self.fail(keys, f"{ascii_repr(base)} is no file, allowed: {allowed}")
            return
        self._folder(keys, base, allowed, CONFIG)
        folder = local_folder(base, "config.json")
        if folder:
            file = folder / "config.json"
            check_family(read_json(file), str(file))

    def _folder(
        self, keys: list[str | int], name: str, allowed: str, files: Sequence[tuple[str, ...]]
    ) -> None:
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
        if self.config.is_replicated and self.config.runs == "make":
            for mix in VANILLA_MIXES:
                try:
                    self.config.training(Setting().preset, mix, "antipasto")
                except SettingError as error:
                    where = ["grpo", "presets"]
                    self.fail(where, f"{error.problem} (the small model's own runs have mix 0 and 0.125)")

    def _names(self) -> None:
        """Names that stand side by side in ids and folders differ, and so does what they make together."""
        small = self.config.small
        named = {
            "small.sizes": small.sizes,
            "small.variants": small.variants,
            "grpo.presets": self.config.grpo.presets,
        }
        places: dict[str, str] = {}
        for place, names in named.items():
            for name in names:
                if (other := places.setdefault(name, place)) != place:
                    self.fail([*place.split("."), name], f"a name under {other}, too, allowed: another one")
        models: dict[str, tuple[str | None, str | None]] = {}
        sizes = [None, *(size for size in small.sizes if size != self.config.model.size)]
        for own in product(sizes, [None, *small.variants]) if self.config.is_replicated else ():
            model = self.config.model_name(self.config.seeds[0], *own)
            if (other := models.setdefault(model, own)) != own:
                keys, name = (["small", "variants"], own[1]) if own[1] else (["small", "sizes"], own[0])
                self.fail(
                    [*keys, name],
                    f"size and variant {own} would be the model {model}, as {other} are, "
                    "allowed: another name",
                )

    def _bases(self) -> None:
        files: dict[str, str] = {}
        for seed, basis in product(self.config.seeds, self.bases.names):
            if (other := files.setdefault(self.config.basis_file(basis, seed), basis)) != basis:
                keys = ["bases", basis] if basis in self.bases.named else ["pairs"]
                self.fail(keys, f"{basis!r} is the file of {other!r} with seed {seed}, allowed: another name")
        for basis in self.bases.named:
            self.bases.check(basis)
        probe = self.config.probe
        self.bases.check_name(probe.basis, ["probe", "basis"], self.fail)
        for number, basis in enumerate(probe.compare):
            self.bases.check_name(basis, ["probe", "compare", number], self.fail)
        detector = self.config.detector
        for number, basis in enumerate(detector.names):
            keys = ["detector", "compare", number - 1] if number else ["detector", "pairs"]
            self.bases.check_name(basis, keys, self.fail)
            knobs = self.config.knobs(basis)
            if knobs.is_generated or knobs.control != "none" or knobs.adapter != "antipasto":
                allowed = "a pair set by hand, or a basis of one without control in antipasto's space"
                self.fail(keys, f"{basis!r}, allowed: {allowed}")
        modes = self.config.pool.modes
        if probe.mode not in modes:
            self.fail(["probe", "mode"], f"{probe.mode!r} is not in pool.modes; {nearest(probe.mode, modes)}")
        if modes.index(probe.mode) >= self.config.pool.problems:
            self.fail(
                ["pool", "problems"], f"{self.config.pool.problems}, none has probe.mode {probe.mode!r}"
            )

    def _pools(self) -> None:
        models = self.config.models
        for name, pool in self.config.probe.pools.items():
            keys: list[str | int] = ["probe", "pools", name]
            if name in models:
                self.fail(keys, f"{name!r} is a replication's own pool, allowed: another name")
            if pool.model not in models:
                problem = f"{ascii_repr(pool.model)} is no replication; {nearest(pool.model, models)}"
                self.fail([*keys, "model"], problem)
            if not any(Path(pool.folder).glob("[!.]*.jsonl*")):
                allowed = "allowed: a folder of JSON-lines files of rollouts"
                self.fail([*keys, "folder"], f"{ascii_repr(pool.folder)} has none, {allowed}")

    def _critic(self) -> None:
        critic = self.config.self_taught
        if critic.grid == ALIKE:
            self.fail(
                ["self_taught", "grid"], f"{ALIKE!r} is the name of other critics, allowed: another size"
            )
        if critic.grid is not None:
            others = [size for size in self.config.small.sizes if size != self.config.model.size]
            if critic.grid not in others:
                problem = f"{ascii_repr(critic.grid)} is no other size than model.size; {nearest(critic.grid, others)}"
                self.fail(["self_taught", "grid"], problem)
        if critic.critic != "local":
            return
        if critic.model:
            allowed = "null for the base, a Hugging Face checkpoint folder or a hub id (owner/name)"
            self._folder(["self_taught", "model"], critic.model, allowed, CHECKPOINT)
        if critic.adapter:
            allowed = "null for none, a PEFT folder or a hub id (owner/name)"
            self._folder(["self_taught", "adapter"], critic.adapter, allowed, PEFT)
