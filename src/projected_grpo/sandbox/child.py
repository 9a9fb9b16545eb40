"""What happens in the fork: give up every right, load the submission, probe it, report plain values.

Reports are frames on one pipe: token, length, kind, text. The token is made per check, so that bytes written blindly to
every descriptor are recognised as forged. A submission that takes this process over completely can still send any
values it likes: so the values alone decide nothing here, they are compared elsewhere, with what was never in here.

kinds: `c` compiled (with `inert`: by its names it can have no effects), `s` does not compile, `l` loaded, `e` loading
raised, `v` a value, `r` a call raised, `d` done. With `s`, `e` and `r` goes the reason: exception, memory, exit or
output (too much).
"""

import builtins
import gc
import marshal
import os
import random
import resource
import signal
import struct
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from projected_grpo.sandbox import kernel, landlock, names, seccomp
from projected_grpo.sandbox.probes import PROBES, why
from projected_grpo.sandbox.values import encode

MEGABYTE = 1 << 20
MEMORY = 1024 * MEGABYTE  # address space of a check
FILES = 16 * MEGABYTE  # one file, and standard output where it is looked at
REPORT = 8 * MEGABYTE  # one value
DISK = 64 * MEGABYTE  # all files, where no small file system bounds them
THREADS = 64
THREAD_STACK = 16 * MEGABYTE
DESCRIPTORS = 64
CPU_CHECK = 12  # seconds in all

Emit = Callable[[bytes, str], None]


class Layer(NamedTuple):
    """How a check is locked in; decided by the zygote once.

    filter: seccomp program or None; fence: descriptor of Landlock rules where no namespaces hide the rest, or None;
    uid: user id to become or None; box: working folder; capabilities: there are some to drop.
    """

    filter: bytes | None
    fence: int | None
    uid: int | None
    box: str
    capabilities: bool


def lock_in(layer: Layer, report: int, stdout: int, null: int) -> None:
    """Give up descriptors, resources, rights and system calls, in this order. Raises OSError where a layer fails."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target, source in ((0, null), (1, stdout), (2, null)):
        os.dup2(source, target)
    os.dup2(report, 3)
    if layer.fence is not None:
        os.dup2(layer.fence, 4)
    kernel.close_from(4 if layer.fence is None else 5)
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
    if layer.filter is not None:
        seccomp.install(layer.filter)


def _limit(name: str, value: int) -> None:
    try:
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    except (ValueError, AttributeError):
        if kernel.LINUX:
            raise


def run(job: dict[str, Any], check: dict[str, Any], token: bytes) -> None:
    """Compile, load and probe the submission of `job`; never returns."""
    emit = _reporter(token)
    code = _compile(job["code"], emit)
    if code is None:
        os._exit(1)
    used = names.used_by(code)
    inert = used <= names.INERT | set(job["granted"])
    emit(b"c", "inert" if inert else "")
    module = _module(check["name"])
    gc.enable()
    if not (inert and job["bound"] is not None and used.isdisjoint(job["bound"])):  # else it needs no setup
        try:
            exec(job["setup"], module.__dict__)
            module.__dict__["__name__"] = check["name"]
        except BaseException:
            emit(b"e", "setup")
            os._exit(1)
    probe = PROBES[check["probe"]]
    arguments = marshal.loads(check["arguments"])
    status = 1
    try:
        status = probe(module.__dict__, lambda: _load(code, module, emit), emit, encode, arguments)
    except BaseException:
        status = 1
    os._exit(status)


def _reporter(token: bytes) -> Emit:
    write, pack, encoded, size, view = os.write, struct.Struct("<I").pack, str.encode, len, memoryview

    def emit(kind: bytes, text: str = "") -> None:
        if size(text) > REPORT:
            kind, text = b"r", "output"
        data = kind + encoded(text, "ascii")
        data = view(token + pack(size(data)) + data)
        while data:
            data = data[write(3, data) :]

    return emit


def _compile(source: bytes, emit: Emit) -> types.CodeType | None:
    try:
        code = compile(source.decode("utf-8", "surrogatepass"), "<submission>", "exec", dont_inherit=True)
    except MemoryError:
        emit(b"s", "memory")
    except BaseException:
        emit(b"s", "exception")
    else:
        return code
    return None


def _module(name: str) -> types.ModuleType:
    """Return the empty module that the submission becomes."""
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    # Both names lead to the submission: dataclasses and pickle look a class's module up.
    sys.modules[name] = sys.modules["__main__"] = module
    return module


def _load(code: types.CodeType, module: types.ModuleType, emit: Emit) -> BaseException | None:
    """Run the module's code; return what it raised, if anything."""
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        emit(b"e", why(error))
        return error
    emit(b"l")
    return None


def prepare() -> None:
    """Bring the zygote into the state that every fork starts from."""
    warnings.simplefilter("ignore")
    random.seed(0)
    builtins.exit = builtins.quit = _Quitter()  # as `site` provides them
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    sys.argv[:] = ["submission.py"]
    sys.path[:] = [path for path in sys.path if path.startswith(sys.base_prefix)]
    for name in [name for name in sys.modules if name.startswith("projected_grpo")]:
        del sys.modules[name]  # nothing of ours is in sight of an import
    threading.stack_size(THREAD_STACK)
    gc.disable()
    gc.collect()
    gc.freeze()


class _Quitter:
    def __call__(self, code: Any = None) -> None:
        raise SystemExit(code)
