"""What reports from a check: compile and load the submission, ask, write frames. Knows questions, no answers.

It runs beside submitted code in one process, so it is made as hard to reach as Python lets it be. The file is executed
into a namespace of its own, with builtins of its own, that is in no module (`child.enter`). It runs as a generator
which stands still while submitted code runs under `probes.stage`: no frame up the stack holds it, its token, its
question, or a function of it. Where the answer exists in its process alone a check has one question, and the session
goes on only when no thread, collector or handler of the submission can run any more. A submission that reaches native
memory can still forge such a channel; never the oracle, whose values are compared on the trusted side.

Frames are seal, length, kind, text. `c` compiled, `s` does not compile, `l` loaded, `e` loading raised, `v` a value,
`r` a call raised, `d` done. With `s`, `e` and `r` goes a word: exception, memory, exit, output or setup; below it, for
people, the exception's type, message and line (reasons.py).
"""

import _thread
import atexit
import builtins
import ctypes
import functools
import gc
import io
import marshal
import os
import struct
import sys
import threading
import types
from _blake2 import blake2b
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from projected_grpo.sandbox import candidate, kernel, probes
from projected_grpo.sandbox.reasons import SUBMISSION, explain
from projected_grpo.sandbox.values import encode

if TYPE_CHECKING:
    Steps = Generator[Callable, None, None]  # what is to be called on the stage
    Ending = Generator[Callable, None, int]  # the same; returns the exit status

REPORT = 3  # descriptor
LARGEST = 8 << 20  # one value
CROSSED = 72  # exit status: it reached for the reporter
partial = functools.partial
write, leave, loads, pack = os.write, os._exit, marshal.loads, struct.Struct("<I").pack
undisturbed, answer, attempt, flush = (
    probes.undisturbed,
    probes.answer,
    probes.bare(probes.attempt),
    probes.flush,
)
returned, attribute_is_true, equals_decoys, own_tests = (
    probes.returned,
    probes.attribute,
    probes.equality,
    probes.own_tests,
)
join_threads, run_atexit, tracked = threading._shutdown, atexit._run_exitfuncs, gc.get_objects  # type: ignore[attr-defined]
streams, file_base = (sys.stdout, sys.stderr), io.IOBase
modules, public_builtins = sys.modules, builtins
# Whether there are other threads: by the kernel's word, where Python no longer counts one that is ending.
threads = partial(kernel.libc.unshare, ctypes.c_int(kernel.CLONE_THREAD)) if kernel.LINUX else _thread._count
NATIVE = (
    "ctypes",
    "_ctypes",
    "_test",
    "_xx",
    "_interp",
)  # how modules begin that lead to memory or past the hook


def enter(payload: bytes, module: types.ModuleType | None) -> partial:
    """Return what is left to do; call it from a frame that holds nothing.

    module: what the submission is loaded into, the usual setup done; None where that setup raises.
    """
    job = loads(payload)
    begin, in_process = PROBES[job["probe"]]
    if in_process:
        sys.addaudithook(bare_watch)
    if begin is script:
        return script(*prepared(job, module))
    running = session(job, begin, module)
    gc.freeze()  # what exists so far is in no list of the collector
    return probes.staged(running)


def watch(
    event: str,
    args: tuple,
    leave: Callable[[int], object] = os._exit,
    type: type = type,
    str: type = str,
    native: tuple[str, ...] = NATIVE,
) -> None:
    """Audit hook: end a check that reaches for frames, traces, objects or memory that are not its own."""
    if event in (
        "sys.settrace",
        "sys.setprofile",
        "sys.addaudithook",
        "sys._current_frames",
        "sys._current_exceptions",
        "sys.monitoring.register_callback",
        "gc.get_objects",
        "gc.get_referrers",
        "gc.get_referents",
        "cpython.PyInterpreterState_New",
    ):
        leave(72)
    # A text of a type of its own may lie about what it equals; of a dotted name the last part is what is loaded.
    if event == "import" and (type(args[0]) is not str or args[0].rpartition(".")[2].startswith(native)):
        leave(72)
    if event[:7] == "ctypes.":
        leave(72)


def session(
    job: dict, begin: "Callable[..., Generator[Callable, None, Any]]", module: types.ModuleType | None
) -> "Steps":
    """Compile, load and probe; yields what is to be called on the stage. Ends the process."""
    status = 1
    try:
        status = yield from begin(*prepared(job, module))
    except BaseException:
        status = 1
    leave(status)


def prepared(job: dict, module: types.ModuleType | None) -> tuple:
    """Compile the submission; return its namespace, what loads it, what reports, and the probe's arguments."""
    emit = reporter(job["token"])
    try:
        code = compile(job["code"].decode("utf-8", "surrogatepass"), SUBMISSION, "exec", dont_inherit=True)
    except MemoryError:
        emit(b"s", "memory")
        leave(1)
    except BaseException as error:
        emit(b"s", explain("exception", error))
        leave(1)
    emit(b"c")
    if job["setup"] is not None:
        module = set_up(loads(job["setup"]))
    if module is None:
        emit(b"e", "setup")
        leave(1)
    namespace = module.__dict__
    namespace["__name__"] = job["name"]
    # Both names lead to the submission: dataclasses and pickle look a class's module up.
    modules[job["name"]] = modules["__main__"] = module
    return namespace, partial(exec, code, namespace), emit, loads(job["arguments"])


def set_up(code: types.CodeType) -> types.ModuleType | None:
    """Return a new module in which `code` was run, None where that raises."""
    module = types.ModuleType("solution")
    module.__dict__["__builtins__"] = public_builtins
    try:
        exec(code, module.__dict__)
    except BaseException:
        return None
    return module


def reporter(token: bytes) -> Callable[..., None]:
    """Return the function that writes a frame, sealed by the token: what is read off the pipe seals nothing else."""
    number = 0

    def emit(kind: bytes, text: str = "") -> None:
        nonlocal number
        if len(text) > LARGEST:
            kind, text = b"r", "output"
        data: bytes | memoryview = kind + text.encode("ascii")
        seal = blake2b(data, digest_size=16, key=token, salt=pack(number)).digest()
        number += 1
        data = memoryview(seal + pack(len(data)) + data)
        while data:
            data = data[write(REPORT, data) :]

    return emit


def asked(question: Callable, *args: Any) -> Generator[Callable, None, tuple[bool, Any]]:
    """Have `question` run where what it finds is judged elsewhere; return (True, value) or (False, reason)."""
    found: list = []
    gc.enable()
    yield partial(next, map(found.append, map(answer, [partial(question, *args)], [explain])))
    return found[0]


def calls(namespace: dict, load: Callable, emit: Callable[..., None], arguments: dict) -> "Ending":
    """Call `Solution().method` once per test and report each value."""
    fine, text = yield from asked(load)
    emit(b"l") if fine else emit(b"e", text)
    if not fine:
        return 1
    for test in arguments["tests"]:
        args, kwargs = loads(test)
        value = returned(namespace, arguments["method"], args, kwargs)
        fine, text = yield from asked(next, map(encode, value))
        emit(b"v" if fine else b"r", text)
    emit(b"d")
    return 0


def candidates(namespace: dict, load: Callable, emit: Callable[..., None], arguments: dict) -> "Ending":
    """Call functions by name, in order, and report each answer: a check of another process judges them."""
    fine, text = yield from asked(load)
    emit(b"l") if fine else emit(b"e", text)
    if not fine:
        return 1
    for name, packed in arguments["calls"]:
        fine, text = yield from asked(candidate.answer, namespace, name, *loads(packed))
        emit(b"v" if fine else b"r", text)
    emit(b"d")
    return 0


def effects(namespace: dict, load: Callable, emit: Callable[..., None], arguments: dict) -> "Ending":
    """Load only: what counts is what the load left outside, once its threads, exit handlers and files have ended."""
    fine, text = yield from asked(load)
    emit(b"l") if fine else emit(b"e", text)
    yield from asked(join_threads)
    yield from asked(run_atexit)
    yield from asked(flush, file_base, tracked, (sys.stdout, *streams))
    emit(b"d")
    return 0


def answered(question: Iterator, emit: Callable[..., None]) -> "Steps":
    """Have the one question of a check run, and report its answer."""
    found: list = []
    yield undisturbed(question, found, threads)
    if not found:
        emit(b"r", "exception")
        leave(1)
    if found[0] is None:
        emit(b"r", "missing")
        leave(1)
    emit(b"v", "true" if found[0] is True else "false")
    emit(b"d")
    leave(0)


def attribute(namespace: dict, load: Callable, emit: Callable[..., None], arguments: dict) -> "Steps":
    """Report whether an attribute of a fresh instance is True itself."""
    yield from loaded(load, emit)
    yield from answered(attribute_is_true(namespace, arguments["attribute"]), emit)


def loaded(load: Callable, emit: Callable[..., None], goes_on: bool = False) -> "Steps":
    """Load the submission, and have it stand still."""
    found: list = []
    yield undisturbed(map(attempt, [load]), found, threads)
    emit(b"l") if found[0] is None else emit(b"e", found[0])
    if found[0] is not None and not goes_on:
        leave(1)


def run_tests(namespace: dict, load: Callable, emit: Callable[..., None], arguments: dict) -> "Steps":
    """Report whether the submission's own tests pass on what they are run on; judged even if loading raised."""
    against: tuple | None = None
    if arguments["against"] == "stub":
        against = None, None
    elif arguments["against"] != "own":
        against = loads(arguments["against"]), dict(namespace)
    yield from loaded(load, emit, goes_on=True)
    yield from answered(own_tests(namespace, arguments["name"], arguments["method"], against), emit)


def equality(namespace: dict, load: Callable, emit: Callable[..., None], arguments: dict) -> "Steps":
    """Call the method and report whether the returned value equals all decoys by `==`."""
    yield from loaded(load, emit)
    args, kwargs = loads(arguments["call"])
    decoys = loads(arguments["decoys"])
    yield from answered(equals_decoys(namespace, arguments["method"], args, kwargs, decoys), emit)


def script(namespace: dict, load: Callable, emit: Callable[..., None], arguments: dict) -> partial:
    """Return a script whose checks always fail. The interpreter itself ends it: the exit status is the answer."""
    return partial(
        run_script, namespace, load, arguments["method"], [loads(test) for test in arguments["tests"]]
    )


def run_script(namespace: dict, load: Callable, method: str, tests: Iterable[tuple]) -> None:
    gc.unfreeze()  # at its end the interpreter collects the module, too
    gc.enable()
    load()
    for args, kwargs in tests:
        getattr(namespace["Solution"](), method)(*args, **kwargs)
    raise AssertionError("the checks of this mode always fail")


bare_watch = probes.bare(watch)
# name: the question, and whether its answer exists in the submission's process alone
PROBES: dict[str, tuple[Callable, bool]] = {
    "calls": (calls, False),
    "candidates": (candidates, False),
    "nothing": (effects, False),
    "attribute": (attribute, True),
    "own_tests": (run_tests, True),
    "equality": (equality, True),
    "status": (script, False),
}
