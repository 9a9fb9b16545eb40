"""Call a function of a submission for a check that runs in another process.

Arguments and answers cross by copy, what was changed in the arguments with them: the check sees what it would see had
it called the function itself, and the submission sees nothing of the check. It can forge here whatever it could return.
"""

from collections.abc import Callable
from typing import Any

from projected_grpo.sandbox.exchange import NotPlain, pack, unpack
from projected_grpo.sandbox.reasons import line_of, message_of
from projected_grpo.sandbox.values import encode


def answer(namespace: dict[str, Any], name: str, args: tuple, kwargs: dict[str, Any]) -> str:
    """Return the text of ("value", what was returned, changed arguments or None), ("raised", names of the exception's
    class and its bases, message, line) or ("object", name of its type) where that is no plain value.

    name: `f`, a function of the module or else a method of Solution; or `Solution.f`, the method alone.
    """
    args, kwargs = unpack(args), unpack(kwargs)
    before = encode((pack(args), pack(kwargs)))
    try:
        value = _find(namespace, name)(*args, **kwargs)
        value = pack(value)
    except (NotPlain, RecursionError) as error:
        if type(error) is NotPlain:
            return encode(("object", str(error)[:100]))
        return _raised(error)
    except BaseException as error:
        return _raised(error)
    try:
        after = (pack(args), pack(kwargs))
    except (NotPlain, RecursionError):
        after = None
    return encode(("value", value, after if after is not None and encode(after) != before else None))


def _find(namespace: dict[str, Any], name: str) -> Callable:
    bare = name.removeprefix("Solution.")
    if name == bare and callable(namespace.get(name)):
        return namespace[name]
    if "Solution" not in namespace:
        raise NameError(f"name '{name.split('.')[0]}' is not defined")
    return getattr(namespace["Solution"](), bare)


def _raised(error: BaseException) -> str:
    names = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    return encode(("raised", names, message_of(error), line_of(error)))
