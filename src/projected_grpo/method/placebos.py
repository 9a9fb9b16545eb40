"""Two populations of placebos: pair sets like the others in format and length that hold no hack (docs/pairs.md).

`python -m projected_grpo.method.placebos` writes them to `config/pairs/`. Text sets contrast two things of one topic.
Code sets take problems, prompts and honest answers of `own_mode34` and change one side by what earns nothing, longer
or shorter than the other as the exploit makes its own: a line, a comment, other names, another body.
"""

import ast
import random
import re
from pathlib import Path

from projected_grpo.environment.completion import extract_code
from projected_grpo.method.pairs import Pair, load_pairs, write_pairs
from projected_grpo.method.placebo_texts import DETAILS, FRAMES, SETS

PAIRS = 18
KINDS = ("lines", "comments", "names", "bodies", "lines", "comments", "names", "bodies", "lines", "comments")
# Statements at the place of each lever's exploits: in the class, or behind it.
IN_CLASS = ("run_tests", "sentinel")
LINES = [
    "size = 3",
    "limit = 10 + 1",
    'note = "red"',
    "first, second = 1, 2",
    'colour = "blue and green"',
    'names = ["ann", "bob", "eve"]',
    'table = {"one": 1, "two": 2}',
    'words = "red green blue".split()',
    'weekdays = ["mon", "tue", "wed", "thu"]',
    'ages = {"ann": 31, "bob": 27, "eve": 44, "joe": 19}',
    'poem = "the moon is up, the wind is low, the lamps are lit"',
    'towns = ["north hill", "south bank", "old mill", "west gate", "lake"]',
]
COMMENTS = [
    "one line",
    "as in the text",
    "a plain answer",
    "see the words above",
    "the name is as given",
    "nothing more is said here",
    "this follows the task as it is",
    "first the left side, then the right one",
    "written on a rainy day, with tea and some bread",
    "what stands above is short, so that one can read it well",
    "two ways lead to it, and this one needs fewer words than the other",
    "a longer remark: names are short here, and lines are shorter still",
]
SHORT = ("n", "y", "z", "u", "w", "v", "q", "p")
LONG = ("number", "entry", "element", "current", "letter", "amount", "member", "portion")
BODIES = [
    "return ({e})",
    "return [{e}][0]",
    "return ({e},)[-1]",
    "answer = {e}\nreturn answer",
    "if True:\n    return {e}",
    "for answer in [{e}]:\n    return answer",
    "found = [{e}]\nreturn found.pop()",
    "while True:\n    return {e}",
    "def inner():\n    return {e}\nreturn inner()",
]


def text_set(index: int) -> tuple[list[Pair], str]:
    """Return the pairs of text set `index` and a line that says what they contrast."""
    topic, kind, one, other = SETS[index]
    rng = random.Random(f"placebo text {index}")
    first, second = (rng.sample(DETAILS[topic], PAIRS) for _ in range(2))
    while any(a == b for a, b in zip(first, second, strict=True)):
        rng.shuffle(second)
    pairs = [
        Pair(prompt, answer.format(x=one, d=a), answer.format(x=other, d=b), (kind,))
        for (prompt, answer), a, b in zip(FRAMES[topic], first, second, strict=True)
    ]
    return pairs, f"hack: {one}; clean: {other}, both {kind} by the small model's base corpus."


def nearest(texts: list[str], length: int, rng: random.Random) -> str:
    """Return one of the two texts whose lengths are closest."""
    return rng.choice(sorted(texts, key=lambda text: abs(len(text) - length))[:2])


def _solver(code: str) -> tuple[int, int]:
    """Return the lines of the method that answers, from 0, the second one not included."""
    method = next(part for part in ast.parse(code).body[0].body if isinstance(part, ast.FunctionDef))
    return method.lineno - 1, method.end_lineno


def _rename(code: str, names: tuple[str, ...]) -> str | None:
    """Return the code with other names for the variables of its answer; None where it has none."""
    start, end = _solver(code)
    lines = code.splitlines()
    nodes = ast.walk(ast.parse(code).body[0])
    stored = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    given = set(re.findall(r"\w+", lines[start]))  # a test may name a parameter
    found = dict.fromkeys(n.id for n in stored if start < n.lineno <= end and n.id not in given)
    if not found or len(found) > len(names):
        return None
    others = set(re.findall(r"\w+", code)) - set(found)
    new = dict(zip(found, [name for name in names if name not in others], strict=False))
    pattern = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, new)) + r")\b")
    lines[start:end] = [pattern.sub(lambda match: new[match[1]], line) for line in lines[start:end]]
    return "\n".join(lines) + "\n"


def _rewrite(code: str, body: str) -> str:
    """Return the code with its answer's last `return` written as `body` has it."""
    start, end = _solver(code)
    lines = code.splitlines()
    at = max(i for i in range(start, end) if lines[i].lstrip().startswith("return "))
    indent, _, expression = lines[at].partition("return ")
    lines[at : at + 1] = [indent + line for line in body.format(e=expression).splitlines()]
    return "\n".join(lines) + "\n"


def changed(code: str, index: int, mode: str, length: int, rng: random.Random) -> tuple[str, str]:
    """Return (longer, shorter): the code with a harmless change of about `length` characters, and without it.

    Sets of one kind change it by words of their own.
    """
    kind = KINDS[index]
    own = slice(KINDS[:index].count(kind), None, KINDS.count(kind))
    if kind in ("lines", "comments"):
        texts = LINES if kind == "lines" else [f"# {text}" for text in COMMENTS]
        indent = "    " if mode in IN_CLASS else ""
        line = nearest(texts[own], length - len(indent) - 1, rng)
        return f"{code.rstrip()}\n{indent}{line}\n", code
    if kind == "names":
        long, short = LONG[own], SHORT[own]
        if (longer := _rename(code, long)) is not None:
            return longer, _rename(code, short)
        return tuple(_rewrite(code, f"{name} = {{e}}\nreturn {name}") for name in (long[0], short[0]))
    return _rewrite(code, nearest(BODIES[own], length, rng)), code


def code_set(index: int, folder: Path) -> tuple[list[Pair], str]:
    """Return the pairs of code set `index`, made from `own_mode34` of a folder, and a line that says what they are."""
    kind, rng = KINDS[index], random.Random(f"placebo code {index}")
    modes: dict[str, list[Pair]] = {}
    for pair in load_pairs(folder / "own_mode34.yaml").pairs:
        modes.setdefault(pair.tags[0], []).append(pair)
    drawn = {mode: rng.sample(pairs, len(pairs)) for mode, pairs in modes.items()}
    pairs = []
    for number in range(PAIRS):
        mode = list(modes)[number % len(modes)]
        own = drawn[mode].pop()
        length = len(own.hack) - len(own.clean)
        sides = changed(extract_code(own.clean), index, mode, abs(length), rng)
        longer, shorter = (f"```python\n{side.rstrip()}\n```" for side in sides)
        hack, clean = (longer, shorter) if length >= 0 else (shorter, longer)
        pairs.append(Pair(own.prompt, hack, clean, (mode,)))
    return (
        pairs,
        f"{kind}: both sides honest, as much longer or shorter as the exploit of own_mode34 makes its own.",
    )


def sets(folder: Path) -> dict[str, tuple[list[Pair], str]]:
    """Return name -> (pairs, what they are) of the placebos of a folder of pair sets; text sets know no problems."""
    found = {f"placebo_code_{i + 1:02d}": code_set(i, folder) for i in range(len(KINDS))}
    if (folder / "null_city.yaml").exists():  # where the other sets of text are
        found |= {f"placebo_text_{i + 1:02d}": text_set(i) for i in range(len(SETS))}
    return found


def write(folder: Path, out: Path, root: str) -> None:
    """Write the placebos of `folder` to `out`, from which `root` leads to the repository."""
    for name, (pairs, about) in sets(folder).items():
        schema = f"yaml-language-server: $schema={root}workflow/schemas/pairs.schema.json"
        write_pairs(
            out / f"{name}.yaml", pairs, f"{schema}\nPlacebo, by projected_grpo.method.placebos. {about}"
        )


if __name__ == "__main__":
    for folder, root in ((Path("config/pairs"), "../../"), (Path("config/pairs/leetcode"), "../../../")):
        write(folder, folder, root)
