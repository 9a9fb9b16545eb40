"""Config, questions and pair sets are checked before any job starts; each mistake is one line.

The line names the file, the key, the wrong value and what is allowed. First come the models (what a single value may
be), then what no model says: names exist, numbers fit together, files are there.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from itertools import product
from pathlib import Path
from types import FunctionType
from typing import Any

from projected_grpo import arms
from projected_grpo.cells.bases import Bases
from projected_grpo.cells.check_questions import QuestionsCheck
from projected_grpo.cells.config import Config
from projected_grpo.cells.questions import Heading, Question
from projected_grpo.cells.row_setting import ROW
from projected_grpo.cells.self_taught import ALIKE
from projected_grpo.cells.setting import Setting
from projected_grpo.environment import families
from projected_grpo.errors import SettingError, nearest
from projected_grpo.files import read_jsonl
from projected_grpo.model import offered
from projected_grpo.schema_errors import Fail, Keys, ascii_repr
from projected_grpo.yaml_layers import ConfigFiles, QuestionFiles

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
    files = ConfigFiles(paths, config)
    checked = files.typed(Config, command_line or {})
    for check in (_places, _arms, _model, _presets, _names):
        check(checked, files.fail)
    bases = Bases(checked, files)
    bases.check_all()
    for check in (_probe, _critic):
        check(checked, files.fail)
    for path in checked.questions:
        if not Path(path).exists():
            files.fail(["questions"], f"{path}: no such file")
    asked = QuestionFiles(checked.questions)
    questions = QuestionsCheck(checked, bases, asked).run()
    # Where primary outcomes were named for other questions, these have none.
    if files.level("primary") >= files.level("questions"):
        _primary(checked, questions, files.fail)
    return checked, asked.parsed


def _primary(config: Config, questions: Mapping[str, Question], fail: Fail) -> None:
    """Every outcome is a number of its question's table of estimates; what a slope is of, no row says."""
    for number, outcome in enumerate(config.primary.outcomes):
        if outcome.question not in questions:
            continue  # a question that was taken out takes its outcome with it: it counts, as one without a test
        if outcome.row is None:
            continue
        asked = questions[outcome.question]
        # Of rows that stand for several, `pooled` counts as the baseline.
        also = ["baseline"] if "pooled" in asked.contrasts_of(outcome.row) else []
        for key, problem, hint in asked.misnamed(outcome.row, outcome.contrast, *also):
            said = [key] if key in outcome.model_fields_set else []
            fail(["primary", "outcomes", number, *said], f"{problem} in {outcome.question}; {hint}")


def _places(config: Config, fail: Fail) -> None:
    folder, here = Path(config.results), Path.cwd().resolve()
    place = (here / folder).resolve()
    top = place.relative_to(here).parts[:1] if place.is_relative_to(here) else ()
    wrong = {
        "a path without ~ and ..": config.results[0] == "~" or ".." in folder.parts,
        "a folder of its own": place == here or place in here.parents,
        "none of the folders that the project itself is in": top and (top[0] in OWN or top[0][0] == "."),
        "a folder; this is a file": any(part.is_file() for part in (place, *place.parents)),
    }
    for allowed in (allowed for allowed, is_so in wrong.items() if is_so):
        fail(["results"], f"{config.results!r}, allowed: {allowed}")
    for key in ("pairs", "arms"):
        for missing in (path for path in getattr(config, key) if not Path(path).is_dir()):
            fail([key], f"{missing}: no such folder")


def _arms(config: Config, fail: Fail) -> None:
    """Every arm that the config adds loads and is named by nothing else."""
    arms.look_in([])
    taken = arms.files()
    for path in (path for folder in config.arms for path in sorted(Path(folder).glob("*.py"))):
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", path.stem):
            fail(["arms"], f"{path}: as an arm's name, allowed: small letters, digits and _")
        if other := taken.get(path.stem):
            fail(["arms"], f"{path}: {other} is an arm of this name, allowed: another one")
        taken[path.stem] = path
    arms.look_in(config.arms)
    for name, path in taken.items():
        arm = arms.load(name)
        for key in arm.Knobs.model_fields:
            if key in (*ROW, *Heading.model_fields):
                fail(["arms"], f"{path}: a knob {key!r}, which every row has, allowed: another name")
        if problem := _misspelt(arm):
            fail(["arms"], f"{path}: {problem}")


def _misspelt(arm: type[arms.Arm]) -> str | None:
    """Return what is wrong with a method that looks like a hook and is none, or takes something else; else None."""
    hooks = {
        name: of for name, of in vars(arms.Arm).items() if name[0] != "_" and isinstance(of, FunctionType)
    }
    for name, method in vars(arm).items():
        if name.startswith("_") or not isinstance(method, FunctionType):
            continue
        if name not in hooks:
            if close := get_close_matches(name, hooks, n=1, cutoff=0.8):
                return (
                    f"{arm.__name__}.{name} is no hook and is never called as one; did you mean '{close[0]}'?"
                )
            continue
        try:
            signature(method).bind(*signature(hooks[name]).parameters)
        except TypeError:
            return f"{arm.__name__}.{name}{signature(method)}, allowed: {name}{signature(hooks[name])}"
    return None


def _model(config: Config, fail: Fail) -> None:
    model = config.model
    teacher: Keys = ["model", "teacher"]
    if not config.is_small:
        if isinstance(model.base, str):
            _given(["model", "base"], model.base, offered.BASE, "small", fail)
        if model.teacher != "small":
            _given(teacher, model.teacher, offered.ADAPTER, "small", fail)
            if config.is_replicated:
                fail(teacher, f"{model.teacher!r}, allowed where each seed has its own warm start: small")
        elif model.warm is None:
            allowed = "a PEFT folder or hub id, or a warm start (model.warm)"
            fail(teacher, f"'small', allowed with a given base: {allowed}")
    elif model.teacher != "small":
        fail(teacher, f"{model.teacher!r}, allowed with the base 'small': small")
    elif model.warm is not None:
        fail(["model", "warm"], "a warm start, allowed with the base 'small': null")
    if model.teacher == "small":  # what is trained here has a recipe, and learns every loophole of the pool
        if model.size not in config.small.sizes:
            fail(["model", "size"], f"{model.size!r}; {nearest(model.size, config.small.sizes)}")
        taught = families.load(config.small.family).TAUGHT
        for number, mode in enumerate(config.pool.modes):
            if mode not in taught:
                allowed = f"the teacher's corpus teaches {', '.join(taught)} alone"
                fail(["pool", "modes", number], f"{mode!r}; {allowed}")
    if model.problems == "generated":
        return
    if not Path(model.problems).is_file():
        allowed = "allowed: generated, or a JSONL(.gz) file of rows (docs/scale.md)"
        fail(["model", "problems"], f"{ascii_repr(model.problems)} is no file, {allowed}")
    if (asked := config.pool.problems) > (rows := sum(1 for _ in read_jsonl(model.problems))):
        fail(["pool", "problems"], f"{asked}, allowed: 1 to {rows}, the rows of {model.problems}")


def _given(keys: Keys, name: str, kind: offered.Kind, other: str, fail: Fail) -> None:
    """Check the name of a given model; other: what stands for none."""
    if problem := offered.problem(name, kind):
        fail(keys, f"{ascii_repr(name)} {problem}, allowed: {other}, {kind.words}")


def _presets(config: Config, fail: Fail) -> None:
    for name, preset in config.grpo.presets.items():
        for mix, group in preset.group.items() if isinstance(preset.group, dict) else ():
            if float(mix) and not round(group * float(mix)):
                allowed = f"allowed: enough rows that {mix} of them is at least one"
                fail(["grpo", "presets", name, "group", mix], f"{group}, {allowed}")
    for plain in VANILLA_MIXES if config.is_small and config.runs == "make" else ():
        try:
            config.grpo.training(Setting().preset, plain, "antipasto")
        except SettingError as error:
            own = "the small model's own runs have mix 0 and 0.125"
            fail(["grpo", "presets"], f"{error.problem} ({own})")


def _names(config: Config, fail: Fail) -> None:
    """Names that stand side by side in ids and folders differ, and so does what they make together."""
    small, presets = config.small, config.grpo.presets
    named: dict[str, Iterable[str]]
    named = {"small.sizes": small.sizes, "small.variants": small.variants, "grpo.presets": presets}
    places: dict[str, str] = {}
    for place, name in ((place, name) for place, names in named.items() for name in names):
        if (other := places.setdefault(name, place)) != place:
            fail([*place.split("."), name], f"a name under {other}, too, allowed: another one")
    models: dict[str, tuple[str | None, str | None]] = {}
    sizes = [None, *(size for size in small.sizes if size != config.model.size)]
    for own in product(sizes, [None, *small.variants]) if config.is_small else ():
        model = config.model_name(config.seeds[0], *own)
        if (others := models.setdefault(model, own)) != own:
            keys = ["variants", own[1]] if own[1] else ["sizes", own[0]]
            same = f"size and variant {own} would be the model {model}, as {others} are"
            fail(["small", *keys], f"{same}, allowed: another name")


def _probe(config: Config, fail: Fail) -> None:
    pool, mode, models = config.pool, config.probe.mode, config.models
    if mode not in pool.modes:
        fail(["probe", "mode"], f"{mode!r} is not in pool.modes; {nearest(mode, pool.modes)}")
    if pool.modes.index(mode) >= pool.problems:
        fail(["pool", "problems"], f"{pool.problems}, none has probe.mode {mode!r}")
    for name, given in config.probe.pools.items():
        keys: Keys = ["probe", "pools", name]
        if name in models:
            fail(keys, f"{name!r} is a replication's own pool, allowed: another name")
        if given.model not in models:
            no_model = f"{ascii_repr(given.model)} is no replication"
            fail([*keys, "model"], f"{no_model}; {nearest(given.model, models)}")
        if not any(Path(given.folder).glob("[!.]*.jsonl*")):
            allowed = "allowed: a folder of JSON-lines files of rollouts"
            fail([*keys, "folder"], f"{ascii_repr(given.folder)} has none, {allowed}")


def _critic(config: Config, fail: Fail) -> None:
    critic = config.self_taught
    others = [size for size in config.small.sizes if size != config.model.size]
    if (grid := critic.grid) == ALIKE:
        fail(["self_taught", "grid"], f"{ALIKE!r} is the name of other critics, allowed: another size")
    if grid is not None and grid not in others:
        no_size = f"{ascii_repr(grid)} is no other size than model.size"
        fail(["self_taught", "grid"], f"{no_size}; {nearest(grid, others)}")
    if critic.critic == "local" and critic.model:
        _given(["self_taught", "model"], critic.model, offered.CHECKPOINT, "null for the base", fail)
    if critic.critic == "local" and critic.adapter:
        _given(["self_taught", "adapter"], critic.adapter, offered.ADAPTER, "null for none", fail)
