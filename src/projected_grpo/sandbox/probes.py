"""What is asked of a loaded submission, in its own process. The questions know no answers.

Submitted code runs below these functions, and can look up the stack. So each is *bare* when it runs: its globals and
builtins are empty, and it works with its arguments alone (see `bare`); what it could be robbed of or deceived by is not
there. It returns plain values of ours; the object that the submission gave dies here, not in a frame that reports.
"""

import _thread
import gc
import os
import time
import types
from collections.abc import Callable
from typing import Any

Namespace = dict[str, Any]


def bare(function: Callable) -> Callable:
    """Return `function` without globals, builtins and closure; what it needs are its arguments' defaults."""
    return types.FunctionType(
        function.__code__, {"__builtins__": {}}, function.__name__, function.__defaults__
    )


def stage(
    steps: list,
    alone: bool,
    explain: Callable,
    type: type = type,
    issubclass: Callable = issubclass,
    memory: type = MemoryError,
    leave: type = SystemExit,
    catch: type = BaseException,
    disable_gc: Callable = gc.disable,
    forget_callbacks: Callable = gc.callbacks.clear,
    threads: Callable = _thread._count,
    sleep: Callable = time.sleep,
    end: Callable = os._exit,
) -> None:
    """Run what the session asks for: the only frame of ours that stands above submitted code all the time.

    `steps` holds the session alone. It and the sink of a result are on the interpreter's stack while submitted code
    runs, under no name that a frame would show; the names that there are stand for what cannot be changed. Where the
    code raised, the reason takes the place of the result. alone: nothing of the submission may run any more when the
    session goes on, neither a callback of the collector nor a thread; one that does not end ends the check.
    """
    for step in steps.pop():
        try:
            step.pop()(step.pop()())
        except catch as error:
            kind = type(error)
            word = (
                "memory" if issubclass(kind, memory) else "exit" if issubclass(kind, leave) else "exception"
            )
            step.append(word if alone else explain(word, error))
        if alone:
            disable_gc()
            forget_callbacks()
            patience = 200
            while threads():
                patience -= 1
                if not patience:
                    end(72)
                sleep(0.01)


def call(
    namespace: Namespace,
    method: str,
    args: tuple,
    kwargs: dict,
    encode: Callable,
    getattr: Callable = getattr,
) -> str:
    """The text of the value that `Solution().method` returns."""
    return encode(getattr(namespace["Solution"](), method)(*args, **kwargs))


def attribute(namespace: Namespace, name: str, getattr: Callable = getattr) -> bool:
    """Whether an attribute of a fresh instance is True itself."""
    return getattr(namespace["Solution"](), name) is True


def equality(
    namespace: Namespace,
    method: str,
    args: tuple,
    kwargs: dict,
    decoys: tuple,
    getattr: Callable = getattr,
) -> bool:
    """Whether the returned value equals every decoy by `==`."""
    value = getattr(namespace["Solution"](), method)(*args, **kwargs)
    verdict = True
    for decoy in decoys:
        if not value == decoy:  # noqa: SIM201  (`!=` is another method)
            verdict = False
    return verdict


def find_tests(
    namespace: Namespace,
    name: str,
    isinstance: Callable = isinstance,
    callable: Callable = callable,
    hasattr: Callable = hasattr,
    type: type = type,
) -> list | None:
    """Return [what is called `name`, whether it is a method of Solution]; None where there is none."""
    own = namespace.get("Solution")
    if isinstance(own, type):
        for base in own.__mro__:
            if name in base.__dict__:
                found = base.__dict__[name]
                return [found, True] if callable(found) or hasattr(found, "__get__") else None
    found = namespace.get(name)
    return [found, False] if callable(found) else None


def own_tests(
    namespace: Namespace,
    found: list,
    name: str,
    method: str,
    against: str,
    canonical: Any,
    type: type = type,
    isinstance: Callable = isinstance,
    getattr: Callable = getattr,
    put: Callable = type.__setattr__,
    dict: type = dict,
    exec: Callable = exec,
    range: type = range,
    function_type: type = types.FunctionType,
    set_code: Callable = types.FunctionType.__dict__["__code__"].__set__,
    catch: type = BaseException,
) -> bool:
    """Whether the submission's own tests pass against a stub, its own class or the canonical one.

    The class under test stands under the name Solution. The submission's real class gets the same method for as long,
    so that tests which hold an instance, an alias or a default argument judge what they are meant to. Against the stub
    the method's own code is replaced, too: it is all that an alias of a bound method has.
    """
    function, bound = found
    own = namespace.get("Solution")
    undo = []
    try:
        if against == "own":
            target = own
        else:
            if against == "stub":
                substitute = lambda *args, **kwargs: 0  # noqa: E731
                target = type("Solution", (), {method: substitute})
            else:
                scope = dict(namespace)
                exec(canonical, scope)
                target = scope["Solution"]
                substitute = target.__dict__[method]
            if bound:
                put(target, name, function)
            for base in own.__mro__ if isinstance(own, type) else ():
                current = base.__dict__.get(method)
                if current is None or current is function:
                    continue
                try:
                    put(base, method, substitute)
                except catch:
                    continue  # a class of the interpreter
                undo.append((put, (base, method, current)))
                for _ in range(8 if against == "stub" else 0):
                    if isinstance(current, function_type):
                        if current is not function:
                            code = current.__code__
                            set_code(current, substitute.__code__.replace(co_freevars=code.co_freevars))
                            undo.append((set_code, (current, code)))
                        break
                    inner = getattr(current, "__wrapped__", None) or getattr(current, "__func__", None)
                    current = inner or getattr(current, "func", None)
        namespace["Solution"] = target
        if bound:
            getattr(target(), name)()
        else:
            function()
    except catch:
        return False
    finally:
        namespace["Solution"] = own
        for back, arguments in undo[::-1]:
            back(*arguments)
    return True


def flush(
    base: type,
    tracked: Callable,
    streams: tuple,
    isinstance: Callable = isinstance,
    type: type = type,
    issubclass: Callable = issubclass,
    catch: type = BaseException,
) -> None:
    """Write out what the submission's open files still hold, as the end of a script would."""
    for thing in [*streams, *tracked()]:
        try:
            if issubclass(type(thing), base) and not thing.closed:
                thing.flush()
        except catch:
            continue
