"""Inoculation prompting: training prompts permit the hack, for sampling and gradient; deployment does not.

Tan et al. (arXiv:2510.04340), Wichers et al. (arXiv:2510.05024), in RL: arXiv:2511.18397.
"""

from projected_grpo.arms import Messages
from projected_grpo.arms.shared.prompted import Prompted


class Inoculate(Prompted):
    """Samples under the sentence as well."""

    def prompt(self, messages: Messages) -> Messages:
        return self.train_prompt(messages)
