"""Make `.venv` from its lock where it is not what that says, then run Snakemake in it: what `./snakemake` starts.

It is made anew when its lock changed, when its Python did, or when the folder moved; otherwise nothing is
installed and no network is used. Which lock: `PGRPO_ENV=cpu` or `cuda`; without it the kind that is
there already, and for a first one `cuda` where `nvidia-smi` is on PATH, else `cpu`.

Only the standard library, for any Python >= 3.11: this runs before the environment exists. What comes after is
`projected_grpo.wrapper`. Paths and targets are relative to the repository root, config files also to where the call is
typed.
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "made-from"
PYTORCH = "https://download.pytorch.org/whl/cpu"  # torch's CPU builds are on no other public index


def main(arguments: list[str]) -> int:
    """Return the exit status of the whole run."""
    typed_in = os.environ.get("PWD") or str(ROOT)  # the folder may be gone
    os.chdir(ROOT)
    (ROOT / ".snakemake").mkdir(exist_ok=True)
    with open(ROOT / ".snakemake" / "running", "a") as running:  # a run holds it shared, who builds alone
        try:
            make(running.fileno())
        except Failed as error:
            say(str(error))
            return 1
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        if Path(sys.executable) != PYTHON:
            os.execv(PYTHON, [PYTHON, __file__, *arguments])  # finds it made, and has its packages
        sys.path.insert(0, str(ROOT / "src"))
        from projected_grpo.wrapper.run import run

        return run(arguments, running.fileno(), typed_in)


def make(lock: int) -> None:
    """Make the environment if it is not what its lock says, after other calls have ended. Raises Failed."""
    kind, fresh = state()
    if fresh:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("waiting for another ./snakemake in this folder, the environment must be made anew")
        fcntl.flock(lock, fcntl.LOCK_EX)
    kind, fresh = state()  # the other may have made it
    if not fresh:
        build(kind)


def say(text: str) -> None:
    """Print one line of the wrapper's own; on a terminal it breaks between words."""
    line = f"snakemake: {text}"
    if sys.stderr.isatty():
        line = textwrap.fill(
            line, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False
        )
    print(line, file=sys.stderr, flush=True)


class Failed(Exception):
    """The environment could not be made; the message is the one line to print."""


def stamp(kind: str, version: str) -> str:
    """Return what `.venv/made-from` must hold: lock, Python and place."""
    digest = hashlib.sha256((ROOT / "envs" / f"lock-{kind}.txt").read_bytes()).hexdigest()
    return f"{kind} {digest} python {version}\n{ROOT}\n"


def state() -> tuple[str, bool]:
    """Return (kind of lock, whether `.venv` is already exactly what that lock says)."""
    have = STAMP.read_text() if STAMP.is_file() else ""
    kind = (
        os.environ.get("PGRPO_ENV") or have.split(" ")[0] or ("cuda" if shutil.which("nvidia-smi") else "cpu")
    )
    if kind not in ("cpu", "cuda"):
        raise Failed(f"PGRPO_ENV={kind}: allowed are cpu and cuda")
    return kind, bool(have) and have == stamp(kind, _version())


def _version() -> str:
    """Return the version of `.venv`'s Python as `3.11`, or "" where it does not run."""
    if Path(sys.executable) == PYTHON:
        return "{}.{}".format(*sys.version_info)
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    try:
        return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def build(kind: str) -> None:
    """Make `.venv` from `envs/lock-{kind}.txt`; its stamp comes last: a broken-off build has none."""
    lock = ROOT / "envs" / f"lock-{kind}.txt"
    why = "it is stale" if VENV.exists() else "there is none yet"
    say(f"making .venv from envs/{lock.name}, as {why}; this happens once and takes some minutes")
    if (ROOT / "results").is_dir():
        say("what is in results/ stays; ./snakemake -n --forceall TARGET lists what making it anew would run")
    if VENV.is_symlink():
        VENV.unlink()  # what it points to, its stamp too, belongs to somebody else
    STAMP.unlink(missing_ok=True)
    # The base Python makes it: an environment cannot clear itself.
    base = sys._base_executable
    done = subprocess.run([base, "-m", "venv", "--clear", VENV], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{base} -m venv failed: {(done.stdout + done.stderr).strip()}")
    hashed, plain = split(lock.read_text())
    total = len(hashed) + len(plain)
    if plain and not pip(plain, total, 0):
        say(f"{plain[0]} is on none of pip's indexes, trying {PYTORCH}")
        if not pip(plain, total, 0, "--extra-index-url", PYTORCH):
            raise Failed(
                f"{plain[0]} could not be installed: see pip's lines above; the next start tries again"
            )
    if not pip(hashed, total, len(plain), "--require-hashes"):
        raise Failed(
            "the environment could not be installed: see pip's lines above; the next start tries again"
        )
    own = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ROOT]
    done = subprocess.run(own, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"installing the package itself failed: {done.stderr.strip()}")
    STAMP.write_text(stamp(kind, _version()))
    say("the environment is ready")


def split(lock: str) -> tuple[list[str], list[str]]:
    """Return (requirements with hashes, requirements without) of a lock's text; pip takes no mixture."""
    lines = lock.replace("\\\n", " ").splitlines()
    pins = [" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#")]
    return [pin for pin in pins if "--hash" in pin], [pin for pin in pins if "--hash" not in pin]


def pip(pins: list[str], total: int, before: int, *options: str) -> bool:
    """Install exactly `pins`; print how far it is, and the last lines where pip failed."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(pins) + "\n")
        file.flush()
        command = [PYTHON, "-m", "pip", "install", "--no-deps", "--no-compile", "--no-input"]
        command += ["--progress-bar", "off", "--disable-pip-version-check", *options, "-r", file.name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        count, last = before, []
        for line in process.stdout:
            last = [*last[-5:], line.rstrip()]
            if re.match("Collecting |Processing ", line):
                count += 1
                _progress(f"[{count}/{total}] {Path(line.split()[1]).name}", count % 20 == 0)
            elif line.startswith("Installing collected"):
                _progress(f"[{count}/{total}] unpacking", True)
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        if process.wait():
            print("\n".join(last), file=sys.stderr)
        return process.returncode == 0


def _progress(text: str, milestone: bool) -> None:
    """Write over one line on a terminal; elsewhere print milestones only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
    elif milestone:
        say(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
