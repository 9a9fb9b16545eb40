"""Which part of a text is the answer, and which part of that is code."""

import time

import pytest

from projected_grpo.environment.completion import answer_of, extract_code

RIGHT = "```python\nx = 1\n```"
DRAFT = "```python\nx = 0\n```"


@pytest.mark.parametrize(
    "text, code",
    [
        ("```python\na\n```", "a\n"),
        ("x\n```python  \na\nb", "a\nb"),
        ("```\nx\n```\n```python\na\n```\n```python\nb\n```", "a\n"),
        ("```python\na```b", "a"),
        ("```python\n", ""),
        ("```py\na\n```", None),
        ("```python\n\ufeffa\n```", "a\n"),
        ("python\na", None),
        ("", None),
    ],
)
def test_the_first_fence_counts(text, code):
    assert extract_code(text) == code


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\n{DRAFT}\nNo.\n</think>\n{RIGHT}",
        f"Well.\n<think>{DRAFT} no</think>{RIGHT}",
        f"<thinking>\n{DRAFT}\n</thinking>\n<thinking>{DRAFT}</thinking>\n{RIGHT}",
        f"[THINK]{DRAFT}[/THINK]\n{RIGHT}",
        f"Let me see.\n{DRAFT}\nNo.\n</think>\n{RIGHT}",  # opened in the prompt
        f"```python\nx = 0\nwait\n</think>\n{RIGHT}",  # and the draft was never closed
        f"Remove `<think>` and `</think>`:\n{RIGHT}",
        f"The tag '</think>' ends it.\n{RIGHT}\n{DRAFT}",
        f"{RIGHT}\n<think>\n{DRAFT}",  # the answer came first
    ],
)
def test_a_draft_in_thinking_is_no_answer(text):
    assert extract_code(text) == "x = 1\n"


@pytest.mark.parametrize("text", [f"<think>\n{DRAFT}", f"<THINK>{DRAFT}\nso", "<think>no</think>"])
def test_thinking_that_never_ends_has_no_code(text):
    assert extract_code(text) is None


def test_code_that_speaks_of_thinking_is_code():
    code = "TAG = '<think>'\ntext = '''\n<think>\n a </think> b\n'''.replace(\"</think>\", '')\n"
    assert extract_code(f"```python\n{code}```") == code


@pytest.mark.parametrize(
    "text",
    [
        "1. Sort it:\n\n   ```python\n   def f():\n       return 1\n\n   f()\n   ```\n",
        "- ```python\n  def f():\n      return 1\n\n  f()\n  ```",
        "> ```python\n> def f():\n>     return 1\n>\n> f()\n> ```",
        "> * ```python\n>   def f():\n>       return 1\n>\n>   f()",
        "\t```python\n\tdef f():\n\t    return 1\n\n\tf()\n\t```",
    ],
)
def test_code_in_a_list_item_or_a_quote_loses_its_margin(text):
    assert extract_code(text).strip() == "def f():\n    return 1\n\nf()"


@pytest.mark.parametrize(
    "text, code",
    [
        ("  ```python\ndef f():\n  return 1\n```", "def f():\n  return 1\n"),  # it has no margin to lose
        ("```python\n  a\n  b\n```", "  a\n  b\n"),  # not in a list: as it stands
        ("see ```python\n  a\n```", "  a\n"),
        ("> ```python\n> a\nb\n```", "> a\nb\n"),
    ],
)
def test_what_is_no_margin_stays(text, code):
    assert extract_code(text) == code


def test_an_answer_without_code_loses_its_thinking_too():
    assert answer_of('<think>{"a": 0}</think>\n{"a": 1}').strip() == '{"a": 1}'
    assert answer_of('{"a": 0} no\n</think>\n{"a": 1}').strip() == '{"a": 1}'
    assert answer_of("no tags") == "no tags"


@pytest.mark.parametrize(
    "text",
    [
        "<think></think>\n" * 40_000,
        "<think></think>" * 40_000 + RIGHT,
        "<think>\n" * 100_000,
        ">" * 4000 + "```python\n" + "\n" * 4000,
        ">" * 40_000 + "```python\n" + (">" * 40_000 + "x\n") * 3,
    ],
    ids=["pairs", "pairs-in-a-line", "opened", "quotes", "long-quotes"],
)
def test_no_text_takes_long_to_read(text):
    began = time.process_time()
    extract_code(text)
    assert time.process_time() - began < 2
