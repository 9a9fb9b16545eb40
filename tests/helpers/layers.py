"""The sandbox layers that this machine can give, each to be tested by its name."""

import contextlib
import functools

import pytest

from projected_grpo.sandbox.levels import STRONG, WEAK, probe
from projected_grpo.sandbox.worker import Zygote

each_layer = pytest.mark.parametrize("level", STRONG)
each_layer_and_weak = pytest.mark.parametrize("level", [*STRONG, WEAK])


@functools.cache
def _missing(level):
    try:
        zygote = Zygote(level)
    except OSError as error:
        return str(error)
    with contextlib.closing(zygote):
        return probe(zygote, level)


def need(level):
    """Skip, with the reason, where this machine cannot give the layer."""
    reason = _missing(level)
    if reason is not None:
        pytest.skip(f"{level}: {reason}")
