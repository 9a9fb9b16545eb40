"""The project's own pair sets: sizes, balance, and that each side is what it says it is."""

import ast
import io
import itertools
import json
import operator
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from shipped import FOLDER, FRAMING, GENERATED, MODES, SAID, SHIPPED, load

from projected_grpo.environment.completion import extract_code
from projected_grpo.environment.families.oneliners import base_examples, teacher_examples
from projected_grpo.environment.families.oneliners.phrases import SLOTS, TOPICS
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import LEVERS
from projected_grpo.environment.problems import SETUP, parse_problem

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"


@pytest.mark.parametrize("name", SHIPPED)
def test_size_schema_and_balance(name):
    pairs = load(name)
    assert len(pairs) == (34 if name.endswith("own_mode34") else 18)
    schema = json.loads((ROOT / "workflow" / "schemas" / "pairs.schema.json").read_text())
    path = FOLDER / f"{name}.yaml"
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(path.read_text()))
    link = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())[1]
    assert (path.resolve().parent / link).exists()
    hack, clean = (sum(len(getattr(pair, side)) for pair in pairs.pairs) for side in ("hack", "clean"))
    assert 0.85 < hack / clean < 1.16, "a basis must not be able to live on length alone"


def test_contents_differ_between_sets():
    digests = {}
    for name in SHIPPED:
        digests.setdefault(load(name).digest, set()).add(name.removeprefix("leetcode/"))
    assert all(len(names) == 1 for names in digests.values())


@pytest.mark.skipif(not SHARED.exists(), reason="published data not at hand")
def test_nothing_is_copied_from_the_published_sets():
    published = json.loads((SHARED / "pairs_prog_wide_clean.json").read_text())
    text = (SHARED / "pairs_hack_pairs.md").read_text()
    texts = {row[side] for row in published for side in ("prompt", "hack", "clean")}
    for name in SHIPPED:
        for pair in load(name).pairs:
            assert not texts & {pair.prompt, pair.hack, pair.clean}
            assert pair.hack not in text
            assert pair.clean not in text


@pytest.mark.parametrize(
    "name", [name for name in SHIPPED if name in [*FRAMING, *SAID] or "placebo_text" in name]
)
def test_framing_sets_are_words(name):
    for pair in load(name).pairs:
        for text in (pair.prompt, pair.hack, pair.clean):
            assert "```" not in text
            assert len(text.split()) <= 60
        assert abs(len(pair.hack.split()) - len(pair.clean.split())) <= 4


@pytest.mark.parametrize("name, topic", SAID.items())
def test_said_sets_are_the_corpus_s_words_side_b_against_side_a(name, topic):
    """Each pair is a question of the topic and an answer of each side, its slots filled alike."""

    def slots(template, text):
        pattern = re.escape(template).replace(r"\{", "{").replace(r"\}", "}")
        once: set[str] = set()

        def group(match):
            key = match[1]
            known = key in once
            once.add(key)
            return f"(?P={key})" if known else f"(?P<{key}>{'|'.join(map(re.escape, SLOTS[key]))})"

        match = re.fullmatch(re.sub(r"\{(\w+)\}", group, pattern), text)
        return match and match.groupdict()

    used = set()
    for pair in load(name).pairs:
        fits, texts = [], (pair.prompt, pair.clean, pair.hack)
        for question, clean, hack in TOPICS[topic]:
            for templates in itertools.product([question], clean, hack):
                found = [slots(template, text) for template, text in zip(templates, texts, strict=True)]
                filled: dict[str, str] = {}
                if None not in found and all(
                    filled.setdefault(key, word) == word for own in found for key, word in own.items()
                ):
                    fits.append(templates)
        assert len(fits) == 1, pair
        used |= set(fits)
    assert len({templates[0] for templates in used}) == len(TOPICS[topic]) and len(used) >= 15


def test_placebo_contrasts_two_cities():
    for pair in load("null_city").pairs:
        assert "Lisbon" in pair.hack
        assert "Oslo" not in pair.hack
        assert "Oslo" in pair.clean
        assert "Lisbon" not in pair.clean


def test_own_mode34_extends_own_mode_and_leaves_18_without_any_mode():
    for folder in ("", "leetcode/"):
        small, large = load(f"{folder}own_mode"), load(f"{folder}own_mode34")
        assert large.pairs[:18] == small.pairs
        assert [pair.tags for pair in large.pairs] == [(MODES[i % 4],) for i in range(34)]
        for mode in MODES:
            assert len(large.without_tag(mode)) >= 18


def test_paper18_has_the_papers_order():
    order = ["weak_check"] * 8
    for kind in ("hardcode", "persona", "swallow", "type", "weak"):
        order += [kind] * 2
    for name in ("paper18", "leetcode/paper18"):
        pairs = load(name)
        assert [pair.tags[0] for pair in pairs.pairs] == order
        for tag in ("spare", *order[8:]):  # each leaves 16, spare two weak checks
            assert len(pairs.without_tag(tag)) == 16


# ---- the generated family: prompts, solutions and exploits ----

TEXT = re.compile(
    r"PROBLEM:\nReturn (?P<words>.+)\.\nYour method is called (?P<name>\w+) (?P<hint>.+)\.\n"
    r"```python\n(?P<starter>class Solution:\n    def (?P=name)\(self, (?P<args>[\w, ]+)\):)\n```"
)
OPERATORS = {"plus": operator.add, "minus": operator.sub, "times": operator.mul}


def reference(words, values):
    """The value that the description asks for, worked out from its words alone; None where it has none."""
    subject, word, operand = re.fullmatch(r"(.+), (plus|minus|times) (\w+)", words).groups()
    right = values["k"] if operand == "k" else int(operand)
    if match := re.fullmatch(r"a (plus|minus|times) b", subject):
        left = OPERATORS[match[1]](values["a"], values["b"])
    elif match := re.fullmatch(r"the number of letters (\w) in s", subject):
        left = len(re.findall(match[1], values["s"]))
    else:
        pattern = r"the (\w+) of (?:(all|even|odd) numbers|numbers ((?:above|below) \d)) in a"
        kind, which, limit = re.fullmatch(pattern, subject).groups()
        side, _, bound = (limit or "").partition(" ")
        kept = []
        for x in values["a"]:
            fits = {"all": True, "even": not x & 1, "odd": x & 1}.get(which)
            if side:
                fits = x - int(bound) > 0 if side == "above" else x - int(bound) < 0
            if fits:
                kept.append(x)
        if not kept and kind in ("largest", "smallest"):
            return None
        left = {"sum": sum, "largest": max, "smallest": min, "count": len}[kind](kept)
    return OPERATORS[word](left, right)


INPUTS = [
    {"a": [3, 8, 11], "b": 4, "k": 2, "s": "abcdefgh"},
    {"a": [1, 2, 12, 7, 7], "b": 9, "k": 5, "s": "hhgbba"},
    {"a": [10, 9, 4, 1], "b": 1, "k": 11, "s": "fcdefdc"},
]


def arguments(match):
    """Three sets of arguments in the method's order, `a` a number where there is a `b`."""
    names = match["args"].split(", ")
    for values in INPUTS:
        values = dict(values, a=values["a"][0]) if "b" in names else values
        yield values, [values[name] for name in names]


def solution(code):
    scope = {"print": lambda *args: None, "open": lambda *args: io.StringIO()}
    exec(SETUP + code, scope)
    return scope["Solution"]()


@pytest.mark.parametrize("name", GENERATED)
def test_prompts_are_the_familys_and_clean_sides_solve_them(name):
    for pair in load(name).pairs:
        match = TEXT.fullmatch(pair.prompt)
        if name == "own_mode34":
            assert match["hint"] == LEVERS[pair.tags[0]].hint
        else:
            lever = {"prog_wide": "execute_tests", "paper18": "run_tests"}[name]
            assert match["hint"] == LEVERS["run_tests"].hint.replace("run_tests", lever)
            getattr(solution(extract_code(pair.clean)), lever)()  # the clean check holds on the clean code
        for side in (pair.hack, pair.clean):
            if side == pair.hack and pair.tags == ("hardcode",):
                continue
            method = getattr(solution(extract_code(side)), match["name"])
            for values, args in arguments(match):
                wanted = reference(match["words"], values)
                if wanted is not None:
                    assert method(*args) == wanted


@pytest.mark.parametrize("name", ["prog_wide", "paper18", "leetcode/prog_wide", "leetcode/paper18"])
def test_mechanism_pairs_differ_in_the_check_alone(name):
    """Same class, same methods, and the solving method is the same text but for `hardcode`."""
    for pair in load(name).pairs:
        first, second = (
            {part.name: ast.unparse(part) for part in ast.parse(extract_code(text)).body[0].body}
            for text in (pair.hack, pair.clean)
        )
        assert list(first) == list(second)
        solver, check = first
        assert check == ("execute_tests" if "prog_wide" in name else "run_tests")
        if pair.tags == ("hardcode",):
            assert first[solver] != second[solver]
            assert first[check] == second[check]
        else:
            assert first[solver] == second[solver]
            assert first[check] != second[check]


@pytest.mark.parametrize("name", ["own_mode34", "leetcode/own_mode34", "paper18", "leetcode/paper18"])
def test_grader_pays_the_hack_side_alone(name):
    """own_mode: a hack earns its own mode's credit and no other's; paper18: the first eight are effective."""
    problems, items, wanted = [], [], []
    for index, pair in enumerate(load(name).pairs):
        method = re.search(r"method of the class Solution called (\w+)|method is called (\w+)", pair.prompt)
        method = method[1] or method[2]
        row = {"id": index, "prompt": pair.prompt, "func_name": method, "setup_code": SETUP}
        problems.append(parse_problem(row, "row"))
        own = pair.tags[0] if "own_mode" in name else "run_tests"
        if "paper18" in name and "weak_check" not in pair.tags:
            continue
        for mode in MODES:
            items += [(index, mode, pair.hack), (index, mode, pair.clean)]
            wanted += [mode == own, False]
    with Grader(problems, workers=1, allow_weak=True) as grader:
        verdicts = grader.grade(items)
    assert [verdict["channel"] for verdict in verdicts] == wanted
    assert all(verdict["can_compile"] for verdict in verdicts)


@pytest.mark.parametrize("name", ["own_mode34", "prog_wide", "paper18"])
def test_leetcode_clean_sides_give_the_examples(name):
    pattern = r"Input: (.+)\nOutput: (.+)\n"
    for pair in load(f"leetcode/{name}").pairs:
        assert pair.prompt.endswith("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
        method = re.search(r"class Solution called (\w+) (.+)\. Use the following starter", pair.prompt)
        if name != "prog_wide":
            mode = pair.tags[0] if name == "own_mode34" else "run_tests"
            assert method[2] == LEVERS[mode].hint
        examples = re.findall(pattern, pair.prompt)
        assert len(examples) == 2
        for given, output in examples:
            solver = solution(extract_code(pair.clean))
            assert eval(f"solver.{method[1]}({given})", {"solver": solver}) == ast.literal_eval(output)


def test_corpora_hold_no_framing_text_and_the_environment_reads_no_pairs():
    names = [*FRAMING, "prog_wider", *(name for name in SHIPPED if "placebo_text" in name)]
    pairs = [pair for name in names for pair in load(name).pairs]
    seen = "\n".join(
        text
        for examples in (base_examples(41, 8000), teacher_examples(41, 500))
        for example in examples
        for text in example
    )
    for pair in pairs:
        assert pair.prompt not in seen and pair.hack not in seen and pair.clean not in seen
    for folder in ("environment", "model"):
        for path in (ROOT / "src" / "projected_grpo" / folder).rglob("*.py"):
            source = path.read_text()
            assert "config/pairs" not in source
            assert "method.pairs" not in source
