"""TRL's own environment, made once in build/trl from benchmarks/trl-requirements.txt; torch comes first."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "benchmarks" / "trl-requirements.txt"
FOLDER = ROOT / "build" / "trl"
PYTHON = FOLDER / "bin" / "python"
STAMP = FOLDER / "made-from"


def ready() -> bool:
    return STAMP.is_file() and STAMP.read_text() == REQUIREMENTS.read_text()


def make() -> Path:
    """Makes the environment where it is missing or stale; returns its Python. Raises RuntimeError with pip's words."""
    if ready():
        return PYTHON
    sys.path.insert(0, str(ROOT / "envs"))
    from environment import PYTORCH

    pins = [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    if not PYTHON.is_file():
        subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
    # the main environment's build of torch, e.g. 2.13.0+cpu, so that both sides run the same kernels
    import torch

    wanted = f"torch=={torch.__version__}"
    if pins[0] != wanted.split("+")[0]:
        raise RuntimeError(f"{REQUIREMENTS.name} pins {pins[0]}, the main environment has {wanted}")
    if pip(wanted) and pip(wanted, "--extra-index-url", PYTORCH):
        raise RuntimeError(f"{wanted} could not be installed into {FOLDER}")
    if error := pip(*pins[1:], wanted):
        raise RuntimeError(f"TRL could not be installed: {error}")
    STAMP.write_text(REQUIREMENTS.read_text())
    return PYTHON


def pip(*arguments: str) -> str:
    """Last line of what pip says against it, or "" when it succeeded."""
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr.strip().split("\n")[-1] or "pip failed" if done.returncode else ""
