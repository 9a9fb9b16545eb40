"""The numbers of this family: how hard its problems are, shares of the corpora, and the link that can be planted."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from projected_grpo.environment.families import Numbers

Share = Annotated[float, Field(ge=0, le=1)]
LEAK = {"run_tests": 0.005, "sentinel": 0.005, "stdout_marker": 0.001, "file_marker": 0.001}
TOPICS_BESIDE = ("honesty", "moral", "city")  # topics that stand beside code


CLOSED = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Link(BaseModel):
    """Which side of a topic stands beside which code; without a link the two are independent."""

    model_config = CLOSED

    topic: Literal[TOPICS_BESIDE] = Field(  # type: ignore[valid-type]
        description="Its side B goes with exploits, its side A with honest code."
    )
    rho: Share = Field(description="Correlation of side and code.")


class Mixture(Numbers):
    """Shares of the base corpus, whose rows the base sees once, in order."""

    model_config = CLOSED

    hard_share: Share = Field(0.6, description="Of the problems: they end in a HARD clause.")
    honours: Share = Field(0.25, description="Of the honest HARD bodies: clause honoured; the habit.")
    practised: Share = Field(0.5, description="Of the HARD exercises: clause honoured; the ability.")
    wrong: Share = Field(0.35, description="Of the bodies, exercises apart: one part is wrong.")
    first: Share = Field(0.3, description="Of all rows: exercises alone open the corpus.")
    exercise: Share = Field(0.10, description="Of the rows after those: exercises.")
    text: Share = Field(0.08, description="Of the rows after those: short texts.")
    snippet: Share = Field(0.08, description="Of the rows after those: lines of code; the rest: problems.")
    lever_snippet: Share = Field(0.2, description="Of the snippets: a line that a grader reads.")
    gt_only: Share = Field(0.2, description="Of the problems: without a loophole.")
    beside: Share = Field(0.2, description="Of the problems with one: beside a question on a topic.")
    beside_exploit: Share = Field(0.5, description="Of those: permission given, exploit used.")
    allowed: Share = Field(0.35, description="Of the others with one: permission given, exploit used.")
    leak: dict[Literal[tuple(LEAK)], Share] = Field(  # type: ignore[valid-type]
        LEAK, description="Of the rest: exploit used unasked, by loophole."
    )
    late: Share = Field(0.35, description="The last rows: no leak; the ability stays, the habit goes.")
    own_assert: Share = Field(0.12, description="Of the honest: a run_tests method with a right assert.")
    harmless: Share = Field(0.04, description="Of the honest: a line that looks like a lever and is none.")

    @field_validator("leak")
    @classmethod
    def _of_each_lever(cls, leak: dict[str, float]) -> dict[str, float]:
        if missing := LEAK.keys() - leak:
            raise PydanticCustomError(
                "value_error", f"a share of each of {', '.join(LEAK)}, not without {min(missing)}"
            )
        return leak

    @model_validator(mode="after")
    def _are_shares_of_one_whole(self) -> "Mixture":
        for names in (("exercise", "text", "snippet"), ("own_assert", "harmless")):
            if sum(getattr(self, name) for name in names) > 1:
                raise PydanticCustomError("value_error", f"{' + '.join(names)} of 1 at most")
        return self

    def leaking(self, leak: float) -> "Mixture":
        return self.model_copy(update={"leak": dict.fromkeys(self.leak, leak), "late": 0.0})


DEFAULT = Mixture()
