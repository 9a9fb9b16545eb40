"""Arms: what is done against hacking. One defence a file, `arms/NAME.py`, with a class of that name in CamelCase.

An arm is a set of hooks; the default of each does nothing, so `vanilla` overrides none. The step (`training/step.py`)
calls them in the order in which they stand here and knows no arm by name. An arm sees rewards and a monitor's flags,
never the facts of a verdict; what else it needs it says in `needs`, and the rule turns that into files.

Rows are checked without torch, which takes seconds to import: files of arms import it inside hooks.
"""

import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict

from projected_grpo.errors import UserError, nearest

if TYPE_CHECKING:
    from torch import Tensor

    from projected_grpo.method.adapter import Parameters
    from projected_grpo.method.basis import Basis
    from projected_grpo.method.concept import Concept
    from projected_grpo.method.gradients import Gradient
    from projected_grpo.method.optimizer import AdamW
    from projected_grpo.method.policy import Policy
    from projected_grpo.model.decoder import Residual
    from projected_grpo.model.sampler import Rollout

if TYPE_CHECKING:
    Messages = Sequence[dict[str, str]]  # of a chat: role, content
else:
    Messages = tuple[dict[str, str], ...]
# What an arm acts on, for tables and figures: `less` is the frontier that the others have to beat.
Family = Literal["none", "less", "loss", "reward", "prompt", "activations", "gradient", "quarantine"]
# What whoever uses an arm must give it, the least first.
MustGive = Literal[
    "nothing", "a sentence", "pairs", "critic", "rightly graded clean run", "monitor", "oracle"
]


class ArmKnobs(BaseModel):
    """What a row can say to its arm beyond the settings of every run; a field's `Tag` is its part of the cell's id."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Tag:
    """How a setting that differs from its default stands in a cell's id; `{}` is its value."""

    text: str = "{}"

    def of(self, value: Any) -> str:
        if isinstance(value, tuple):
            value = "+".join(value)
        return self.text.format(f"{value:g}" if isinstance(value, float) else value)


@dataclass(frozen=True)
class Needs:
    """What a run with this arm reads beside base, problems and pool; names, which the rule turns into files."""

    basis: str | None = None  # a basis file
    pairs: str | None = None  # the pair set of this basis is read by the run itself
    direction: str | None = None  # the mean difference of this basis's pairs in the residual stream
    fitted: bool = False  # thresholds along it are fitted on the pairs: they count even where it is random
    critic: bool = False  # the replication's self-taught critic, which judges its rows
    clean_run: bool = False  # axes of the updates of a run that cannot hack, as its basis


@dataclass(frozen=True)
class Given:
    """What a run hands its arm; of a basis what is used of it, and how to extract it anew at a policy's weights."""

    seed: int
    policy: "Policy"
    optimizer: "Callable[[Parameters], AdamW]"  # a fresh one with the run's betas and weight decay
    basis: "Basis | None" = None
    concept: "Concept | None" = None
    extract: "Callable[[Policy, int], Basis] | None" = None  # at which step: a random one is drawn anew by it


@dataclass(frozen=True)
class Seen:
    """What an arm may know of a group's rows, the live ones first, then the teacher's: never a fact."""

    rollouts: "Sequence[Rollout]"
    live: "Tensor | None" = None  # [G] bool: sampled in this step, not the teacher's
    flags: "Tensor | None" = None  # [G] bool, of its monitor
    scores: "Tensor | None" = None  # [G] float64, along the concept that it reads


class Arm:
    """A defence; subclasses override what they change. Parameters are `[size]` per module, as in `method.adapter`."""

    Knobs: ClassVar[type[ArmKnobs]] = ArmKnobs

    family: ClassVar[Family]  # every arm says its own: a default would count it as plain training
    reward: ClassVar[str] = "foolable"  # of `environment/reward.py`: what a live row's verdict earns
    n_labels: ClassVar[int] = 1  # kinds of rows whose share of the gradient it wants by itself
    replaces: ClassVar[tuple[str, ...]] = ()  # settings of a row that its knobs take the place of

    def __init__(self, knobs: Any, given: Given):
        self.knobs, self.given = knobs, given

    @classmethod
    def needs(cls, knobs: Any) -> Needs:
        """Return the inputs of a run with these knobs."""
        return Needs()

    @classmethod
    def must_give(cls, knobs: Any) -> MustGive:
        """Return the most that a run with these knobs has to be given by hand."""
        needs = cls.needs(knobs)
        if cls.reward == "oracle":
            return "oracle"
        if needs.clean_run:
            return "rightly graded clean run"
        return "pairs" if needs.basis or needs.direction else "nothing"

    @classmethod
    def training(cls, knobs: Any, training: Any) -> Any:
        """Return the hyper-parameters of a run with these knobs, from those of vanilla.

        Raises SettingError where the knobs do not go with them.
        """
        return training

    # --- in the order of the step ---

    def sampled_theta(self, theta: "Parameters") -> "Parameters":
        """Return the adapter that rollouts are sampled and gradients taken with."""
        return theta

    def prompt(self, messages: Messages) -> Messages:
        """Return the messages that rollouts are sampled under."""
        return messages

    @property
    def teacher_reward(self) -> str:
        """Of `environment/reward.py`: what the verdict of a teacher's row earns."""
        return self.reward

    @property
    def monitor(self) -> str | None:
        """Of `environment/monitors.py`: whose flags it gets; None for none."""
        return None

    @property
    def reads(self) -> "Concept | None":
        """The concept along which its rows are scored, at the weights that sampled them; None for none."""
        return None

    def rewards(self, rewards: "Tensor", seen: Seen) -> "Tensor":
        """Return what the rows of a group earn, `[G]`."""
        return rewards

    def keep(self, rewards: "Tensor", seen: Seen) -> "Tensor | None":
        """Return which rows stay in their group, `[G]` bool; None for all."""
        return None

    def advantages(self, A: "Tensor", seen: Seen) -> "Tensor":
        """Return the advantages of a group's rows, `[G]`."""
        return A

    def labels(self, seen: Seen) -> "Tensor | None":
        """Return which kind each row is, `[G]` in 0 ... n_labels - 1; None where there is one kind."""
        return None

    def train_prompt(self, messages: Messages) -> Messages:
        """Return the messages that the gradient is taken under."""
        return messages

    @property
    def residual(self) -> "Residual | None":
        """What is done to the residual stream in the forward that the gradient is taken through; None for nothing."""
        return None

    def renew(self, step: int) -> dict[str, float | None]:
        """Bring what the arm holds up to date before the update of `step`; return columns of the step's row."""
        return {}

    def split_gradient(self, gradient: "Gradient") -> "tuple[Parameters, Parameters]":
        """Return (kept, parked): what goes into the optimizer, and what is taken out of it."""
        return gradient.total, {}

    def split_update(self, direction: "Parameters") -> "tuple[Parameters, Parameters]":
        """Return (applied, parked) of what the optimizer is about to apply: what the deployed adapter moves by, and

        what is taken out of it.
        """
        return direction, {}

    def moved(self, direction: "Parameters", applied: "Parameters") -> "Parameters":
        """Return what the trained adapter moves by, of the whole direction and what `split_update` left of it."""
        return applied

    def park(self, gradient: "Parameters", direction: "Parameters", lr: float) -> None:
        """Take what `split_gradient` and `split_update` took out; by default it is gone."""

    def deployed(self, theta: "Parameters") -> "Parameters":
        """Return the adapter that is deployed: what the run is judged by."""
        return theta

    # --- what it holds ---

    @property
    def axes(self) -> "dict[str, Tensor] | None":
        """V `[k, size]` per module, whose alignment with the gradient is logged; None where it has none."""
        return None

    def columns(self) -> dict[str, float | None]:
        """Return columns of the step's row about what the arm holds after the update."""
        return {}

    def stored(self) -> "dict[str, Parameters]":
        """Return what `adapter.safetensors` holds beside `delta_S`, by the suffix of its tensors."""
        return {}

    def state(self) -> dict:
        """Return what a checkpoint must hold for `load`."""
        return {}

    def load(self, state: dict) -> None:
        """Continue from a checkpoint."""


FOLDERS = "PGRPO_ARMS"  # in the environment, so that every job of a run has them, too


def look_in(folders: Sequence[str | Path]) -> None:
    """Take the arms of further folders beside those of the tree, in this process and in all that it starts."""
    os.environ[FOLDERS] = json.dumps([os.path.abspath(folder) for folder in folders])


def files() -> dict[str, Path]:
    """Return the file of every arm by its name: those of this folder, then those of `look_in`."""
    folders = [Path(__file__).parent, *map(Path, json.loads(os.environ.get(FOLDERS, "[]")))]
    found = {path.stem: path for folder in reversed(folders) for path in folder.glob("[a-z]*.py")}
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Return the names of all arms."""
    return list(files())


def load(name: str) -> type[Arm]:
    """Return the class of an arm. Raises UserError on an unknown name, or a file that holds no such arm."""
    known = files()
    if name not in known:
        raise UserError(f"unknown arm {name!r}; {nearest(name, known)}")
    path = known[name]
    if str(path.parent) not in __path__:  # from there its file loads as those of the tree do
        __path__.append(str(path.parent))
    try:
        # By name: an arm's file counts in the code hash of its own cells alone.
        module = importlib.import_module(f"{__name__}.{name}")
    except Exception as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: this arm cannot be loaded ({type(error).__name__}: {problem})") from error
    wanted = re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), name)
    arm = getattr(module, wanted, None)
    if not (isinstance(arm, type) and issubclass(arm, Arm)):
        raise UserError(f"{path}: no class {wanted}, a subclass of Arm, in this arm's file")
    if getattr(arm, "family", None) not in get_args(Family):
        raise UserError(f"{path}: {wanted}.family is missing, allowed: {', '.join(get_args(Family))}")
    return arm
