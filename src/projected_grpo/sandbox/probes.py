"""What is asked of a loaded submission, in its own process. The questions know no answers.

Submitted code runs below what stands here, can look up the stack, and (from Python 3.13 on) write into what it finds
there. So a function that stands above it is *bare*: no globals, no builtins, no closure, and nothing among its locals
that decides. What decides is put together of C functions, which have no frame.
"""

import gc
import os
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import compress, repeat, takewhile
from operator import call, eq, getitem, is_, methodcaller
from typing import Any

Namespace = dict[str, Any]
PATIENCE = 200  # looks, of 10 ms, for the end of a submission's threads
RECURSION = 1000
compose = map  # of C functions: what `map(f, [x])` yields is f(x), and no frame of ours sees either


def bare(function: Callable, **constants: Any) -> Callable:
    """Return `function` without globals, builtins and closure; a text among its constants stands for what it names."""
    code = function.__code__
    code = code.replace(co_consts=tuple(constants.get(c, c) if type(c) is str else c for c in code.co_consts))
    return types.FunctionType(code, {"__builtins__": {}}, function.__name__, function.__defaults__)


def stage(steps: list) -> None:
    """Run what a session asks for: the only frame of ours that stands above submitted code all the time.

    steps: two iterators, of which the first holds the second, and that calls what the session yields. They are on the
    interpreter's stack while submitted code runs, under no name that a frame would show. Whatever comes through ends
    the check before the session could be woken by it.
    """
    for _ in steps.pop():
        try:
            for _ in steps.pop():
                pass
        except:  # noqa: E722
            # A constant that is called draws a warning.
            ("END" or None)(72)  # type: ignore[misc, operator]  # noqa: SIM222


def staged(session: Iterator) -> partial:
    """Return the stage with `session` on it, to be called from a frame that holds nothing."""
    calls = map(call, session)
    return partial(_stage, [calls, compress([None], repeat(calls))])


def attempt(
    run: Callable,
    type: type = type,
    issubclass: Callable = issubclass,
    memory: type = MemoryError,
    leave: type = SystemExit,
    catch: type[BaseException] = BaseException,
) -> str | None:
    """Run it; return None, or in a word why it raised. What is returned is a constant, whoever meddles."""
    try:
        run()
    except catch as error:
        kind = type(error)
        if issubclass(kind, memory):
            return "memory"
        if issubclass(kind, leave):
            return "exit"
        return "exception"
    return None


def answer(
    run: Callable,
    explain: Callable,
    type: type = type,
    issubclass: Callable = issubclass,
    memory: type = MemoryError,
    leave: type = SystemExit,
    catch: type[BaseException] = BaseException,
) -> tuple[bool, Any]:
    """Run it; return (True, its value) or (False, the reason why it raised). For what is judged elsewhere."""
    try:
        return True, run()
    except catch as error:
        kind = type(error)
        word = "memory" if issubclass(kind, memory) else "exit" if issubclass(kind, leave) else "exception"
        return False, explain(word, error)


def passes(tests: Callable | None, catch: type[BaseException] = BaseException) -> bool | None:
    """Run the tests; return whether they raise nothing, None where there are none."""
    if tests is None:
        return None
    try:
        tests()
    except catch:
        return False
    return True


def guard(runs: list, catch: type[BaseException] = BaseException) -> None:
    """Run the one thing in `runs`, which no name leads to meanwhile, whatever it raises."""
    try:  # noqa: SIM105  (it has no names)
        runs.pop()()
    except catch:
        pass


def undisturbed(question: Iterator, found: list, threads: Callable[[], int]) -> Callable:
    """Return what puts the one value of `question` into `found`, and ends with nothing of the submission running.

    All steps but the second are C functions: between them and the session no Python runs, so nothing can start again.
    threads: 0 where this process has a single thread, by the kernel's word.
    """
    looks = takewhile(bool, map(call, repeat(threads, PATIENCE)))
    steps: list[Callable[[], Any]] = [
        gc.enable,
        partial(_guard, [partial(next, map(found.append, question))]),
        gc.disable,
        gc.callbacks.clear,
        # A thread may have made it so low that nothing of ours could run.
        partial(next, map(sys.setrecursionlimit, map(max, map(call, [sys.getrecursionlimit]), [RECURSION]))),
        partial(deque, map(time.sleep, compress(repeat(0.01), looks)), 0),
        gc.disable,
        partial(deque, map(os._exit, filter(None, map(call, [threads]))), 0),
    ]
    return partial(deque, map(call, steps), 0)


def instance(namespace: Namespace) -> Iterator:
    """Yield a fresh `Solution()`."""
    return compose(call, compose(getitem, [namespace], ["Solution"]))


def returned(namespace: Namespace, method: str, args: tuple, kwargs: dict) -> Iterator:
    """Yield what `Solution().method` returns."""
    return compose(methodcaller(method, *args, **kwargs), instance(namespace))


def attribute(namespace: Namespace, name: str) -> Iterator:
    """Yield whether an attribute of a fresh instance is True itself."""
    return compose(is_, compose(getattr, instance(namespace), [name]), [True])


def equality(namespace: Namespace, method: str, args: tuple, kwargs: dict, decoys: tuple) -> Iterator:
    """Yield whether the returned value equals every decoy by `==`."""
    compared = compose(map, [eq], compose(repeat, returned(namespace, method, args, kwargs)), [decoys])
    return compose(all, compared)


def own_tests(namespace: Namespace, name: str, method: str, canonical: tuple | None) -> Iterator:
    """Yield whether the submission's own tests pass, None where there are none.

    canonical: None, and they run on the submission's class; (None, None), on a stub whose method returns 0; or
    (code, namespace), on the solution that the code defines there.
    """
    return compose(_passes, compose(call, [partial(_find_tests, namespace, name, method, canonical)]))


def find_tests(
    namespace: Namespace,
    name: str,
    method: str,
    against: tuple | None,
    type: type = type,
    isinstance: Callable = isinstance,
    callable: Callable = callable,
    hasattr: Callable = hasattr,
    getattr: Callable = getattr,
    put: Callable = type.__setattr__,
    exec: Callable = exec,
    range: type = range,
    wrappers: tuple = (staticmethod, classmethod),
    function_type: type = types.FunctionType,
    set_code: Callable = types.FunctionType.__dict__["__code__"].__set__,
    catch: type[BaseException] = BaseException,
) -> Callable | None:
    """Return the submission's tests, ready to run (see `own_tests`); None where there are none.

    Under the name Solution then stands a subclass of the real class with another method, so that helpers, state and
    `super()` are there. The real class gets that method, too, so that tests which hold an instance, an alias or a
    default argument judge what they are meant to. Against the stub the method's own code is replaced: it is all that
    an alias of a bound method has.
    """
    own: Any = namespace.get("Solution")
    bases = own.__mro__ if isinstance(own, type) else ()
    found, bound = namespace.get(name), False
    for base in bases:
        if name in base.__dict__:
            found, bound = base.__dict__[name], True
            break
    if not callable(found) and not (bound and hasattr(found, "__get__")):
        return None
    if against is None:
        return getattr(own(), name) if bound else found
    code, scope = against
    if code is None:
        substitute = lambda *args, **kwargs: 0  # noqa: E731
    else:
        exec(code, scope)
        solution = scope["Solution"]
        substitute = lambda self, *args, **kwargs: getattr(solution(), method)(*args, **kwargs)  # noqa: E731
        for base in bases:
            if isinstance(base.__dict__.get(method), wrappers):
                wrap = type(base.__dict__[method])
                bare_call = lambda *args, **kwargs: getattr(solution(), method)(*args, **kwargs)  # noqa: E731
                substitute = wrap(bare_call if wrap is wrappers[0] else substitute)
                break
    if isinstance(substitute, function_type):  # as one of the module, for what looks for tests in docstrings
        closure = substitute.__closure__
        substitute = function_type(substitute.__code__, namespace, method, None, closure)
        substitute.__doc__ = getattr(getattr(own, method, None), "__doc__", None)
    of_class = False
    for base in bases:
        current = base.__dict__.get(method)
        if current is None or current is found:
            continue
        of_class = True
        try:
            put(base, method, substitute)
        except catch:
            continue  # a class of the interpreter
        for _ in range(8 if code is None else 0):
            if isinstance(current, function_type):
                if current is not found:
                    freevars = current.__code__.co_freevars
                    set_code(current, substitute.__code__.replace(co_freevars=freevars))
                break
            inner = getattr(current, "__wrapped__", None) or getattr(current, "__func__", None)
            current = inner or getattr(current, "func", None)
    try:
        if bases and not of_class:  # instances bring it: whoever asks one for it gets the other
            get = own.__getattribute__
            ask = lambda self, wanted: (  # noqa: E731
                substitute.__get__(self) if wanted == method else get(self, wanted)
            )
            put(own, "__getattribute__", ask)
        target = type(
            "Solution",
            (own,) if bases else (),
            {method: substitute, "__doc__": getattr(own, "__doc__", None)},
        )
    except catch:  # it lets no class be derived
        target = type("Solution", (), {method: substitute})
        if bound:
            put(target, name, found)
    namespace["Solution"] = target
    return getattr(target(), name) if bound else found


def flush(
    base: type,
    tracked: Callable,
    streams: tuple,
    isinstance: Callable = isinstance,
    type: type = type,
    issubclass: Callable = issubclass,
    catch: type[BaseException] = BaseException,
) -> None:
    """Write out what the submission's open files still hold, as the end of a script would."""
    for thing in [*streams, *tracked()]:
        try:
            if issubclass(type(thing), base) and not thing.closed:
                thing.flush()
        except catch:
            continue


# Made once, ahead of the fork.
_stage = bare(stage, END=os._exit)
_guard, _passes, _find_tests = bare(guard), bare(passes), bare(find_tests)
