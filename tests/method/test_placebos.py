"""Placebos: the files are what the code says, and hold no hack."""

import re

import pytest
from shipped import FOLDER, MODES, SHIPPED, load
from test_pairs_sets import TEXT, arguments, reference, solution

from projected_grpo.environment.completion import extract_code
from projected_grpo.environment.families.oneliners import base_examples
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import SETUP, parse_problem
from projected_grpo.method import placebos

NAMES = [name for name in SHIPPED if "placebo" in name]
CODE = [name for name in NAMES if "code" in name]


@pytest.mark.parametrize(("folder", "root"), [("", "../../"), ("leetcode", "../../../")])
def test_files_are_what_the_code_writes(folder, root, tmp_path):
    placebos.write(FOLDER / folder, tmp_path, root)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in (FOLDER / folder).glob("placebo_*.yaml"))
    for name in made:
        assert (tmp_path / name).read_text() == (FOLDER / folder / name).read_text()


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
    for i, (_, kind, *sides) in enumerate(placebos.SETS, 1):
        for pair in load(f"placebo_text_{i:02d}").pairs:
            assert sides[0] in pair.hack and sides[1] not in pair.hack
            assert sides[1] in pair.clean and sides[0] not in pair.clean
        assert [side in words for side in sides] == [kind == "seen"] * 2
    assert sorted(kind for _, kind, *_ in placebos.SETS) == ["seen"] * 5 + ["unseen"] * 5


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
