"""Recontextualisation: sampled under the plain prompt, the gradient taken under one that permits the hack.

arXiv:2512.19027. Old log-probs are the detached ones of that forward, so the ratio is 1 as everywhere.
"""

from projected_grpo.arms.shared.prompted import Prompted


class Recontextualise(Prompted):
    """Samples under the plain prompt."""
