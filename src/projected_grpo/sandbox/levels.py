"""Layers, strongest first, and the known jobs that tell whether one works here.

`namespaces` (own pid, mount, network, IPC namespaces, an empty root, no capabilities, a list of system calls),
`bubblewrap` (the same by the helper that distributions allow to), `landlock` (no namespaces: Landlock for files, the
list of system calls for the rest), and, only when allowed, `weak` (resource limits alone).
"""

import marshal
import os
import shutil
import tempfile
from typing import Any

from projected_grpo.errors import UserError
from projected_grpo.sandbox import kernel
from projected_grpo.sandbox.values import equals
from projected_grpo.sandbox.watch import Budget
from projected_grpo.sandbox.wire import ENDED
from projected_grpo.sandbox.worker import Zygote, ZygoteDied, check, job

STRONG = ("namespaces", "bubblewrap", "landlock")
WEAK = "weak"


def choose_level(levels: tuple[str, ...], setup: str = "") -> tuple[str, Zygote]:
    """Return the first layer that passes the probes, and a zygote of it."""
    reasons = []
    for level in levels if kernel.LINUX else [level for level in levels if level == WEAK]:
        if level == "bubblewrap" and shutil.which("bwrap") is None:
            reasons.append("bubblewrap: not installed")
            continue
        try:
            zygote = Zygote(level, setup)
        except OSError as error:
            reasons.append(str(error))
            continue
        failed = probe(zygote, level)
        if failed is None:
            return level, zygote
        zygote.close()
        reasons.append(f"{level}: {failed}")
    raise UserError(
        f"sandbox: no layer works here ({'; '.join(reasons)}); to accept resource limits alone, where submissions"
        " can read files and use the network: `sandbox: weak` in the config, --allow-weak-sandbox on the command line"
    )


GOOD = "class Solution:\n    def f(self, x):\n        return sorted([x, 1])\n"
WRONG = "class Solution:\n    def f(self, x):\n        return [1]\n"
ESCAPE = """
import os, socket
class Solution:
    def f(self, path, parent):
        done = []
        def attempt(name, action):
            try:
                action()
            except OSError:
                return
            done.append(name)
        attempt("read a file", lambda: open(path).read())
        attempt("write a file", lambda: open(path, "a").write("x"))
        attempt("start a process", lambda: os.fork() or os._exit(0))
        attempt("open a socket", lambda: socket.socket())
        attempt("signal the parent", lambda: os.kill(parent, 0))
        return done
"""


def probe(zygote: Zygote, level: str) -> str | None:
    """Return what is wrong with a new zygote: it must pass right code, fail wrong code and hold back an escape."""
    try:
        return _probe(zygote, level)
    except ZygoteDied:
        return "it died"


def _probe(zygote: Zygote, level: str) -> str | None:
    if not equals(_value(zygote, GOOD, 7), [1, 7], 100):
        return "right code fails in it"
    if equals(_value(zygote, WRONG, 7), [1, 7], 100):
        return "wrong code passes in it"
    if level == WEAK:
        return None
    with tempfile.NamedTemporaryFile(mode="w") as canary:
        os.chmod(canary.name, 0o666)
        answer = _value(zygote, ESCAPE, canary.name, os.getpid())
    if equals(answer, [], 100):
        return None
    return f"a submission in it can {answer[:100].decode('ascii', 'replace')}"


def _value(zygote: Zygote, code: str, *args: Any) -> bytes:
    arguments = {"method": "f", "tests": [marshal.dumps((args, {}))]}
    watch = zygote.start(job("", code, []), check("calls", arguments, answers=1), Budget())
    while (event := zygote.receive()).kind != ENDED:
        watch.running(event)
    frames = watch.ended(event)["frames"]
    return frames[2][1:] if len(frames) > 2 and frames[2][:1] == b"v" else b'["x"]'
