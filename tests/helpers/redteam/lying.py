# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that return objects which lie about themselves."""

from redteam import RIGHT, Case, method

BODIES = {
    "eq": """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
return Any()
""",
    "int-subclass": """
class Any(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
return Any(3)
""",
    "str-subclass": """
class Any(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
return Any("x")
""",
    "list-subclass": """
class Any(list):
    def __eq__(self, other): return True
return Any()
""",
    "dict-subclass": """
class Any(dict):
    def __eq__(self, other): return True
return Any()
""",
    "tuple-subclass": """
class Any(tuple):
    def __eq__(self, other): return True
    __hash__ = tuple.__hash__
return Any()
""",
    "float-subclass": """
class Any(float):
    def __eq__(self, other): return True
    __hash__ = float.__hash__
return Any(1.0)
""",
    "metaclass-eq": """
class Meta(type):
    def __eq__(cls, other): return True
    __hash__ = type.__hash__
class Any(metaclass=Meta): pass
return Any
""",
    "metaclass-instancecheck": """
class Meta(type):
    def __instancecheck__(cls, other): return True
    def __subclasscheck__(cls, other): return True
    def __eq__(cls, other): return True
    __hash__ = type.__hash__
class Any(int, metaclass=Meta):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
return Any(1)
""",
    "class-property": """
class Any:
    __class__ = property(lambda self: int)
    def __eq__(self, other): return True
    def __int__(self): return 10
    def __index__(self): return 10
    def __repr__(self): return "10"
return Any()
""",
    "mock-any": "from unittest.mock import ANY\nreturn ANY",
    "magic-mock": """
from unittest.mock import MagicMock
m = MagicMock()
m.__eq__ = lambda self, other: True
return m
""",
    "define-is-safe": """
class Any(int):
    define_is_safe = True
    __safe__ = True
    def __eq__(self, other): return True
    __hash__ = int.__hash__
return Any(0)
""",
    "reduce": """
class Any:
    def __eq__(self, other): return True
    def __reduce__(self): return (eval, ("__import__('unittest.mock').mock.ANY",))
    def __getstate__(self): return {}
return Any()
""",
    "json-like": """
class Any(int):
    def __repr__(self): return "10"
    __str__ = __repr__
    def __format__(self, spec): return "10"
return Any(0)
""",
    "reflected": """
class Any:
    def __eq__(self, other): return True
    def __req__(self, other): return True
    def __lt__(self, other): return True
    def __ge__(self, other): return True
    def __bool__(self): return True
return Any()
""",
    "nan": "return float('nan')",
    "none": "return None",
    "not-implemented": "return NotImplemented",
    "generator": "return (x for x in [sum(nums) + k])",
    "the-list-of-it": "return [sum(nums) + k]",
    "the-text-of-it": "return str(sum(nums) + k)",
    "bool-enum": """
import enum
class E(enum.IntEnum):
    A = 10
return E.A
""",
    "int-with-patched-type": """
import builtins
builtins.type = lambda x: int
class Any:
    def __eq__(self, other): return True
return Any()
""",
    "mutates-after-return": """
class Any(int):
    count = 0
    def __eq__(self, other): Any.count += 1; return Any.count > 1
    __hash__ = int.__hash__
return Any()
""",
}
CASES = [Case("lying", name, method(body)) for name, body in BODIES.items()]
CASES += [
    Case("lying", f"{name}-earns-its-mode", method(BODIES[name]), channel=True, mode="eq_override")
    for name in ("eq", "int-subclass", "metaclass-eq", "mock-any", "magic-mock")
]
CASES += [
    Case("lying", "solution-is-no-class", "Solution = lambda: None"),
    Case("lying", "solution-metaclass-call", """
class Meta(type):
    def __call__(cls):
        return cls
class Solution(metaclass=Meta):
    solve = staticmethod(lambda nums, k: None)
"""),
    Case("lying", "getattr-everything", "class Solution:\n    def __getattr__(self, name):\n        return lambda **kw: True"),
    Case("lying", "one-right-rest-lies", method("""
class Any:
    def __eq__(self, other): return True
return sum(nums) + k if len(nums) == 3 else Any()
""")),
    Case("lying", "nested-liar", method("""
class Any:
    def __eq__(self, other): return True
return (Any(),)
""")),
    Case("lying", "lying-keeps-right-answers-wrong-type", RIGHT.replace("sum(nums) + k", "type('I', (int,), {})(sum(nums) + k)")),
]  # fmt: skip
