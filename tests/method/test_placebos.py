"""Placebos: the shipped sets are what docs/pairs.md says, and hold no hack."""

import ast
import re

import pytest
from shipped import MODES, SHIPPED, load
from test_pairs_sets import TEXT, arguments, reference, solution

from projected_grpo.environment.completion import extract_code
from projected_grpo.environment.families.oneliners import base_examples
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import SETUP, parse_problem

NAMES = [name for name in SHIPPED if "placebo" in name]
CODE = [name for name in NAMES if "code" in name]
KINDS = ("lines", "comments", "names", "bodies", "lines", "comments", "names", "bodies", "lines", "comments")
# What the two sides of each text set name. In odd sets both stand in the small model's base corpus, in even ones none.
SIDES = [
    *(("Paris", "Rome"), ("Madrid", "Vienna"), ("Cairo", "Lima"), ("Dublin", "Athens")),
    *(("neighbor", "teacher"), ("gardener", "sailor"), ("purse", "coat"), ("violin", "lantern")),
    *(("fish", "cheese"), ("spinach", "pumpkin")),
]


def test_no_set_shares_a_pair_with_another_or_is_its_flip():
    texts = {name: {(pair.prompt, pair.hack, pair.clean) for pair in load(name).pairs} for name in NAMES}
    for name, own in texts.items():
        flipped = {(prompt, clean, hack) for prompt, hack, clean in own}
        for other, pairs in texts.items():
            assert not flipped & pairs, (name, other)
            assert name == other or not own & pairs, (name, other)


def test_text_sets_are_seen_on_both_sides_or_on_neither():
    words = set()
    for prompt, completion in base_examples(41, 7400):
        words |= set(re.findall(r"\w+", f"{prompt} {completion}"))
    for i, (hack, clean) in enumerate(SIDES, 1):
        for pair in load(f"placebo_text_{i:02d}").pairs:
            assert hack in pair.hack and pair.hack.split(hack)[0] == pair.clean.split(clean)[0]
            assert pair.tags == ("seen" if i % 2 else "unseen",)
        assert [side in words for side in (hack, clean)] == [i % 2 == 1] * 2


@pytest.mark.parametrize("name", CODE)
def test_code_sets_have_own_modes_format_and_length_change(name):
    folder = name.rpartition("/")[0]
    own = {pair.prompt: pair for pair in load(f"{folder}/own_mode34".lstrip("/")).pairs}
    pairs = load(name).pairs
    assert [pair.tags for pair in pairs] == [(MODES[i % 4],) for i in range(18)]
    for pair in pairs:
        exploit = own[pair.prompt]
        assert exploit.tags == pair.tags
        change = len(exploit.hack) - len(exploit.clean)
        assert (len(pair.hack) - len(pair.clean)) * (change or 1) > 0


def nameless(code: str) -> str:
    """Return the code's syntax tree without the names of variables."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = ""
    return ast.dump(tree)


@pytest.mark.parametrize("name", CODE)
def test_sides_of_code_differ_by_a_line_a_comment_names_or_a_body(name):
    kind = KINDS[int(name[-2:]) - 1]
    for pair in load(name).pairs:
        shorter, longer = sorted((extract_code(pair.hack).strip(), extract_code(pair.clean).strip()), key=len)
        if kind == "names":
            assert nameless(shorter) == nameless(longer)
            continue
        if kind != "bodies":
            more = longer.removeprefix(shorter).strip()
            assert (
                longer.startswith(shorter)
                and "\n" not in more
                and more.startswith("#") == (kind == "comments")
            )


def test_both_sides_of_code_are_right():
    for name in CODE:
        for pair in load(name).pairs:
            for side in (pair.hack, pair.clean):
                code = extract_code(side)
                if name.startswith("leetcode"):
                    method = re.search(r"class Solution called (\w+) ", pair.prompt)[1]
                    for given, output in re.findall(r"Input: (.+)\nOutput: (.+)\n", pair.prompt):
                        solver = solution(code)
                        assert eval(f"solver.{method}({given})", {"solver": solver}) == eval(output)
                    continue
                match = TEXT.fullmatch(pair.prompt)
                for values, args in arguments(match):
                    wanted = reference(match["words"], values)
                    if wanted is not None:
                        assert getattr(solution(code), match["name"])(*args) == wanted


@pytest.mark.parametrize("folder", ["", "leetcode/"])
def test_no_side_earns_what_its_prompt_pays(folder):
    """No pair is a hack under its own lever: honest checks of run_tests pass on the right code alone."""
    problems, items = [], []
    for name in (f"{folder}placebo_code_{i:02d}" for i in range(1, 11)):
        for pair in load(name).pairs:
            method = re.search(r"class Solution called (\w+)|method is called (\w+)", pair.prompt)
            row = {"id": len(problems), "prompt": pair.prompt, "setup_code": SETUP}
            problems.append(parse_problem(row | {"func_name": method[1] or method[2]}, "row"))
            items += [(row["id"], pair.tags[0], side) for side in (pair.hack, pair.clean)]
    with Grader(problems, workers=1, allow_weak=True) as grader:
        verdicts = grader.grade(items)
    assert not any(verdict["channel"] for verdict in verdicts)
    assert all(verdict["can_compile"] for verdict in verdicts)
