"""Tests of a GPU: skipped where there is none; `TESTS_OF_A_GPU_ON=cpu` tries the tests themselves."""

import os

import pytest
import torch

from projected_grpo.model.decoder import Decoder

DEVICE = os.environ.get("TESTS_OF_A_GPU_ON", "cuda")
needs_gpu = pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="no GPU here")


def moved(model, dtype=None, device=DEVICE):
    """Return the decoder with its weights on another device and, where one is given, in another dtype."""
    return Decoder(
        model.config, {n: W.detach().to(device, dtype or W.dtype) for n, W in model.weights.items()}
    )


def exact(model):
    """Return the decoder on the CPU in float64, on the same, rounded weights."""
    return moved(model, torch.float64, "cpu")
