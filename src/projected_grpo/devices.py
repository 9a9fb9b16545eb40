"""One GPU for each job on a machine with several: `claim()` before the first CUDA call of a process.

Snakemake runs as many GPU jobs at once as `--resources gpu=N` says, but hands out no devices. Here each job takes
the lock of a GPU that no other holds and narrows `CUDA_VISIBLE_DEVICES` to it. A lock is a flock on a file named
after the GPU's UUID in a folder of this machine, so it also keeps apart runs of several clones, frees itself when
the process dies in whatever way, and never confuses the GPUs that a cluster numbers 0 for each of its jobs.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from projected_grpo.errors import UserError

_held: list[
    tuple[str, int]
] = []  # (GPU, open file) of this process; the file is closed, and so freed, at its end


def gpus() -> list[str]:
    """Return the UUIDs of the GPUs that this process may use: nvidia-smi's, as CUDA_VISIBLE_DEVICES selects.

    Raises UserError where there is none, or where the variable names one that is not there.
    """
    if not shutil.which("nvidia-smi"):
        raise UserError("device: cuda: no GPU here (nvidia-smi is not on PATH); allowed: cpu")
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True)
    here = done.stdout.split()
    if done.returncode or not here:
        raise UserError(
            f"device: cuda: no GPU here (nvidia-smi: {(done.stderr or done.stdout).strip()}); allowed: cpu"
        )
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return here
    found = []
    for name in filter(None, (part.strip() for part in chosen.split(","))):
        if name.isdigit() and int(name) < len(here):
            found.append(here[int(name)])
        elif name.startswith(("GPU-", "MIG-")):
            found.append(name)
        else:
            raise UserError(
                f"CUDA_VISIBLE_DEVICES={chosen}: no GPU {name} here; allowed: 0 to {len(here) - 1}"
            )
    if not found:
        raise UserError("device: cuda: CUDA_VISIBLE_DEVICES is empty; allowed: cpu")
    return found


def claim(poll: float = 0.5) -> str:
    """Take a free GPU for the rest of this process and return its UUID; wait while all are taken.

    A second call returns the same GPU. Sets CUDA_VISIBLE_DEVICES, which CUDA reads at its first use.
    """
    if _held:
        return _held[0][0]
    folder = Path(tempfile.gettempdir()) / f"projected-grpo-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    candidates = gpus()
    while True:
        for name in candidates:
            file = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                continue
            _held.append((name, file))
            os.environ["CUDA_VISIBLE_DEVICES"] = name
            return name
        time.sleep(poll)
