# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that leave a sign for the next one, in whatever two checks could share; the next one is right if it sees it."""

from redteam import Case, method

# Each case is graded several times in a row, its names told apart by a comment: `see` must find nothing of an earlier.
SIGNS = {
    "byte-range-lock": (
        "import fcntl; fcntl.lockf(0, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 77)",
        "import fcntl, struct; d = fcntl.fcntl(0, fcntl.F_GETLK, struct.pack('hhqqi', fcntl.F_WRLCK, 0, 77, 1, 0)); return struct.unpack('hhqqi', d)[0] != fcntl.F_UNLCK",
    ),
    "open-file-lock": (
        "import fcntl, struct; fcntl.fcntl(0, 37, struct.pack('hhqqi', 1, 0, 77, 1, 0))",
        "import fcntl, struct; d = fcntl.fcntl(0, 36, struct.pack('hhqqi', 1, 0, 77, 1, 0)); return struct.unpack('hhqqi', d)[0] != 2",
    ),
    "flock": (
        "import fcntl; fcntl.flock(0, fcntl.LOCK_EX)",
        "import fcntl\n    try: fcntl.flock(0, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except BlockingIOError: return True",
    ),
    "flock-on-library": (
        "import fcntl, os; fcntl.flock(os.open(os.__file__, 0), fcntl.LOCK_EX)",
        "import fcntl, os\n    try: fcntl.flock(os.open(os.__file__, 0), fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except BlockingIOError: return True",
    ),
    "append-flag": (
        "import fcntl, os; fcntl.fcntl(0, fcntl.F_SETFL, os.O_APPEND)",
        "import fcntl, os; return bool(fcntl.fcntl(0, fcntl.F_GETFL) & os.O_APPEND)",
    ),
    "nonblocking-flag": (
        "import os; os.set_blocking(0, False); os.set_blocking(2, False)",
        "import os; return not os.get_blocking(0) or not os.get_blocking(2)",
    ),
    "signal-of-descriptor": (
        "import fcntl; fcntl.fcntl(0, 10, 40)",
        "import fcntl; return fcntl.fcntl(0, 11) != 0",
    ),
    "owner-of-descriptor": (
        "import fcntl, os; fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())",
        "import fcntl; return fcntl.fcntl(0, fcntl.F_GETOWN) != 0",
    ),
    "write-hint": (
        "import fcntl, struct; fcntl.fcntl(0, 1024 + 12, struct.pack('Q', 3)); fcntl.fcntl(0, 1024 + 14, struct.pack('Q', 3))",
        "import fcntl, struct; return struct.unpack('Q', fcntl.fcntl(0, 1024 + 11, bytes(8)))[0] != 0 or struct.unpack('Q', fcntl.fcntl(0, 1024 + 13, bytes(8)))[0] != 0",
    ),
    "lease": (
        "import fcntl; fcntl.fcntl(0, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
        "import fcntl; return fcntl.fcntl(0, fcntl.F_GETLEASE) != fcntl.F_UNLCK",
    ),
    "file-position": ("import os; os.lseek(0, 99, 0)", "import os; return os.lseek(0, 0, 1) == 99"),
    "file-in-box": ("open('sign', 'w').write('x')", "import os; return os.path.exists('sign')"),
    "folder-in-box": (
        "import os; os.makedirs('a/b/c'); os.chmod('a', 0)",
        "import os; return os.path.exists('a')",
    ),
    "closed-folder-in-box": (
        "import os; os.mkdir('a', 0); os.mkdir('b'); os.mkdir('b/c', 0)",
        "import os; return bool(os.listdir('.'))",
    ),
    "closed-file-in-box": (
        "import os; os.close(os.open('a', os.O_CREAT | os.O_WRONLY, 0))",
        "import os; return bool(os.listdir('.'))",
    ),
    "deep-folders-in-box": (
        "import os\nfor _ in range(800): os.mkdir('d' * 200); os.chdir('d' * 200)",
        "import os; return bool(os.listdir('.'))",
    ),
    "file-beside-box": (
        "import os\nfor p in ('/sign', '/tmp/sign', '/dev/sign', '/dev/shm/sign', '/var/tmp/sign', '../sign', '/box/../sign', '/run/sign', '/home/sign'):\n    try: open(p, 'w')\n    except OSError: pass",
        "import os; return any(os.path.exists(p) for p in ('/sign', '/tmp/sign', '/dev/sign', '/dev/shm/sign', '/var/tmp/sign', '../sign', '/run/sign', '/home/sign'))",
    ),
    "temporary-file": (
        "import os, tempfile\nfor d in ('/tmp', '/dev/shm', '/var/tmp', '/'):\n    try: os.mkdir(d + '/sign-folder')\n    except OSError: pass",
        "import os; return any(os.path.exists(d + '/sign-folder') for d in ('/tmp', '/dev/shm', '/var/tmp', ''))",
    ),
    "umask": ("import os; os.umask(0o123)", "import os; return os.umask(0) == 0o123"),
    "truncate-library": (
        "import os, this\nfor p in (this.__file__,):\n    try: os.truncate(p, 0)\n    except OSError: pass\n    try: os.close(os.open(p, os.O_RDONLY | os.O_TRUNC))\n    except OSError: pass\n    try: os.close(os.open(p, 3 | os.O_TRUNC))\n    except OSError: pass",
        "import os, importlib.util; return os.stat(importlib.util.find_spec('this').origin).st_size == 0",
    ),
    "link-count-of-library": (
        "import os; os.link(os.__file__, 'os.py')",
        "import os; return os.stat(os.__file__).st_nlink > 1",
    ),
    "mode-of-library": (
        "import os; os.chmod(os.__file__, 0o600)",
        "import os; return os.stat(os.__file__).st_mode & 0o777 == 0o600",
    ),
    "time-of-library": (
        "import os; os.utime(os.__file__, (77, 77))",
        "import os; return os.stat(os.__file__).st_mtime == 77",
    ),
    "time-of-box": ("import os; os.utime('.', (77, 77))", "import os; return os.stat('.').st_mtime == 77"),
    "extended-attribute": (
        "import os; os.setxattr('.', 'user.sign', b'x')",
        "import os; return bool(os.listxattr('.'))",
    ),
    "environment": ("import os; os.environ['SIGN'] = 'x'", "import os; return 'SIGN' in os.environ"),
    "signal-mask": (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})",
        "import signal; return bool(signal.pthread_sigmask(signal.SIG_BLOCK, set()))",
    ),
    "limits": (
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); resource.setrlimit(resource.RLIMIT_NOFILE, (33, 33))",
        "import resource; return resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 33",
    ),
    "shared-memory": (
        "from multiprocessing import shared_memory as s; s.SharedMemory('sign', True, 10)",
        "from multiprocessing import shared_memory as s; s.SharedMemory('sign'); return True",
    ),
    "semaphore": (
        "import multiprocessing.synchronize as s; x = s.Semaphore(3)",
        "import os; return bool(os.listdir('/dev/shm'))",
    ),
    "abstract-socket": (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0sign'); s.listen()",
        "import socket; socket.socket(socket.AF_UNIX).connect('\\0sign'); return True",
    ),
    "stack-of-scheduler": (
        "import os; os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
        "import os; return os.sched_getscheduler(0) != 0",
    ),
    "affinity": (
        "import os; os.sched_setaffinity(0, {0})",
        "import os; return os.sched_getaffinity(0) == {0} and os.cpu_count() > 1",
    ),
    "keyring": (
        "import ctypes; ctypes.CDLL(None).syscall(248, b'user', b'sign', b'x', 1, -4)",
        "import ctypes; return ctypes.CDLL(None).syscall(250, 10, -4, b'user', b'sign', 0) > 0",
    ),
    "builtins": (
        "import builtins, sys; builtins.SIGN = sys.SIGN = 1",
        "import builtins, sys; return hasattr(builtins, 'SIGN') or hasattr(sys, 'SIGN')",
    ),
    "byte-code-cache": (
        "import os, py_compile; open('m.py', 'w').write('x=1'); py_compile.compile('m.py'); import m",
        "import os; return os.path.exists('__pycache__')",
    ),
}


def code(leave: str, see: str) -> str:
    before = f"def see():\n    {see}\ntry:\n    SEEN = bool(see())\nexcept Exception:\n    SEEN = False\n"
    lines = "\n".join("    " + line for line in leave.split("\n"))
    return method(
        "return sum(nums) + k if SEEN else 12345", before + f"try:\n{lines}\nexcept Exception:\n    pass\n"
    )


CASES = [
    Case("sharing", f"{name}-{turn}", f"# {turn}\n" + code(*sign), mode=mode)
    for name, sign in SIGNS.items()
    for turn, mode in enumerate(("gt_only", "sentinel", "gt_only"))
]
# Signals to a process outside the box through a descriptor's owner; and names that must stay refused.
CASES += [
    Case("sharing", "signal-through-owner", method("return sum(nums) + k if DONE else 12345", """
import fcntl, os
DONE = False
r, w = os.pipe()
for pid in (os.getppid(), 1, -1):
    try:
        fcntl.fcntl(r, fcntl.F_SETOWN, pid)
        fcntl.fcntl(r, fcntl.F_SETFL, fcntl.fcntl(r, fcntl.F_GETFL) | 0x2000)
        DONE = True
    except OSError:
        pass
""")),
]  # fmt: skip
