"""What is asked of a loaded submission, in its own process. Each probe knows questions, no answers.

A probe gets `namespace` (the submission's globals, holding only the setup until `load()` ran), `load`, `emit`, `encode`
and its arguments; it returns the exit status. References to builtins are taken here, before any submission runs.
"""

import atexit
import marshal
import sys
import threading
from collections.abc import Callable
from typing import Any

_getattr, _setattr, _callable, _isinstance, _issubclass = getattr, setattr, callable, isinstance, issubclass
_type, _int, _dict, _memory_error, _system_exit = type, int, dict, MemoryError, SystemExit
_loads, _exec, _atexit, _join_threads = marshal.loads, exec, atexit._run_exitfuncs, threading._shutdown
_wrapped, _streams = (staticmethod, classmethod), (sys.stdout, sys.stderr)

Namespace = dict[str, Any]


def why(error: BaseException) -> str:
    kind = _type(error)
    if _issubclass(kind, _memory_error):
        return "memory"
    return "exit" if _issubclass(kind, _system_exit) else "exception"


def _flush() -> None:
    for stream in (sys.stdout, *_streams):
        try:
            stream.flush()
        except BaseException:
            continue


def calls(namespace: Namespace, load: Callable, emit: Callable, encode: Callable, arguments: dict) -> int:
    """Call `Solution().method` once per test and report each value."""
    if load() is not None:
        return 1
    method, tests = arguments["method"], arguments["tests"]
    for test in tests:
        args, kwargs = _loads(test)
        try:
            text = encode(_getattr(namespace["Solution"](), method)(*args, **kwargs))
        except BaseException as error:
            emit(b"r", why(error))
        else:
            emit(b"v", text)
    emit(b"d")
    return 0


def nothing(namespace: Namespace, load: Callable, emit: Callable, encode: Callable, arguments: dict) -> int:
    """Load only: what counts is what the load left outside."""
    load()
    _flush()
    emit(b"d")
    return 0


def attribute(namespace: Namespace, load: Callable, emit: Callable, encode: Callable, arguments: dict) -> int:
    """Report whether an attribute of a fresh instance is True itself."""
    if load() is not None:
        return 1
    try:
        value = _getattr(namespace["Solution"](), arguments["attribute"]) is True
    except BaseException as error:
        emit(b"r", why(error))
        return 1
    emit(b"v", "true" if value else "false")
    emit(b"d")
    return 0


def own_tests(namespace: Namespace, load: Callable, emit: Callable, encode: Callable, arguments: dict) -> int:
    """Run the submission's `run_tests` against a stub class, its own class and the canonical one, as asked.

    Reports, per entry of `arguments["against"]`, true (it passed) or false; `r missing` where there is no run_tests.
    """
    load()  # judged on what is defined even where loading raised
    method, name = arguments["method"], arguments["name"]
    own = namespace.get("Solution")
    function, bound = None, False
    if _isinstance(own, _type):
        for base in own.__mro__:
            if name in base.__dict__:
                function, bound = base.__dict__[name], True
                break
    if function is None:
        function = namespace.get(name)
    if function is None or not (_callable(function) or _isinstance(function, _wrapped)):
        emit(b"r", "missing")
        return 1
    for against in arguments["against"]:
        try:
            if against == "stub":
                target = _type("Solution", (), {method: _stub})
            elif against == "own":
                target = own
            else:
                scope = _dict(namespace)
                _exec(against, scope)
                target = scope["Solution"]
            if bound and target is not own:
                _setattr(target, name, function)
            namespace["Solution"] = target
            if bound:
                _getattr(target(), name)()
            else:
                function()
        except BaseException:
            emit(b"v", "false")
        else:
            emit(b"v", "true")
        finally:
            namespace["Solution"] = own
    emit(b"d")
    return 0


def _stub(*args: Any, **kwargs: Any) -> int:
    return 0


def equality(namespace: Namespace, load: Callable, emit: Callable, encode: Callable, arguments: dict) -> int:
    """Call the method and report, per decoy, whether the returned value equals it by `==`."""
    if load() is not None:
        return 1
    for test, decoys in arguments["tests"]:
        args, kwargs = _loads(test)
        try:
            value = _getattr(namespace["Solution"](), arguments["method"])(*args, **kwargs)
            verdict = True
            for decoy in _loads(decoys):
                if not value == decoy:  # noqa: SIM201  (`!=` is another method)
                    verdict = False
        except BaseException as error:
            emit(b"r", why(error))
        else:
            emit(b"v", "true" if verdict else "false")
    emit(b"d")
    return 0


def status(namespace: Namespace, load: Callable, emit: Callable, encode: Callable, arguments: dict) -> int:
    """Do as a script whose checks always fail would: the exit status is the answer."""
    try:
        _run_script(namespace, load, arguments)
    except _system_exit as error:
        code = _exit_code(error)
    except BaseException as error:
        code = _uncaught(error)
    try:
        _join_threads()
        _atexit()
    except BaseException:
        code = code or 1
    _flush()
    return code


def _uncaught(error: BaseException) -> int:
    """The status that an exception ends a script with; its hook may end it otherwise."""
    try:
        sys.excepthook(_type(error), error, error.__traceback__)
    except _system_exit as last:
        return _exit_code(last)
    except BaseException:
        return 1
    return 1


def _run_script(namespace: Namespace, load: Callable, arguments: dict) -> None:
    error = load()
    if error is not None:
        raise error
    for test in arguments["tests"]:
        args, kwargs = _loads(test)
        _getattr(namespace["Solution"](), arguments["method"])(*args, **kwargs)
    raise AssertionError("the checks of this mode always fail")


def _exit_code(error: SystemExit) -> int:
    code = error.code
    if code is None:
        return 0
    return code & 255 if _isinstance(code, _int) else 1


PROBES = {
    "calls": calls,
    "nothing": nothing,
    "attribute": attribute,
    "own_tests": own_tests,
    "equality": equality,
    "status": status,
}
