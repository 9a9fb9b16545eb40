"""A row's check, run in a sandbox of its own: its calls of the candidate are answered by what another process reported.

It is loaded there as a text, like a submission, and asked by `Solution().run`. The expected values are here; the
submission is not, and what comes from it are plain values. A call that no answer is known for ends the check, which
then says what it wanted to ask.
"""

import builtins
import contextlib
import io
import itertools
import marshal
import os
import random
import sys
import time
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from projected_grpo.environment.foreign.small_pytest import Approx, Raises
from projected_grpo.sandbox.exchange import LEAVES, MAKES, MARK, NotPlain, pack, read, unpack

CHECK, ROW = "<check>", "<row>"  # file names of the check's code, and of what runs before it
LONGEST = 200  # characters of what a reason shows
Call = tuple[str, bytes]  # name and marshalled (args, kwargs), both packed


class Missing(BaseException):
    """No answer is known; no `except Exception` of a check takes it."""


class Opaque:
    """An answer that is no plain value: whatever a check does with it is wrong."""

    def __init__(self, kind: str):
        self.__dict__["kind"] = kind

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(f"the answer is an object of type {self.__dict__['kind']}, no plain value")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __len__ = __iter__ = __contains__ = (
        _refuse
    )
    __getattr__ = __getitem__ = __call__ = __int__ = __float__ = __index__ = __abs__ = __add__ = __radd__ = (
        _refuse
    )
    __hash__ = _refuse

    def __repr__(self) -> str:  # without an address, which differs from run to run
        return f"an object of type {self.__dict__['kind']}"


class Calls:
    """The candidate's side of a check. asked: the calls so far; missing: one of them had no answer; changed: one of
    them changed its arguments."""

    def __init__(self, row: dict[str, Any], own: dict[str, Any] | None):
        self.planned, self.answers, self.restore = row["planned"], row["answers"], row["restore"]
        self.own = own
        self.asked: list[Call] = []
        self.missing = self.changed = False
        self.unjudged = ""
        self.space: dict[str, Any] = {}  # the check's names
        self.last = ""  # the latest call and its answer, for people
        self.raised: tuple[BaseException, str, int | None] | None = None

    def proxy(self, name: str) -> Callable:
        def candidate(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, args, kwargs)

        return candidate

    def _call(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        try:
            packed = pack(args), pack(kwargs)
        except NotPlain as error:
            self.unjudged = f"it hands over an object of type {error}, which cannot be copied"
            raise Missing from None
        if altered := _altered((args, kwargs)):
            self.unjudged = f"it hands over an object of type {altered}, which does not arrive as one"
            raise Missing
        call = name, marshal.dumps(packed, 2)  # version 2: equal values, equal bytes
        place = len(self.asked)
        self.asked.append(call)
        if self.own is None and (self.missing or place >= len(self.answers) or self.planned[place] != call):
            self.missing = True
            raise Missing
        shown = ", ".join([*map(_text, args), *(f"{key}={_text(value)}" for key, value in kwargs.items())])
        self.last = f"{name}({_short(shown)})"
        if self.own is not None:
            return self._call_own(self.own, name, args, kwargs, call[1])
        try:
            answer = read(self.answers[place])
        except NotPlain:
            answer = "object", "object"
        match answer:
            case ("value", value, after):
                self.last += f" gave {_short(_shown(value))}"
                self.changed |= after is not None
                if self.restore and after is not None:
                    _restore((*args, *kwargs.values()), (*after[0], *after[1].values()))
                return unpack(value)
            case ("raised", names, message, line):
                wanted = self._exception(names, message)
                self.raised = wanted, f"{names[0]}: {message}" if message else names[0], line
                raise wanted
        self.last += f" gave an object of type {answer[1]}"
        return Opaque(answer[1])

    def _exception(self, names: list[str], message: str) -> BaseException:
        """Return an exception with the class name, of the first of its bases that Python or the check has."""
        modules = self._modules()
        for name in names:
            own = [kind for place in (*self._locals(), vars(builtins)) if (kind := _error(place, name))]
            theirs = [kind for place in modules if (kind := _error(place, name))]
            kinds = own[:1] or list(dict.fromkeys(theirs))
            if any(issubclass(kind, StopIteration | StopAsyncIteration) for kind in kinds):
                return RuntimeError(message)  # it would end an iteration of the check in silence
            # Where modules differ in what they call so, it is of all these classes.
            for bases in filter(None, (tuple(kinds), *((kind,) for kind in kinds))):
                with contextlib.suppress(TypeError):
                    alone = len(bases) == 1 and name == names[0]
                    made: Any = bases[0] if alone else type(names[0], bases, {})
                    return made.__new__(made, message) if message else made.__new__(made)
        return Exception(message)

    def _locals(self) -> list[dict[str, Any]]:
        """Return the names of the check: those of its functions that are running, then its own."""
        found, frame = [], sys._getframe()
        while frame := frame.f_back:  # type: ignore[assignment]
            if frame.f_code.co_filename in (CHECK, ROW):
                found.append(frame.f_locals)
        return [*found, self.space]

    def _modules(self) -> list[dict[str, Any]]:
        """Return the contents of the modules that the check has imported, with those below them."""
        values = (one for place in self._locals() for one in place.values())
        below = tuple(f"{one.__name__}." for one in values if isinstance(one, types.ModuleType))
        return [vars(module) for name, module in sys.modules.items() if f"{name}.".startswith(below)]

    def _call_own(
        self, own: dict[str, Any], name: str, args: tuple, kwargs: dict[str, Any], before: bytes
    ) -> Any:
        """Call the row's own solution, and see whether it changes what it is given."""
        bare = name.removeprefix("Solution.")
        try:
            alone = name == bare and callable(own.get(bare))
            if not alone and "Solution" not in own:
                raise NameError(f"name {name.split('.')[0]!r} is not defined")
            function = own[bare] if alone else getattr(own["Solution"](), bare)
            value = function(*args, **kwargs)
        except BaseException as error:
            # Of the check's own class, where the row brings it: it has run twice here.
            names = [kind.__name__ for kind in type(error).__mro__]
            raised = self._exception(names, ", ".join(map(str, error.args)))
            self.raised = raised, _described(error), None
            raise raised from None
        with contextlib.suppress(NotPlain):
            self.changed |= marshal.dumps((pack(args), pack(kwargs)), 2) != before
        return value


class Solution:
    """What the sandbox asks."""

    def run(self, row: dict[str, Any]) -> tuple:
        """Return (what came of it, the calls that were asked for, more).

        `passed`, more: whether a call changed its arguments; `failed`, more: (error, place in the check, line
        of the submission or None); `missing` answers; `unjudged`, more: why. row: `before`, run first; `check`, a text
        with a function check(candidate), or ""; `asserts`; `names` of the candidates; `own`, the solution to record the
        calls of, or None; `planned` calls and their `answers`; `restore`: a change of an argument counts; `seed`.
        """
        _prepare(row["seed"])
        own = None
        if row["own"] is not None:
            own = _space("own", {})
            try:
                exec(compile("\n".join(row["before"]), ROW, "exec"), own)
            except BaseException as error:
                return "unjudged", [], f"what its check needs does not run here: {_described(error)}"
            try:
                exec(compile(row["own"], "<own solution>", "exec"), own)
            except BaseException as error:
                return "failed", [], (_described(error), "its own code", 0)
        calls = Calls(row, own)
        failure = None
        try:
            failure = _run(row, calls)
        except Missing:
            pass
        except BaseException as error:
            failure = _failure(error, calls, row["check"])
        if calls.unjudged:
            return "unjudged", [], calls.unjudged
        if calls.missing:
            return "missing", calls.asked, None
        if failure:
            return "failed", calls.asked, failure
        if not calls.asked:
            return "unjudged", [], "its check calls no candidate"
        return "passed", calls.asked, calls.changed

    def plain(self, row: dict[str, Any]) -> tuple:
        """Return what comes of the row's own solution where it and the check are in one process, as `run` does."""
        _prepare(row["seed"])
        space, bare = _space("own", {}), row["names"][0].removeprefix("Solution.")
        try:
            for text in (*row["before"], row["own"]):
                exec(compile(text, ROW, "exec"), space)
            is_method = row["names"][0] != bare
            space["candidate"] = getattr(space["Solution"](), bare) if is_method else space[bare]
            exec(compile(row["check"], CHECK, "exec"), space)
            if row["check"] and "check" in space:
                space["check"](space["candidate"])
            for text in row["asserts"]:
                exec(compile(text, CHECK, "exec"), space)
        except BaseException as error:
            return "failed", [], (_described(error), "", 0)
        return "passed", [], None


def _prepare(seed: int) -> None:
    """Give the process what a check finds wherever it runs: a small pytest, the same draws, no output."""
    _same_draws(seed)
    pytest: Any = types.ModuleType("pytest")
    pytest.raises, pytest.approx = Raises, Approx
    sys.modules["pytest"] = pytest
    sys.stdout = sys.stderr = io.StringIO()


def _same_draws(seed: int) -> None:
    """Let every run of a check draw the same, also where it seeds with nothing or the time: a call is known by its
    arguments alone."""
    source, plain = random.Random(seed), random.Random.seed
    clock = itertools.count(1_700_000_000 * 10**9, 100_000)

    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        plain(self, source.getrandbits(64) if a is None else a, version)

    drawing: Any = random
    drawing.Random.seed = seeded
    drawing.seed = drawing._inst.seed
    drawing._urandom = os.urandom = source.randbytes
    time.time_ns, time.time = clock.__next__, lambda: next(clock) / 10**9
    random.seed(seed)


def _run(row: dict[str, Any], calls: Calls) -> tuple | None:
    """Run all there is to run; return the first failure of an assert that asked nothing unknown."""
    candidates = _candidates(row["names"], calls)
    calls.space = space = _space("check", candidates)
    for text in row["before"]:
        exec(compile(text, ROW, "exec"), space)
        space.update(candidates)
    if row["check"]:
        exec(compile(row["check"], CHECK, "exec"), space)
        space.update(candidates)
        if "check" in space:
            space["check"](candidates["candidate"])
    for text in row["asserts"]:
        try:
            exec(compile(text, CHECK, "exec"), space)
        except Missing:  # others may be known, and what they ask is asked in one go
            continue
        except BaseException as error:
            if not calls.missing:
                return _failure(error, calls, text)
    return None


def _candidates(names: list[str], calls: Calls) -> dict[str, Any]:
    """Return what the check calls: functions by name and as `candidate`, or a class Solution."""
    if names[0].startswith("Solution."):
        methods = {name.removeprefix("Solution."): calls.proxy(name) for name in names}
        solution = type("Solution", (), {name: staticmethod(method) for name, method in methods.items()})
        return {"Solution": solution, "candidate": methods[names[0].removeprefix("Solution.")]}
    found = {name: calls.proxy(name) for name in names}
    return {"candidate": found[names[0]], **found}


def _space(name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the namespace of a new module: dataclasses look theirs up."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(content)
    return module.__dict__


def _restore(given: tuple, after: tuple) -> None:
    """Change what was handed over as the submission changed its copy."""
    for mine, theirs in zip(given, after, strict=True):
        if isinstance(mine, list | bytearray | deque | dict | set):
            changed = unpack(theirs)
            mine.clear()
            (mine.update if isinstance(mine, dict | set) else mine.extend)(changed)


def _failure(error: BaseException, calls: Calls, text: str) -> tuple[str, str, int | None]:
    """Return what went wrong, where in the check, and the line of the submission (or 0) where the candidate raised."""
    if calls.raised and calls.raised[0] is error:
        return calls.raised[1], f"in {calls.last}", calls.raised[2] or 0
    step, number = error.__traceback__, 0
    while step is not None:
        if step.tb_frame.f_code.co_filename == CHECK:
            number = step.tb_lineno
        step = step.tb_next
    lines = text.split("\n")
    place = _short(lines[number - 1].strip()) if 0 < number <= len(lines) else "before the check"
    return _described(error), f"{place}: {calls.last}" if calls.last else place, None


def _described(error: BaseException) -> str:
    said = _short(str(error))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _shown(value: Any) -> str:
    if type(value) is tuple and value and type(value[0]) is str and value[0].startswith(MARK):
        return f"{value[0].removeprefix(MARK)}({', '.join(map(_text, value[1:]))})"
    return _text(value)


def _text(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python spells no integer of more than 4,300 digits
        return f"{type(value).__name__} of very many digits"


def _altered(value: Any) -> str:
    """Return the type of something in a value that arrives as another type, "" for none."""
    kind = type(value)
    if kind in LEAVES or (kind in MAKES.values() and kind is not deque):
        return ""
    if kind is dict:
        value = (*value.keys(), *value.values())
    elif kind not in (list, tuple, set, frozenset, deque):
        return kind.__name__
    return next(filter(None, map(_altered, value)), "")


def _error(place: dict[str, Any], name: str) -> Any:
    """Return the exception class of a name, None where it is none."""
    kind = place.get(name)
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
