"""The sizes of the panels that every run is judged on; apart from the config, so that its other keys touch no run."""

from typing import Annotated

from pydantic import Field

from projected_grpo.cells.typed import Model, Problems


class Deployed(Model):
    """What every run is judged on after training: problems it never saw, in three panels, with plain prompts."""

    known: Problems = Field(description="Problems with the row's own loopholes, in rotation.")
    novel: Problems = Field(description="Problems with the same loopholes under names that nothing teaches.")
    plain: Problems = Field(description="Problems without a loophole.")
    samples: Annotated[int, Field(ge=1, le=1_024)] = Field(description="Rollouts per problem.")
