"""The documentation's sentences: none is longer than a reader holds in mind."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
LONGEST = 40  # words
MARKS = re.compile(r"<!-- written by.*?<!-- /written by make publish -->", re.S)
ENDS = re.compile(r"(?<=[.?!])[)\"']*\s+(?=[A-Z0-9`\"(*\[])")


def sentences(text: str):
    """Yield (line, sentence) of paragraphs and list items; code counts as one word, a link as its text."""
    text = MARKS.sub(lambda found: "\n" * found[0].count("\n"), text)
    apart = 0  # headings and tables that are open
    for token in MarkdownIt().enable("table").parse(text):
        if token.type in ("heading_open", "heading_close", "table_open", "table_close"):
            apart += token.nesting
        if token.type != "inline" or apart:
            continue
        words = [
            "`x`" if part.type == "code_inline" else " " if "break" in part.type else part.content
            for part in token.children
        ]
        for sentence in ENDS.split("".join(words)):
            yield token.map[0] + 1, sentence


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_has_more_than_forty_words(path):
    long = [
        f"{path.name}:{line}: {len(sentence.split())} words: {sentence}"
        for line, sentence in sentences(path.read_text(encoding="utf-8"))
        if len(sentence.split()) > LONGEST
    ]
    assert not long, "\n".join(long)


def test_a_long_sentence_is_found():
    short, long = " ".join(["Word"] * 39), " ".join(["word"] * 41)
    text = f"# {long}\n\n{short} `a b c`. A {long}.\n\n| a |\n| --- |\n| {long} |\n\n```\n{long}\n```\n"
    assert [line for line, sentence in sentences(text) if len(sentence.split()) > LONGEST] == [3]
