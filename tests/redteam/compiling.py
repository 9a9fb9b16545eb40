# ruff: noqa: E501  (submissions are kept as they would be written)
"""Texts that a parser, a compiler or what walks a syntax tree chokes on: a verdict of their own, none of the batch."""

BIG = 100_000
SHAPES = {
    "lambdas": lambda n: "x = " + "lambda: " * n + "1",
    "parentheses": lambda n: "x = " + "(" * n + "1" + ")" * n,
    "calls": lambda n: "f = lambda x=0: x\nx = " + "f(" * n + ")" * n,
    "subscripts": lambda n: "x = a" + "[0]" * n,
    "attributes": lambda n: "x = a" + ".b" * n,
    "lists": lambda n: "x = " + "[" * n + "]" * n,
    "dicts": lambda n: "x = " + "{1: " * n + "1" + "}" * n,
    "comprehensions": lambda n: "x = " + "[y for y in " * n + "[]" + "]" * n,
    "conditionals": lambda n: "x = " + "1 if 1 else " * n + "0",
    "nots": lambda n: "x = " + "not " * n + "1",
    "powers": lambda n: "x = " + "1 ** " * n + "1",
    "strings": lambda n: "x = " + "'a' " * n,
    "f-strings": lambda n: "x = " + "f'{" * min(n, 200) + "1" + "}'" * min(n, 200),
    "f-string-expressions": lambda n: "x = f'" + "{1}" * n + "'",
    "decorators": lambda n: "d = lambda f: f\n" + "@d\n" * n + "def g(): pass",
    "lambda-defaults": lambda n: "x = " + "lambda a=" * n + "1" + ": 1" * n,
    "nested-functions": lambda n: (
        "".join(" " * i + "def f():\n" for i in range(min(n, 99))) + " " * 99 + "pass"
    ),
    "nested-classes": lambda n: (
        "".join(" " * i + "class A:\n" for i in range(min(n, 99))) + " " * 99 + "pass"
    ),
    "with-items": lambda n: "with " + "a, " * n + "a: pass",
    "comparisons": lambda n: "x = " + "1 < " * n + "2",
    "ands": lambda n: "x = " + "1 and " * n + "2",
    "stars": lambda n: "x = [" + "*[], " * n + "]",
    "elifs": lambda n: "if 0: pass\n" + "elif 0: pass\n" * n,
    "patterns": lambda n: "match 1:\n case " + "(" * n + "1" + ")" * n + ": pass",
    "pattern-alternatives": lambda n: "match 1:\n case " + "1 | " * n + "1: pass",
    "globals": lambda n: "def f():\n global " + ", ".join(f"a{i}" for i in range(n)),
    "arguments": lambda n: "def f(" + ", ".join(f"a{i}" for i in range(n)) + "): pass",
    "annotations": lambda n: "x: " + "a[" * n + "]" * n,
    "yields": lambda n: "def f():\n x = " + "(yield " * n + ")" * n,
    "walrus": lambda n: "x = " + "(y := " * n + "1" + ")" * n,
    "semicolons": lambda n: "x = 1; " * n,
    "backslashes": lambda n: "x = 1 + \\\n" * n + "1",
    "unterminated": lambda n: "x = " + "'''" + "a\n" * n,
    "big-constant": lambda n: f"x = 1 << {n}00000\ny = 'a' * {n}0000\nz = (1,) * {n}000",
    "digits": lambda n: "x = 0x" + "f" * n,
    "names": lambda n: "x = '\\N{LATIN SMALL LETTER A}' * " + "1" * (n > 0) + "\n" * n,
}
# Whether a text compiles is the compiler's to say; each is expected to do as compile() does, in any case to be judged.
TEXTS = {f"{name}-{size}": shape(size) for name, shape in SHAPES.items() for size in (90, 1200, BIG)}
ODD = {
    "only-nul": "\0" * 1000,
    "lone-surrogates": "'" + "\ud800" * 100 + "'",
    "bidi": "x = '\u202e\u2066'\n# \u2029",
    "byte-order-mark": "\ufeffx = 1",
    "vertical-tabs": "\x0b\x0cx = 1",
    "combining-names": "ｅ = 1\nе = 2\nªº = 3",
    "non-ascii-error": "raise ValueError('\u2603' * 10**6)",
    "non-ascii-class": "class Ünicode(Exception): pass\nraise Ünicode('\ud83d')",
    "eight-megabytes-of-error": "raise ValueError('x' * (8 << 20))",
    "error-that-lies": "class E(Exception):\n    def __str__(self): raise E\n    __repr__ = __str__\n    @property\n    def args(self): raise E\n    __class__ = property(lambda self: 1 / 0)\nraise E",
    "error-whose-type-lies": "class M(type):\n    def __getattribute__(cls, name): raise KeyError\n    def __subclasscheck__(cls, other): return True\nclass E(Exception, metaclass=M): pass\nraise E",
    "deep-error-chain": "e = None\nfor _ in range(10**5):\n    n = ValueError(); n.__cause__ = e; e = n\nraise e",
    "exception-group": "e = ValueError()\nfor _ in range(10**4): e = ExceptionGroup('x', [e])\nraise e",
    "generator-exit": "raise GeneratorExit",
    "stop-iteration": "raise StopIteration",
    "recursion-limit-of-one": "import sys\nsys.setrecursionlimit(5)",
    "memory-error": "raise MemoryError('\u2603')",
    "status-70": "import os\nos._exit(70)",
    "status-72": "import os\nos._exit(72)",
}
