"""The off-policy ratio: its bins and bounds are the loss's, and what a clip leaves of a gradient."""

import numpy as np
import pytest
import torch

from projected_grpo.method.loss import CLIP, grpo_loss
from projected_grpo.training.columns import ratio_columns
from projected_grpo.training.ratio import CLIP_HIGH, CLIP_LOW, RATIO_EDGES


def test_bins_and_clip_bounds_are_those_of_the_loss():
    assert (CLIP_LOW, CLIP_HIGH) == (1 - CLIP, 1 + CLIP)
    assert list(RATIO_EDGES) == sorted(RATIO_EDGES)
    row = ratio_columns(torch.tensor([0.5, 1.0, 1.1, 2.0]).log(), torch.tensor([-1.0, -1.0, 1.0, -1.0]))
    assert row["ratio_mean"] == pytest.approx(1.15)
    assert (row["ratio_clip_low"], row["ratio_clip_high"], row["ratio_zeroed"]) == (0.25, 0.25, 0.25)
    assert sum(row["ratio_hist"]) == 4 and len(row["ratio_hist"]) == len(RATIO_EDGES) + 1


@pytest.mark.parametrize(
    "rho, A, moves", [(0.5, 1, True), (0.5, -1, False), (2.0, 1, False), (2.0, -1, True)]
)
def test_a_token_beyond_the_bounds_moves_only_back(rho, A, moves):
    logp = torch.tensor([0.3], requires_grad=True)
    loss = grpo_loss(logp, torch.tensor([0.3 - np.log(rho)]), torch.tensor([float(A)]), 1.0)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(-min(rho * A, min(max(rho, 0.8), 1.2) * A), rel=1e-5)
    assert (float(logp.grad) != 0) == moves
    zeroed = ratio_columns(torch.tensor([rho]).log(), torch.tensor([float(A)]))["ratio_zeroed"]
    assert (zeroed == 0) == moves
