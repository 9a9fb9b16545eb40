"""What is trained once has the same bytes on every processor, as far as one processor can play another."""

import os
import subprocess
import sys

import pytest
import torch

STEP = """
import hashlib, sys
from projected_grpo.portable import use_portable_kernels
if "portable" in sys.argv:
    use_portable_kernels()
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
layer = torch.nn.Sequential(torch.nn.Linear(576, 640), torch.nn.SiLU(), torch.nn.Linear(640, 300))
adam = torch.optim.AdamW(layer.parameters(), fused=True)
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(layer(torch.randn(200, 576)), torch.arange(200))
    loss.backward()
    adam.step()
    adam.zero_grad()
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in layer.parameters())).hexdigest())
"""
# Another processor, played by this one: MKL and torch without their widest kernels.
OLDER = {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}


def trained(*words, **environ):
    done = subprocess.run(
        [sys.executable, "-c", STEP, *words], env={**os.environ, **environ}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() != "AVX512", reason="a processor without AVX-512")
def test_another_processor_trains_to_the_same_bytes():
    assert trained() != trained(**OLDER)  # which is why
    assert trained("portable") == trained("portable", **OLDER)
