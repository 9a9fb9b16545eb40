"""Write both locks anew from the versions in this environment: `make lock`, after installing an upgrade in
`.venv`.

The versions are those of `.venv` (`pip freeze`), whose Python packages one lock pins for both kinds of
machine. uv adds what the public CUDA build of torch needs, and the hashes of every file of each version
on the public index. Then the wrapper's next start makes `.venv` anew, and the pins in `envs/*.yaml` must
follow (a test compares them).
"""

import shutil
import subprocess
import sys
import tempfile

from environment import PYTHON, ROOT

INDEX = "https://pypi.org/simple"
HEAD = """# Everything the pipeline, its tests and its tools run on, for Python >= 3.11 on Linux{what}. \
Made by `make lock`.
# The hashes are those of every file of that version on the public index.
"""
CPU_TORCH = """# torch's CPU build carries a local version and lies on an index of its own, so it stands \
here without a hash.
torch=={version}+cpu
"""


def compile_lock(pins: list[str], *options: str) -> str:
    """Return uv's resolution of `pins` with hashes."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(pins) + "\n")
        file.flush()
        command = ["uv", "pip", "compile", file.name, "--quiet", "--no-config", "--index-url", INDEX]
        command += ["--generate-hashes", "--python-version", "3.11", "--no-header", "--no-annotate", *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    if not shutil.which("uv"):
        sys.exit("make lock: uv is not on PATH (pip install uv)")
    freeze = [PYTHON, "-m", "pip", "freeze", "--all", "--exclude-editable"]
    frozen = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout.split()
    versions = dict(line.split("==") for line in frozen)
    torch = versions.pop("torch").split("+")[0]
    # pip comes with Python; what is CUDA's alone is resolved anew from torch.
    own = [
        f"{n}=={v}"
        for n, v in versions.items()
        if n not in ("pip", "triton") and not n.startswith(("nvidia-", "cuda-"))
    ]
    cpu = CPU_TORCH.format(version=torch) + compile_lock(own, "--no-deps")
    cuda = compile_lock([f"torch=={torch}", *own], "--python-platform", "x86_64-manylinux_2_28")
    (ROOT / "envs" / "lock-cpu.txt").write_text(HEAD.format(what=" without a GPU") + cpu)
    (ROOT / "envs" / "lock-cuda.txt").write_text(HEAD.format(what=" with an NVIDIA GPU") + cuda)
