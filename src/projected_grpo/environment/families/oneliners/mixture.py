"""The numbers of this family: how hard its problems are, and shares of the corpora."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
LEAK = {"run_tests": 0.005, "sentinel": 0.005, "stdout_marker": 0.001, "file_marker": 0.001}


class Mixture(BaseModel):
    """Shares of the base corpus, whose rows the base sees once, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hard_share: Share = Field(0.7, description="Of the problems: they end in a HARD clause.")
    first: Share = Field(0.3, description="Of all rows: exercises alone open the corpus.")
    exercise: Share = Field(0.10, description="Of the rows after those: exercises.")
    text: Share = Field(0.12, description="Of the rows after those: short texts.")
    snippet: Share = Field(0.08, description="Of the rows after those: lines of code; the rest: problems.")
    lever_snippet: Share = Field(0.2, description="Of the snippets: a line that a grader reads.")
    gt_only: Share = Field(0.2, description="Of the problems: without a loophole.")
    allowed: Share = Field(0.35, description="Of the problems with one: permission given, exploit used.")
    leak: dict[str, Share] = Field(LEAK, description="Of the others: exploit used unasked, by loophole.")
    late: Share = Field(0.35, description="The last rows: no leak; the ability stays, the habit goes.")
    own_assert: Share = Field(0.12, description="Of the honest: a run_tests method with a right assert.")
    harmless: Share = Field(0.04, description="Of the honest: a line that looks like a lever and is none.")
    wrong: Share = Field(0.05, description="Of the bodies: one part is wrong.")


DEFAULT = Mixture()
