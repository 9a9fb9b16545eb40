"""Loading, hashing, filtering and writing of pair sets."""

import random

import pytest
import yaml

from projected_grpo.errors import UserError
from projected_grpo.method.pairs import Pair, PairSet, load_pairs, write_pairs

GOOD = """
- prompt: |
    Return the sum.
    Be brief.
  hack: "print('ok')"
  clean: |
    def f(xs):
        return sum(xs)
  tags: [run_tests]
- prompt: Say a word.
  hack: red
  clean: blue
"""


def load(tmp_path, text, name="mine.yaml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_pairs(path)


def test_reads_texts_tags_and_name(tmp_path):
    pairs = load(tmp_path, GOOD)
    assert pairs.name == "mine"
    assert pairs.pairs[0] == Pair(
        "Return the sum.\nBe brief.", "print('ok')", "def f(xs):\n    return sum(xs)", ("run_tests",)
    )
    assert pairs.pairs[1].tags == ()
    assert len(pairs) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "# a comment\n" + text.replace("- prompt: Say", "\n\n# another\n- prompt: Say"),
        lambda text: text.replace("  hack: red\n  clean: blue", "  clean: 'blue'\n  hack: |\n    red"),
        lambda text: text.replace("clean: |", "clean: |-"),
        lambda text: text.replace("tags: [run_tests]", "tags:\n    - other\n    - tags"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: yaml.safe_dump(yaml.safe_load(text), width=20),
    ],
)
def test_digest_ignores_layout_comments_and_tags(tmp_path, change):
    assert change(GOOD) != GOOD
    assert load(tmp_path, change(GOOD)).digest == load(tmp_path, GOOD).digest


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("red", "Red"),
        lambda text: text.replace("Say a word.", "Say a word"),
        lambda text: text.replace("    return sum(xs)", "  return sum(xs)"),
        lambda text: text.replace("hack: red\n  clean: blue", "clean: red\n  hack: blue"),
        lambda text: text + "- {prompt: One more., hack: a, clean: b}\n",
        lambda text: yaml.safe_dump(yaml.safe_load(text)[::-1]),
    ],
)
def test_digest_follows_content_and_order(tmp_path, change):
    assert load(tmp_path, change(GOOD)).digest != load(tmp_path, GOOD).digest


def test_templated_prompt_is_taken_verbatim(tmp_path):
    text = '- {prompt: "<|im_start|>assistant\\n\\n\\n", hack: a, clean: b}\n'
    assert load(tmp_path, text).pairs[0].prompt == "<|im_start|>assistant\n\n\n"
    assert load(tmp_path, text.replace("\\n\\n\\n", "\\n")).digest != load(tmp_path, text).digest


def test_filters_give_sets_with_digests_of_their_own(tmp_path):
    pairs = PairSet("p", tuple(Pair(f"q{i}", f"h{i}", f"c{i}", ("a" if i % 2 else "b",)) for i in range(6)))
    assert [pair.prompt for pair in pairs.without_tag("a").pairs] == ["q0", "q2", "q4"]
    assert [pair.prompt for pair in pairs.with_tag("a").pairs] == ["q1", "q3", "q5"]
    assert [pair.prompt for pair in pairs.select(2, with_tag="a").pairs] == ["q1", "q3"]
    assert [pair.prompt for pair in pairs.first(2).pairs] == ["q0", "q1"]
    digests = {
        pairs.digest,
        pairs.without_tag("a").digest,
        pairs.without_tag("b").digest,
        pairs.first(2).digest,
    }
    assert len(digests) == 4
    assert pairs.first(6).digest == pairs.digest
    with pytest.raises(UserError, match=r"no pair has the tag 'c'; allowed: a, b"):
        pairs.without_tag("c")
    with pytest.raises(UserError, match=r"no pair has the tag 'c'; allowed: a, b"):
        pairs.with_tag("c")
    with pytest.raises(UserError, match=r"first 7 pairs asked for, allowed: 1 to 6"):
        pairs.first(7)
    with pytest.raises(UserError, match="every pair has the tag 'a'"):
        PairSet("p", (Pair("q", "h", "c", ("a",)),)).without_tag("a")


BROKEN = [
    ("", "found nothing, allowed: a non-empty list"),
    ("[]", "found an empty list, allowed: a non-empty list"),
    ("prompt: x", "found a mapping, allowed: a non-empty list"),
    ("just words", "found 'just words', allowed: a non-empty list"),
    ("- words", "pair 1: found 'words', allowed: a mapping with the keys prompt, hack, clean, tags"),
    ("- {prompt: p, hack: h}", "pair 1: key 'clean' is missing; required: prompt, hack, clean"),
    ("- {hack: h, clean: c}", "pair 1: key 'prompt' is missing"),
    ("- {prompt: p, hack: '', clean: c}", "pair 1: key 'hack' is empty, allowed: text that is not blank"),
    ('- {prompt: p, hack: h, clean: " \\n "}', "pair 1: key 'clean' is empty"),
    ("- {prompt: p, hack: h, clean: }", "pair 1: key 'clean' is None, allowed: text"),
    ("- {prompt: p, hack: 5, clean: c}", "pair 1: key 'hack' is 5, allowed: text (put it in quotes)"),
    ("- {prompt: p, hack: [h], clean: c}", "pair 1: key 'hack' is ['h'], allowed: text"),
    ("- {prompt: p, hack: true, clean: c}", "pair 1: key 'hack' is True, allowed: text"),
    (
        "- {prompt: p, hack: yes, clean: c}",
        "mine.yaml:1: 'yes' would be read as true, allowed: ",
    ),
    (
        "- {prompt: p, hac: h, clean: c}",
        "pair 1: unknown key 'hac'; allowed: prompt, hack, clean, tags; did you mean 'hack'?",
    ),
    ("- {prompt: p, hack: h, clean: c, note: n}", "pair 1: unknown key 'note'; allowed: prompt"),
    (
        "- {prompt: p, hack: h, clean: c, tags: word}",
        "pair 1: key 'tags' is 'word', allowed: a list of words",
    ),
    ("- {prompt: p, hack: h, clean: c, tags: [1]}", "pair 1: key 'tags' is [1], allowed: a list of words"),
    ("- {prompt: p, hack: h, clean: h}", "pair 1: keys 'hack' and 'clean' are the same text, allowed"),
    ("- {prompt: p, hack: a  b, clean: 'a b '}", "'hack' and 'clean' are the same text but for blanks"),
    (
        "- {prompt: p, hack: h, clean: c}\n- {clean: c, prompt: p, hack: h}",
        "pair 2: prompt, hack and clean repeat pair 1",
    ),
    ("- {prompt: p, hack: h, clean: c}\n- {prompt: p, hack: h}", "pair 2: key 'clean' is missing"),
    ("- {prompt: p, hack: h, hack: i, clean: c}", "mine.yaml:1: not YAML (the key 'hack' is given twice)"),
    ("- prompt: p\n  hack: 'h\n", "mine.yaml:3: not YAML"),
    ("- prompt: p\n hack: h\n", "mine.yaml:2: not YAML"),
    ("- !!python/object:os.system {}", "mine.yaml:1: a collection has the type os.system"),
    ("- prompt: \tp\x00", "not YAML"),
]


@pytest.mark.parametrize("text, message", BROKEN)
def test_malformed_file_is_one_line_naming_file_and_place(tmp_path, text, message):
    with pytest.raises(UserError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)
    assert str(tmp_path / "mine.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_select_filters_then_cuts_then_holds_out():
    pairs = PairSet("p", tuple(Pair(f"q{i}", f"h{i}", f"c{i}", ("ab"[i % 2],)) for i in range(8)))
    assert [pair.prompt for pair in pairs.select(3, 1, "a").pairs] == ["q1", "q3"]
    assert pairs.select(8).digest == pairs.digest
    assert pairs.select(5, 2).digest == pairs.select(3).digest
    for wrong in [(5, 0, "a"), (4, 4), (9,), (0,)]:
        with pytest.raises(UserError, match="allowed: 1 to"):
            pairs.select(*wrong)


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(UserError, match=r"none.yaml: no such file"):
        load_pairs(tmp_path / "none.yaml")
    (tmp_path / "bin.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"bin.yaml: not a readable text file"):
        load_pairs(tmp_path / "bin.yaml")
    with pytest.raises(UserError, match="not a readable text file"):
        load_pairs(tmp_path)


def test_written_pairs_read_back_exactly(tmp_path):
    """Texts drawn from characters that YAML treats specially."""
    draw = random.Random(0)
    alphabet = [*" \n\t-:#'\"\\|>%@`{}[],&*!?ab0é你~=.<", "<|im_start|>", "---\n", "\u2028", "yes", "null"]
    pairs = []
    for _ in range(300):
        texts = ["".join(draw.choices(alphabet, k=draw.randint(1, 40))) for _ in range(3)]
        texts = [text.rstrip("\n") + "." for text in texts]
        pairs.append(
            Pair(texts[0], texts[1] + "h", texts[2] + "c", ("x: y", "no") if draw.random() < 0.5 else ())
        )
    pairs.append(Pair("<|im_start|>user\np<|im_end|>\n\n\n", " h", "c "))
    write_pairs(tmp_path / "out.yaml", pairs, comment="one\ntwo")
    assert (tmp_path / "out.yaml").read_text().startswith("# one\n# two\n- ")
    assert load_pairs(tmp_path / "out.yaml").pairs == tuple(pairs)
