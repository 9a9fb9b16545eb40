"""The method and the grader in TRL: `reward`, `rows` and `project` (docs/trl.md)."""

from projected_grpo.integrations.projection import Projection, project
from projected_grpo.integrations.reward import LeverReward, reward, rows

__all__ = ["LeverReward", "Projection", "project", "reward", "rows"]
