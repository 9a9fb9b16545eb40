"""The method and the grader in TRL: `reward`, `project`, and problems as rows of a data set (docs/trl.md)."""

from projected_grpo.integrations.asked import generated, rows
from projected_grpo.integrations.projection import Projection, project
from projected_grpo.integrations.reward import LeverReward, reward
from projected_grpo.method.basis import Knobs

__all__ = ["Knobs", "LeverReward", "Projection", "generated", "project", "reward", "rows"]
