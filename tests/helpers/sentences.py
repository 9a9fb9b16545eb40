"""Sentences of Markdown, and which are longer than a reader holds in mind."""

import re

from markdown_it import MarkdownIt

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


def long(text: str) -> list[str]:
    """Return `line: words: sentence` of each sentence that is too long."""
    found = [(line, len(sentence.split()), sentence) for line, sentence in sentences(text)]
    return [f"{line}: {words} words: {sentence}" for line, words, sentence in found if words > LONGEST]
