"""What this machine has, asked without torch, which takes seconds to import."""

import os
from glob import glob


def has_gpu() -> bool:
    """Return whether this machine shows a GPU to its processes."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
    return not hidden and any(glob(pattern) for pattern in ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/kfd"))
