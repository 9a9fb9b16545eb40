"""Seeded damage to configs and questions: what a slip of a hand, an editor or ill will makes of a YAML file."""

import copy
import random

import yaml

TEXTS = [
    "", " ", "x", "041", "1e3", "null", "../..", "~", "/", "a/b", "{x}", "ünï", "\u202etxt", "a\nb", "a\tb", "🙂",
    "x" * 300, "x" * 5000, "\x85", "$schema", "none", "small", "own_mode", "random", "run_tests", "R5", "aa",
]  # fmt: skip
NUMBERS = [
    -1, 0, 1, 2, 3, 7, 10**4, 10**6, 10**9, 2**63, 2**64, 10**30, -(10**9), 0.5, 1.5, -0.1, 1e-300, 1e300,
    float("nan"), float("inf"),
]  # fmt: skip
OTHERS = [None, True, False, [], {}, [1], ["x"], {"a": 1}, [[1]], [None], {"": 1}]
LINES = [
    "\t", "a: b: c", "- x", "? [a]", "<<: *x", "&x", "x: 041", "x: 1:30", "x: yes", "x: 2020-01-01", "%YAML 1.2",
    "x: !!python/object:os.system ls", "x: {", "\ufeff", "--- ", "... ", "seeds: [041]", "seeds: [1:30]", "\x07",
]  # fmt: skip


def places(value, path=()):
    """Every key path below `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here for key, item in inner for here in ((*path, key), *places(item, (*path, key)))]


def get(value, path):
    for key in path:
        value = value[key]
    return value


def change(tree, rng):
    """Damage one place of a parsed file in one way."""
    path = rng.choice(places(tree))
    parent, key = get(tree, path[:-1]), path[-1]
    kind = rng.choice(
        ("delete", "retype", "retype", "number", "rename", "nest", "swap", "copy", "deep", "long")
    )
    if kind == "delete":
        del parent[key]
    elif kind == "retype":
        parent[key] = copy.deepcopy(rng.choice([*TEXTS, *OTHERS]))
    elif kind == "number":
        parent[key] = rng.choice(NUMBERS)
    elif kind == "rename" and isinstance(parent, dict):
        at = rng.randrange(len(key) + 1) if isinstance(key, str) else 0
        new = rng.choice(
            [str(key)[:at] + str(key)[at + 1 :], str(key) + "s", rng.choice([*TEXTS, 3, 0.5, None, True])]
        )
        parent[new] = parent.pop(key)
    elif kind == "nest":
        parent[key] = rng.choice([[parent[key]], {str(key): parent[key]}])
    elif kind == "swap":
        other = rng.choice(places(tree))
        if other[: len(path)] != path and path[: len(other)] != other:
            a, b = copy.deepcopy(get(tree, path)), copy.deepcopy(get(tree, other))
            get(tree, path[:-1])[key], get(tree, other[:-1])[other[-1]] = b, a
    elif kind == "copy":
        value = copy.deepcopy(parent[key])
        if isinstance(parent, list):
            parent.extend([value] * rng.choice((1, 3)))
        else:
            parent[rng.choice((f"{key}_2", str(key).upper(), "x"))] = value
    elif kind == "deep":
        for _ in range(rng.choice((3, 50, 150))):
            parent[key] = [parent[key]] if rng.random() < 0.5 else {"x": parent[key]}
    elif kind == "long":
        parent[key] = rng.choice(([1] * 20_000, ["x"] * 20_000, {f"k{i}": i for i in range(5_000)}))


def bomb(lists):
    """Aliases of aliases: a few lines that stand for 10^12 values."""
    lines = ["bomb0: &b0 [x, x]" if lists else "bomb0: &b0 {x: 1, y: 2}"]
    for i in range(40):
        inner = f"[*b{i}, *b{i}]" if lists else f"{{x: *b{i}, y: *b{i}}}"
        lines.append(f"bomb{i + 1}: &b{i + 1} {inner}")
    return lines


def scratch(text, rng):
    """Damage the text itself."""
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    kind = rng.choice(("drop", "twice", "insert", "indent", "character", "cut", "bomb", "self", "deep"))
    if kind == "drop":
        del lines[at]
    elif kind == "twice":
        lines.insert(at, lines[at])
    elif kind == "insert":
        lines.insert(at, rng.choice(LINES))
    elif kind == "indent":
        lines[at] = rng.choice(("  ", " ", "\t")) + lines[at]
    elif kind == "character":
        place = rng.randrange(len(lines[at]) + 1)
        lines[at] = (
            lines[at][:place] + rng.choice("\t:,[]{}&*!|>'\"%@`#\x00\x07\x85\ufffe🙂") + lines[at][place:]
        )
    elif kind == "cut":
        lines = [*lines[:at], lines[at][: rng.randrange(len(lines[at]) + 1)]]
    elif kind == "bomb":
        lines += bomb(lists=rng.random() < 0.5)
    elif kind == "self":
        lines.append("loop: &loop [*loop]")
    elif kind == "deep":
        lines.append("deep: " + "[" * 3_000 + "]" * 3_000)
    return "\n".join(lines) + "\n"


def mutant(text, seed):
    """The text of a YAML file, damaged in one to three places; equal for an equal seed."""
    rng = random.Random(seed)
    if rng.random() < 0.3:
        return scratch(text, rng)
    tree = yaml.load(text, Loader=yaml.CSafeLoader)
    for _ in range(rng.choice((1, 1, 2, 3))):
        change(tree, rng)
    return yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
