"""What a check has of pytest: `raises` and `approx`, by pytest's rules.

The file stands alone, for it runs where nothing can be imported but Python's own (`judge.IMPORTED`).
"""

import math
import re
from collections.abc import Callable, Sequence, Sized
from decimal import Decimal
from fractions import Fraction
from typing import Any

NUMBERS = (int, float, complex, Decimal, Fraction)


class Raises:
    """`pytest.raises`, as a context or with a function to call."""

    def __init__(
        self, kinds: Any, function: Callable | None = None, *args: Any, match: str = "", **kwargs: Any
    ):
        self.kinds, self.pattern = kinds, match
        self.value: BaseException | None = None
        self.type: Any = None
        if function is not None:
            with self:
                function(*args, **kwargs)

    def __enter__(self) -> "Raises":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> bool:
        if error is None:
            raise AssertionError(f"{self.kinds} was not raised")
        self.value, self.type = error, kind
        return isinstance(error, self.kinds) and re.search(self.pattern, str(error)) is not None

    def match(self, pattern: str) -> bool:
        assert re.search(pattern, str(self.value)), f"{pattern!r} is not in {str(self.value)!r}"
        return True


class Approx:
    """`pytest.approx`, of a number or of a sequence or dict of numbers; what is no number must be equal."""

    def __init__(self, expected: Any, rel: Any = None, abs: Any = None, nan_ok: bool = False):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def close(self, found: Any, expected: Any) -> bool:
        if isinstance(expected, bool) and not isinstance(found, bool):
            return False
        if found == expected or not all(isinstance(one, NUMBERS) for one in (found, expected)):
            return bool(found == expected)
        if found != found or expected != expected:
            return self.nan_ok and found != found and expected != expected
        if math.isinf(abs(expected)):
            return False
        # An absolute tolerance alone leaves no relative one.
        rel = 0 if self.rel is None and self.abs is not None else 1e-6 if self.rel is None else self.rel
        least = 1e-12 if self.abs is None else self.abs
        if isinstance(expected, Decimal):  # which takes no floats
            rel, least = Decimal(str(rel)), Decimal(str(least))
        return abs(found - expected) <= max(least, rel * abs(expected))

    def __eq__(self, other: Any) -> bool:
        if isinstance(self.expected, dict):
            same = isinstance(other, dict) and other.keys() == self.expected.keys()
            return same and all(self.close(other[key], value) for key, value in self.expected.items())
        if isinstance(self.expected, Sequence) and not isinstance(self.expected, str | bytes):
            same = isinstance(other, Sized) and len(other) == len(self.expected)
            return same and all(map(self.close, other, self.expected))
        return self.close(other, self.expected)

    __hash__ = None  # type: ignore[assignment]
