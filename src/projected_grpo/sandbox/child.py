"""What happens in the fork before any submitted code: give up every right, then hand over to the harness."""

import _signal
import builtins
import contextlib
import ctypes
import functools
import gc
import glob
import marshal
import os
import random
import resource
import sys
import threading
import types
import warnings
from _sitebuiltins import Quitter
from typing import Any, NamedTuple

from projected_grpo.sandbox import fifo, harness, kernel, landlock, maps, seccomp

MEGABYTE = 1 << 20
MEMORY = 1024 * MEGABYTE  # address space of a check
FILES = 16 * MEGABYTE  # one file, and standard output where it is looked at
THREADS = 128
THREAD_STACK = 8 * MEGABYTE
DESCRIPTORS = 64
USED = 4  # the last descriptor of a check of ours: standard ones, report, Landlock's rules
CPU_CHECK = 4  # seconds, by the kernel; the trusted side ends a check before
# Executed anew: see there.
HARNESS = harness.__loader__.get_code(harness.__name__)  # type: ignore[union-attr]
NATIVE = ("ctypes", "_ctypes", "ctypes._endian")
HIDDEN = ("_ctypes", "_test", "_xx", "xx", "_interp", "_tkinter", "_curses", "readline", "_dbm", "_gdbm")


class Layer(NamedTuple):
    """How a check is locked in; decided by the zygote once.

    filters: seccomp programs by kind of check, or None; fence: descriptor of Landlock rules where no namespaces hide
    the rest, or None; uid: user id to become or None; box: working folder; capabilities: there are some to drop.
    """

    filters: dict[str, seccomp.Program] | None
    fence: int | None
    uid: int | None
    box: str
    capabilities: bool


def enter(
    layer: Layer, begin: Any, payload: int, report: int, output: int | None, kind: str
) -> functools.partial:
    """Lock this process in and return what is left to do; to be called when no frame of ours is left.

    begin: what `prepare` returned; kind: of the check, as `seccomp.program` has it.
    """
    source = _read(payload)
    lock_in(layer, report, output, kind)
    vars(sys.modules.pop("__main__")).clear()
    return begin(source)


def _read(fd: int) -> bytes:
    size = os.lseek(fd, 0, os.SEEK_END)
    data = os.pread(fd, size, 0)
    while len(data) < size:  # more than one call gives
        data += os.pread(fd, size - len(data), len(data))
    return data


def lock_in(layer: Layer, report: int, output: int | None, kind: str) -> None:
    """Give up descriptors, resources, rights and system calls, in this order. Raises OSError where a layer fails."""
    os.setsid()
    # By the C functions: `signal` makes enums of what it returns, which touches, hence copies, a third of a megabyte.
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
    # Where the answer is in the process alone no handler may run beside what reports it.
    _signal.signal(_signal.SIGINT, _signal.default_int_handler if kind == "plain" else _signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDWR)  # opened here: an open file is shared with whoever else holds it
    sources = [null, null if output is None else output, null, report]
    if layer.fence is not None:
        sources.append(layer.fence)
    for target, fd in enumerate(sources):  # none is where another belongs: see `hold_numbers`
        os.dup2(fd, target)
    kernel.close_all_but(len(sources))
    os.chdir(layer.box)
    _limit("AS", MEMORY)
    _limit("FSIZE", FILES)
    _limit("CORE", 0)
    _limit("NOFILE", DESCRIPTORS)
    _limit("MEMLOCK", 0)
    _limit("CPU", CPU_CHECK)
    if layer.uid is not None:
        os.setgroups([])
        os.setresgid(layer.uid, layer.uid, layer.uid)
        os.setresuid(layer.uid, layer.uid, layer.uid)
        _limit("NPROC", THREADS)
    if layer.capabilities:
        kernel.drop_capabilities()
    if kernel.LINUX:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if layer.fence is not None:
        landlock.restrict(4)
        os.close(4)
    if layer.filters is not None:
        seccomp.install(layer.filters[kind])


def hold_numbers() -> None:
    """Have every descriptor that is opened from here on a number beyond those that a check uses."""
    while os.open(os.devnull, os.O_RDWR) <= USED:
        pass


def _limit(name: str, value: int) -> None:
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    except (ValueError, AttributeError):
        if kernel.LINUX:
            raise


def prepare(setup: bytes, box: str, level: str) -> Any:
    """Bring the zygote into the state that every fork starts from; return the harness's `enter`.

    setup: code that most checks begin with, marshalled.
    """
    stream: Any
    used: Any
    private: dict[str, Any] = {"__builtins__": dict(vars(builtins)), "__name__": "harness"}
    exec(HARNESS, private)
    if level != "weak":
        fifo.stand_in(box)
        maps.stand_in()
    if level in ("bubblewrap", "landlock"):
        _map_extensions()
    warnings.simplefilter("ignore")
    random.seed(0)
    builtins.exit, builtins.quit = Quitter("exit", ""), Quitter("quit", "")  # as `site` provides them
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    sys.argv[:] = ["submission.py"]
    sys.path[:] = [path for path in sys.path if path.startswith(sys.base_prefix)]
    module = private["set_up"](marshal.loads(setup))
    # Nothing of ours is in sight of an import, and nothing native of that of a class of ctypes.
    for name in [name for name in sys.modules if name.startswith("projected_grpo") or name in NATIVE]:
        del sys.modules[name]
    for used in (kernel, landlock, seccomp):
        used.ctypes = types.SimpleNamespace(**vars(ctypes))
    vars(ctypes).clear()
    threading.stack_size(THREAD_STACK)
    gc.disable()
    gc.collect()
    gc.freeze()
    enter = private["enter"]
    return lambda payload: enter(payload, module)


def _map_extensions() -> None:
    """Map the extension modules of the library: an import finds them where nothing more may be mapped as code."""
    for path in sys.path:
        for place in glob.glob(os.path.join(glob.escape(path), "*.so")):
            if not os.path.basename(place).startswith(HIDDEN):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(place)
