"""What reports from a check: compile and load the submission, ask, write frames. Knows questions, no answers.

It runs beside submitted code in one process, so it is made as hard to reach as Python lets it be. The file is executed
into a namespace of its own, with builtins of its own, that is in no module (`child.enter`). It runs as a generator
which stands still while submitted code runs under `probes.stage`: no frame up the stack holds it, its token, or a
function of it. A submission that reaches native memory can still forge a channel that exists only in its process;
never the oracle, whose values are compared on the trusted side.

Frames are seal, length, kind, text. `c` compiled, `s` does not compile, `l` loaded, `e` loading raised, `v` a value,
`r` a call raised, `d` done. With `s`, `e` and `r` goes a word: exception, memory, exit, output or setup; below it, for
people, the exception's type, message and line (reasons.py).
"""

import atexit
import builtins
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

from projected_grpo.sandbox import probes
from projected_grpo.sandbox.candidate import answer
from projected_grpo.sandbox.reasons import SUBMISSION, explain
from projected_grpo.sandbox.values import encode

REPORT = 3  # descriptor
LARGEST = 8 << 20  # one value
CROSSED = 72  # exit status: it reached for the reporter
partial = functools.partial
write, leave, loads, pack = os.write, os._exit, marshal.loads, struct.Struct("<I").pack
stage = probes.bare(probes.stage)
ask_call, ask_attribute, ask_equality = map(probes.bare, (probes.call, probes.attribute, probes.equality))
find_tests, own_tests, flush = map(probes.bare, (probes.find_tests, probes.own_tests, probes.flush))
join_threads, run_atexit, tracked = threading._shutdown, atexit._run_exitfuncs, gc.get_objects
enable_gc = gc.enable
streams, file_base = (sys.stdout, sys.stderr), io.IOBase
modules, module_type, public_builtins = sys.modules, types.ModuleType, builtins


def enter(payload: bytes) -> partial:
    """Return the stage with a session on it; call it from a frame that holds nothing."""
    job = loads(payload)
    begin, in_process = PROBES[job["probe"]]
    if in_process:
        sys.addaudithook(probes.bare(watch))
    running = session(job, begin)
    gc.freeze()  # what exists so far is in no list of the collector
    return partial(stage, [running], in_process, explain)


def watch(event: str, args: tuple, leave=os._exit) -> None:
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
    ) or (event == "import" and args[0] in ("ctypes", "_ctypes", "_testcapi", "_testinternalcapi")):
        leave(72)
    if event[:7] == "ctypes.":
        leave(72)


def session(job: dict, begin):
    """Compile, load and probe; yields what is to be run on the stage (see `asked`). Ends the process."""
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
    module = module_type(job["name"])
    namespace = module.__dict__
    namespace["__builtins__"] = public_builtins
    # Both names lead to the submission: dataclasses and pickle look a class's module up.
    modules[job["name"]] = modules["__main__"] = module
    try:
        exec(loads(job["setup"]), namespace)
        namespace["__name__"] = job["name"]
    except BaseException:
        emit(b"e", "setup")
        leave(1)
    status = 1
    try:
        status = yield from begin(namespace, partial(exec, code, namespace), emit, loads(job["arguments"]))
    except BaseException:
        status = 1
    leave(status)


def reporter(token: bytes):
    """Return the function that writes a frame, sealed by the token: what is read off the pipe seals nothing else."""
    number = 0

    def emit(kind: bytes, text: str = "") -> None:
        nonlocal number
        if len(text) > LARGEST:
            kind, text = b"r", "output"
        data = kind + text.encode("ascii")
        seal = blake2b(data, digest_size=16, key=token, salt=pack(number)).digest()
        number += 1
        data = memoryview(seal + pack(len(data)) + data)
        while data:
            data = data[write(REPORT, data) :]

    return emit


def asked(question):
    """Have `question` run on the stage; return (True, its value) or (False, the reason why there is none)."""
    found: list = []
    step = [question, found.append]
    enable_gc()
    yield step
    if len(found) == 1 and not step:
        return True, found[0]
    if not found and len(step) == 1:
        return False, step[0]
    leave(CROSSED)


def loaded(load, emit):
    fine, why = yield from asked(load)
    emit(b"l") if fine else emit(b"e", why)
    return fine


def calls(namespace, load, emit, arguments):
    """Call `Solution().method` once per test and report each value."""
    if not (yield from loaded(load, emit)):
        return 1
    for test in arguments["tests"]:
        args, kwargs = loads(test)
        question = partial(ask_call, namespace, arguments["method"], args, kwargs, encode)
        fine, text = yield from asked(question)
        emit(b"v" if fine else b"r", text)
    emit(b"d")
    return 0


def candidates(namespace, load, emit, arguments):
    """Call functions by name, in order, and report each answer: a check of another process judges them."""
    if not (yield from loaded(load, emit)):
        return 1
    for name, call in arguments["calls"]:
        fine, text = yield from asked(partial(answer, namespace, name, *loads(call)))
        emit(b"v" if fine else b"r", text)
    emit(b"d")
    return 0


def effects(namespace, load, emit, arguments):
    """Load only: what counts is what the load left outside, once its threads and files have ended."""
    yield from loaded(load, emit)
    yield from asked(join_threads)
    yield from asked(partial(flush, file_base, tracked, (sys.stdout, *streams)))
    emit(b"d")
    return 0


def attribute(namespace, load, emit, arguments):
    """Report whether an attribute of a fresh instance is True itself."""
    if not (yield from loaded(load, emit)):
        return 1
    yield from answered(partial(ask_attribute, namespace, arguments["attribute"]), emit)
    emit(b"d")
    return 0


def answered(question, emit):
    fine, found = yield from asked(question)
    emit(b"v", "true" if found is True else "false") if fine else emit(b"r", found)


def run_tests(namespace, load, emit, arguments):
    """Run the submission's own tests against a stub, its class and the canonical one; judged even if loading raised."""
    yield from loaded(load, emit)
    method, name = arguments["method"], arguments["name"]
    fine, found = yield from asked(partial(find_tests, namespace, name))
    if not fine or found is None:
        emit(b"r", "missing")
        return 1
    for against in arguments["against"]:
        canonical = None if against in ("stub", "own") else against
        question = partial(own_tests, namespace, found, name, method, against, canonical)
        yield from answered(question, emit)
    emit(b"d")
    return 0


def equality(namespace, load, emit, arguments):
    """Call the method and report, per test, whether the returned value equals all decoys by `==`."""
    if not (yield from loaded(load, emit)):
        return 1
    for test, decoys in arguments["tests"]:
        args, kwargs = loads(test)
        question = partial(ask_equality, namespace, arguments["method"], args, kwargs, loads(decoys))
        yield from answered(question, emit)
    emit(b"d")
    return 0


def status(namespace, load, emit, arguments):
    """Do as a script whose checks always fail would: the exit status is the answer."""
    ended = []
    yield from asked(partial(script, namespace, load, emit, arguments, ended.append))
    return ended[0] if ended else 1


def script(namespace, load, emit, arguments, end) -> None:
    try:
        load()
        emit(b"l")
        for test in arguments["tests"]:
            args, kwargs = loads(test)
            getattr(namespace["Solution"](), arguments["method"])(*args, **kwargs)
        raise AssertionError("the checks of this mode always fail")
    except SystemExit as error:
        code = exit_code(error)
    except BaseException as error:
        code = uncaught(error)
    try:
        join_threads()
        run_atexit()
    except BaseException:
        code = code or 1
    flush(file_base, tracked, (sys.stdout, *streams))
    end(code)


def uncaught(error: BaseException) -> int:
    """The status that an exception ends a script with; its hook may end it otherwise."""
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as last:
        return exit_code(last)
    except BaseException:
        return 1
    return 1


def exit_code(error: SystemExit) -> int:
    code = error.code
    if code is None:
        return 0
    return code & 255 if isinstance(code, int) else 1


# name: the question, and whether its answer exists in the submission's process alone
PROBES = {
    "calls": (calls, False),
    "candidates": (candidates, False),
    "nothing": (effects, False),
    "attribute": (attribute, True),
    "own_tests": (run_tests, True),
    "equality": (equality, True),
    "status": (status, False),
}
