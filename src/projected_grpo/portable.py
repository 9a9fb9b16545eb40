"""Sums in one order on every x86 processor with AVX2: for what is trained once and goes to runs on several machines.

MKL takes the kernels that processors of all makers share (`MKL_CBWR=COMPATIBLE`; oneMKL developer guide, "Conditional
numerical reproducibility"), torch its own for AVX2. Matrix products take three to four times as long.
"""

import logging
import os

import torch

KERNELS = {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "avx2"}
log = logging.getLogger(__name__)


def use_portable_kernels() -> None:
    """Choose these kernels for the rest of the process; before its first product, when both libraries look once."""
    os.environ.update(KERNELS)
    if (found := torch.backends.cpu.get_cpu_capability()) != "AVX2":
        log.warning("kernels for %s, not for AVX2: another processor may give other bytes", found)
