"""A user without any right, for tests that run as root; as any other user these run as that one."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from subprocess import DEVNULL, call

from workspace import borrow_environment, clone

NOBODY = 65534
DROP = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
AS_USER = [*DROP, "--bounding-set=-all", "env"] if os.getuid() == 0 else ["env"]


def user_python():
    """Return a Python of this version that such a user can run with this environment's packages, or None."""
    version = "python{}.{}".format(*sys.version_info)
    packages = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib"), "HOME": "/nonexistent"}
    for python in (sys.executable, *(f"{folder}/{version}" for folder in ("/usr/bin", "/usr/local/bin"))):
        here = shutil.which(python) and shutil.which(AS_USER[0])
        if (
            here
            and call([*AS_USER, python, "-c", "import snakemake, venv"], env=packages, stderr=DEVNULL) == 0
        ):
            return python
    return None


def give(folder):
    """Make a folder and all in it that user's."""
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.lchown(path, NOBODY, NOBODY)
    return folder


if __name__ == "__main__":  # for .ci/smoke-as-nobody: make a whole clone in a folder
    python = user_python()
    if python is None:
        sys.exit("no Python here that an ordinary user can run")
    borrow_environment(clone(Path(sys.argv[1])), python)
    give(Path(sys.argv[1]))
