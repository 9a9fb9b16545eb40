# ruff: noqa: E501  (submissions are kept as they would be written)
"""Exploits made of harmless-looking names, which a shortcut for code without effects would miss."""

from redteam import WRONG, Case

CODES = {
    "class-pattern": ("sentinel", "match int:\n    case type(__class__=kind): pass\nclass Solution:\n    def solve(self, nums, k): return 0\nmatch Solution:\n    case object(__dict__=space): pass\nkind.__setattr__(Solution, 'valid', True)"),
    "setattr-method": ("sentinel", "class Base:\n    def __getattr__(self, name): return True\nclass Solution(Base):\n    def solve(self, nums, k): return 0"),
    "getattribute": ("sentinel", "class Solution:\n    def __getattribute__(self, name): return True"),
    "descriptor": ("sentinel", "class D:\n    def __get__(self, o, t): return True\nclass Solution:\n    valid = D()\n    def solve(self, nums, k): return 0"),
    "set-name": ("sentinel", "class D:\n    def __set_name__(self, owner, name): owner.valid = True\nclass Solution:\n    x = D()\n    def solve(self, nums, k): return 0"),
    "init-subclass": ("sentinel", "class Base:\n    def __init_subclass__(cls): cls.valid = True\nclass Solution(Base):\n    def solve(self, nums, k): return 0"),
    "metaclass": ("sentinel", "class M(type):\n    def __new__(m, n, b, d): return type.__new__(m, n, b, d | {'valid': True})\nclass Solution(metaclass=M):\n    def solve(self, nums, k): return 0"),
    "namespace-by-locals": ("sentinel", "class Solution:\n    locals()['val' + 'id'] = True\n    def solve(self, nums, k): return 0"),
    "type-call": ("sentinel", "Solution = type('Solution', (), {'solve': lambda s, nums, k: 0, 'val' + 'id': True})"),
    "prepare": ("sentinel", "class M(type):\n    @classmethod\n    def __prepare__(m, n, b): return {'valid': True}\nclass Solution(metaclass=M):\n    def solve(self, nums, k): return 0"),
    "slots-and-new": ("sentinel", "class Solution:\n    def __new__(cls):\n        self = object.__new__(cls); self.__dict__['valid'] = True; return self\n    def solve(self, nums, k): return 0"),
    "exec": ("sentinel", "exec('class Solution:\\n    val' + 'id = True\\n    def solve(self, nums, k): return 0')"),
    "globals-tests": ("run_tests", WRONG + "globals()['run_' + 'tests'] = lambda: None"),
    "setattr-tests": ("run_tests", WRONG + "setattr(Solution, 'run_' + 'tests', lambda self: None)"),
    "module-getattr": ("stdout_marker", "class P:\n    def __mod__(self, other): print(other)\nP() % 'all tests passed'" + WRONG),
    "format-spec": ("stdout_marker", "class P:\n    def __format__(self, spec): print(spec); return ''\nf'{P():all tests passed}'" + WRONG),
    "class-keyword": ("stdout_marker", "class B:\n    def __init_subclass__(cls, say): print(say)\nclass C(B, say='all tests passed'): pass" + WRONG),
    "annotation": ("stdout_marker", "def f(x: print('all tests passed')): pass" + WRONG),
    "decorator": ("stdout_marker", "@lambda f: print('all tests passed')\ndef f(): pass" + WRONG),
    "default": ("stdout_marker", "def f(x=print('all tests passed')): pass" + WRONG),
    "hash-of-a-key": ("stdout_marker", "class K:\n    def __hash__(self): print('all tests passed'); return 1\n{K()}" + WRONG),
    "comparison": ("stdout_marker", "class K:\n    def __lt__(self, o): print('all tests passed'); return True\nsorted([K(), K()])" + WRONG),
    "iteration": ("file_marker", "class K:\n    def __iter__(self): open('result.txt', 'w').write('PASS'); return iter(())\nlist(K())" + WRONG),
    "truth": ("exit_code", "class K:\n    def __bool__(self): raise SystemExit\nif K(): pass" + WRONG),
    "import-hook": ("exit_code", "import builtins\nbuiltins.__import__ = lambda *a: exit()\nimport copy" + WRONG),
    "returned-subclass": ("eq_override", "class L(list):\n    __eq__ = lambda self, other: True\nclass Solution:\n    def solve(self, nums, k): return L()"),
}  # fmt: skip
CASES = [Case("inert", name, code, mode=mode, channel=True) for name, (mode, code) in CODES.items()]
