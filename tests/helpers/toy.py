"""The wrapper on a toy Snakefile: rules that write a line, and one that sleeps."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from workspace import borrow_environment

HERE = Path(__file__).resolve().parents[2]


def copy(root, *names):
    for name in ("snakemake", "envs/environment.py", *names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / name, root / name)


def toy(root, python=sys.executable):
    """Make a copy of the wrapper whose environment borrows this one's packages; its Snakefile is a toy."""
    copy(root, "envs/lock-cpu.txt", "envs/bin/which", "Makefile")
    borrow_environment(root, python)
    (root / "src").symlink_to(HERE / "src")
    (root / "Snakefile").write_text(
        """
rule table:
    output: "results/{q}.md"
    resources: gpu=1
    params: words=config.get("words", "none")
    script: "write.py"
rule brief:
    output: "results/{name}.brief"
    shell: "sleep 1; touch {output}"
rule slow:
    output: "results/{name}.slow"
    script: "slow.py"
"""
    )
    (root / "write.py").write_text(
        'from pathlib import Path\nPath(snakemake.output[0]).write_text(snakemake.params["words"])\n'
    )
    (root / "slow.py").write_text(
        """
import os, signal, sys, time
from pathlib import Path
def stop(number, frame):
    time.sleep(0.5)  # a checkpoint takes a moment
    Path("checkpoint").write_text("saved")
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
Path("pid").write_text(str(os.getpid()))
time.sleep(60)
Path(snakemake.output[0]).write_text("slept")
"""
    )
    return root


def call(root, *arguments, cwd=None, **environ):
    return subprocess.run(
        [root / "snakemake", *arguments],
        cwd=cwd or root,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )


def start_slow(root, name="a", program=("./snakemake",), **how):
    """Start a run whose job sleeps, in a process group of its own, and wait until the job lives."""
    (root / "pid").unlink(missing_ok=True)
    words = [*program, "--cores", "2", f"results/{name}.slow"]
    process = subprocess.Popen(
        words, cwd=root, start_new_session=True, **{"stderr": subprocess.DEVNULL} | how
    )
    deadline = time.monotonic() + 60
    while not (root / "pid").is_file() or not (root / "pid").read_text():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    return process, int((root / "pid").read_text())


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
