"""How a basis is extracted and used."""

from typing import Any, Literal

from pydantic import Field

from projected_grpo.cells.run_settings import Direction, Use
from projected_grpo.cells.typed import Adapter, Axes, Model, Part, Share, Text, partial
from projected_grpo.errors import SettingError

# Pair sets that the self-taught evaluator writes: they have no file to check beforehand.
GENERATED_PAIRS = ("self_taught", "self_taught_code")

Control = Literal["none", "random", "clean_vs_clean", "within_class", "shuffled"]


class Knobs(Model):
    """Knobs of every basis; a name under bases overrides them."""

    n_pairs: Axes = Field(description="The first n pairs of the set.")
    n_heldout: int = Field(ge=0, le=10_000, description="The last n of those are not used.")
    top_k: Axes = Field(description="Axes stored.")
    k: Axes = Field(description="Axes used.")
    tau: Share = Field(description="Axes with S_i / S_0 below it are not stored.")
    drop_bottom_frac: Part = Field(description="Share of all stored axes dropped, smallest S_i first.")
    method: Literal["svd", "mean_diff"] = Field(description="mean_diff has one axis.")
    solve_orth_m: int = Field(
        ge=0, le=10_000, description="Right singular directions of the clean gradients stripped first."
    )
    loss: Literal["nll", "grpo"] = Field(description="grpo: +1 on the hack, -1 on the clean completion.")
    control: Control = Field(description="A subspace without the contrast, for comparison.")
    adapter: Adapter = Field(description="The space that gradients are taken in.")


class OwnPairs(Model):
    """The pair set of a basis."""

    pairs: Text = Field(None, description="Name of the pair set; default: the basis's own.")  # type: ignore[assignment]
    without_tag: Text | None = Field(None, description="Pairs with this tag are left out.")
    with_tag: Text | None = Field(None, description="Pairs without this tag are left out.")


class BasisKnobs(OwnPairs, Knobs):
    """All knobs of one basis, its pair set among them."""

    @property
    def use(self) -> Use:
        """How a run uses the basis if its row says nothing."""
        return Use(k=self.k, drop_bottom_frac=self.drop_bottom_frac)

    @property
    def axes(self) -> int:
        """The number of axes that the basis stores at most."""
        return 1 if self.method == "mean_diff" else self.top_k

    @property
    def is_generated(self) -> bool:
        """Whether the pipeline writes the pair set."""
        return self.pairs in GENERATED_PAIRS

    @property
    def direction(self) -> Direction:
        """What a direction takes from the basis of these knobs. Raises SettingError on a control of axes alone."""
        if self.control not in ("none", "random"):
            raise SettingError("direction", f"a basis with control {self.control}, allowed: none, random")
        return Direction.model_validate({name: getattr(self, name) for name in Direction.model_fields})

    def extraction(self) -> dict[str, Any]:
        """Return what decides a basis file's content, as JSON has it."""
        return self.model_dump(exclude=set(Use.model_fields))


class NamedBasis(partial(Knobs, "NamedKnobs"), OwnPairs):  # type: ignore[misc]
    """A basis by name: what it leaves out is as under `basis`."""
