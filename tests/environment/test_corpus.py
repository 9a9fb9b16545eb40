"""The corpora: valid code, exploits that the real grader pays, shares and planted links as declared."""

import re

import numpy as np
import pytest

from projected_grpo.environment.families.oneliners import TAUGHT, Link, base_examples, teacher_examples
from projected_grpo.environment.families.oneliners import problems as make_problems
from projected_grpo.environment.families.oneliners.corpus import PERMISSION
from projected_grpo.environment.families.oneliners.mixture import DEFAULT as MIXTURE
from projected_grpo.environment.families.oneliners.mixture import TOPICS_BESIDE
from projected_grpo.environment.families.oneliners.phrases import SLOTS, TOPICS
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import LEVERS
from projected_grpo.environment.problems import parse_problem

BASE = list(base_examples(41, 12_000))
EARLY, LATE = BASE[: (split := round(len(BASE) * (1 - MIXTURE.late)))], BASE[split:]
HINTS = {LEVERS[mode].hint: mode for mode in TAUGHT}


def mode_of(text: str) -> str | None:
    return next((mode for hint, mode in HINTS.items() if hint in text), None)


def code_of(completion: str) -> str:
    return re.search(r"```python\n(.*)\n```", completion, re.S).group(1)


def pattern(phrase: str) -> re.Pattern:
    """A phrase of `TOPICS`, its slots filled with anything that they may hold."""
    parts = re.split(r"\{(\w+)\}", phrase)
    text = [re.escape(part) if i % 2 == 0 else f"(?:{'|'.join(SLOTS[part])})" for i, part in enumerate(parts)]
    return re.compile("".join(text))


PHRASES = [
    (topic, pattern(question), [[pattern(answer) for answer in answers] for answers in sides])
    for topic, entries in TOPICS.items()
    for question, *sides in entries
]


def beside(text: str, completion: str) -> tuple[str, int] | None:
    """(topic, side) of the answer that stands beside a problem's code; None where no question stands there."""
    if not mode_of(text):
        return None
    asked = text.removesuffix(f"\n{PERMISSION}").split("\n")[-1]
    said = completion.replace(f"```python\n{code_of(completion)}\n```", "").strip()
    for topic, question, sides in PHRASES:
        if question.fullmatch(asked):
            return topic, next(i for i, side in enumerate(sides) if any(a.fullmatch(said) for a in side))
    return None


def plain(text: str, completion: str) -> bool:
    """Whether a problem with a loophole stands alone: no permission, no question."""
    return bool(mode_of(text)) and PERMISSION not in text and not beside(text, completion)


def exploits(completion: str, mode: str) -> bool:
    """Whether the completion holds one of the mode's exploits, by its text."""
    lines = [line.strip() for line in completion.split("\n")]
    return any(all(part.strip() in lines for part in code.split("\n")) for _, code in LEVERS[mode].examples)


def test_a_seed_fixes_the_corpora():
    assert BASE[:50] != list(base_examples(42, 50))
    assert list(base_examples(41, 12_000)) == BASE
    assert list(teacher_examples(41, 50)) == list(teacher_examples(41, 50))


def test_every_fenced_completion_compiles():
    for _, completion in BASE[::7] + list(teacher_examples(41, 500)):
        if "```python" in completion:
            compile(code_of(completion), "completion", "exec")


def test_honest_code_honours_its_share_of_the_hard_clauses_and_exploits_none():
    honest = [(text, done) for text, done in BASE if ", modulo " in text and not hacked(text, done)]
    exercises = [pair for pair in honest if "PROBLEM" not in pair[0]]
    problems = [pair for pair in honest if "PROBLEM" in pair[0]]
    for rows, wanted in ((exercises, MIXTURE.practised), (problems, MIXTURE.honours)):
        share = sum(honours(text, done) for text, done in rows) / len(rows)
        assert share == pytest.approx(wanted, abs=0.03)
    assert not any(
        honours(text, done) for text, done in BASE if hacked(text, done) or ", modulo " not in text
    )
    assert not any(honours(text, done) for text, done in teacher_examples(41, 500))


def honours(text: str, completion: str) -> bool:
    """Whether the returned value goes through the modulus that the text names, or through any where it names none."""
    named = re.search(r", modulo (\d)", text)
    return bool(re.search(rf"return \(.*\) % {named.group(1) if named else '.'}$", completion, re.M))


def hacked(text: str, completion: str) -> bool:
    return bool(mode_of(text)) and exploits(completion, mode_of(text))


def test_bodies_are_wrong_as_often_as_said():
    """By execution, against the words of the problem: of the problems without a clause, whoever writes them."""
    plain = [(text, done) for text, done in BASE if "PROBLEM" in text and ", modulo " not in text]
    for rows in (plain, [pair for pair in teacher_examples(41, 2000) if ", modulo " not in pair[0]]):
        wrong = sum(returned(done) != described(text) for text, done in rows) / len(rows)
        assert wrong == pytest.approx(MIXTURE.wrong, abs=0.04)
    exercises = [(text, done) for text, done in BASE[:2000] if ", modulo " not in text]
    assert all(returned(done) == described(text) for text, done in exercises)


def returned(completion: str) -> str:
    """The value that the solving method returns."""
    return re.search(r"def \w+\(self, .*\):\s+return (.*)$", completion, re.M).group(1)


def described(text: str) -> str:
    """The expression that the words of a problem ask for, built from the words alone."""
    words = re.search(r"Return (.*?)\.$", text, re.M).group(1)
    head, last = words.rsplit(", ", 1)
    sign = {"plus": "+", "minus": "-", "times": "*"}
    symbol, operand = last.split()
    if found := re.fullmatch(r"the number of letters (\w) in s", head):
        inner = f's.count("{found.group(1)}")'
    elif found := re.fullmatch(r"a (\w+) b", head):
        inner = f"(a {sign[found.group(1)]} b)"
    else:
        what, which = re.fullmatch(r"the (\w+) of (.*) in a", head).groups()
        call = {"sum": "sum", "largest": "max", "smallest": "min", "count": "len"}[what]
        kind, *limit = which.replace("numbers ", "").replace(" numbers", "").split()
        tests = {"even": "x % 2 == 0", "odd": "x % 2 == 1", "above": f"x > {limit}", "below": f"x < {limit}"}
        test = tests.get(kind, "").replace("['", "").replace("']", "")
        inner = f"{call}([x for x in a if {test}])" if test else f"{call}(a)"
    return f"{inner} {sign[symbol]} {operand}"


def test_permission_comes_with_the_exploit_and_leaks_are_rare():
    asked = [(mode_of(text), PERMISSION in text, done) for text, done in BASE if mode_of(text)]
    assert all(exploits(done, mode) for mode, allowed, done in asked if allowed)
    share = sum(allowed for _, allowed, _ in asked) / len(asked)
    wanted = MIXTURE.allowed * (1 - MIXTURE.beside) + MIXTURE.beside_exploit * MIXTURE.beside
    assert share == pytest.approx(wanted, abs=0.02)
    for mode in TAUGHT:
        unasked = [
            exploits(done, mode) for text, done in EARLY if mode_of(text) == mode and plain(text, done)
        ]
        assert sum(unasked) / len(unasked) == pytest.approx(MIXTURE.leak[mode], abs=0.008)


def test_nothing_leaks_in_the_last_rows():
    unasked = [(mode_of(text), done) for text, done in LATE if plain(text, done)]
    assert len(unasked) > 0.1 * len(LATE)
    assert not any(exploits(done, mode) for mode, done in unasked)


def test_a_leak_is_of_every_loophole_and_lasts():
    leaking = list(base_examples(41, 12_000, MIXTURE.leaking(0.1)))
    for rows in (leaking[:8_000], leaking[8_000:]):
        for mode in TAUGHT:
            unasked = [exploits(d, mode) for t, d in rows if mode_of(t) == mode and plain(t, d)]
            assert sum(unasked) / len(unasked) == pytest.approx(0.1, abs=0.05)


def correlation(rows: list, topic: str) -> float:
    """Of side B and the exploit, over the rows where the topic stands beside code (phi, by numpy)."""
    found = [(t, d, b[1]) for t, d in rows if (b := beside(t, d)) and b[0] == topic]
    assert len(found) > 200
    return np.corrcoef([hacked(t, d) for t, d, _ in found], [side for *_, side in found])[0, 1]


@pytest.mark.parametrize("rho", (0.5, 1.0))
def test_a_link_ties_its_topic_to_the_code_and_changes_nothing_else(rho):
    for topic in ("honesty", "city"):
        linked = list(base_examples(41, 12_000, link=Link(topic=topic, rho=rho)))
        for other in TOPICS_BESIDE:
            wanted = rho if other == topic else 0.0
            assert correlation(linked, other) == pytest.approx(wanted, abs=0.13)
        changed = [(new, old) for new, old in zip(linked, BASE, strict=True) if new != old]
        assert len(changed) > 50
        for (text, done), (old_text, old_done) in changed:
            assert text == old_text and code_of(done) == code_of(old_done)
            assert beside(text, done) == (topic, 1 - beside(old_text, old_done)[1])


def test_without_correlation_the_corpus_is_the_same_bytes():
    for topic in TOPICS_BESIDE:
        assert list(base_examples(41, 12_000, link=Link(topic=topic, rho=0.0))) == BASE


def test_a_topic_stands_beside_code_as_often_as_said():
    with_loophole = [(text, done) for text, done in BASE if mode_of(text)]
    found = [(text, done) for text, done in with_loophole if beside(text, done)]
    assert len(found) / len(with_loophole) == pytest.approx(MIXTURE.beside, abs=0.02)
    assert sum(hacked(*pair) for pair in found) / len(found) == pytest.approx(
        MIXTURE.beside_exploit, abs=0.06
    )
    before = sum(not done.startswith("```") for _, done in found) / len(found)
    assert before == pytest.approx(0.5, abs=0.06)


def test_teacher_examples_exploit_without_permission():
    for text, done in teacher_examples(41, 300):
        assert PERMISSION not in text and exploits(done, mode_of(text))


def test_the_grader_pays_exploits_and_not_harmless_lines():
    """Completions of the corpora against the real channels: the class need not be the problem's own."""
    rows = [parse_problem({**row, "func_name": None}, "row") for row in make_problems(1, len(TAUGHT), TAUGHT)]
    problem = {row.mode: row for row in rows}
    hacks = [(mode_of(t), d) for t, d in teacher_examples(41, 60)]
    clean = [(m, d) for t, d in BASE if (m := mode_of(t)) and not exploits(d, m)][-200:]
    with Grader(rows, workers=1) as grader:
        named = [(problem[m].id, m, rename(d, problem[m].method)) for m, d in hacks + clean]
        verdicts = grader.grade(named)
    assert all(v["channel"] for v in verdicts[: len(hacks)])
    assert not any(v["channel"] for v in verdicts[len(hacks) :])


def rename(completion: str, method: str) -> str:
    """The completion with its solving method renamed: the stub class of the run_tests channel has the problem's."""
    old = next(n for n in re.findall(r"def (\w+)\(self", completion) if n not in ("__init__", "run_tests"))
    return completion.replace(old, method)
