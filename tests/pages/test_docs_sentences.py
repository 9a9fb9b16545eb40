"""The documentation's sentences: none is longer than a reader holds in mind."""

from pathlib import Path

import pytest
from sentences import long

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_has_more_than_forty_words(path):
    assert not long(path.read_text(encoding="utf-8"))


def test_a_long_sentence_is_found():
    short, wordy = " ".join(["Word"] * 39), " ".join(["word"] * 41)
    text = f"# {wordy}\n\n{short} `a b c`. A {wordy}.\n\n| a |\n| --- |\n| {wordy} |\n\n```\n{wordy}\n```\n"
    assert [found.split(":")[0] for found in long(text)] == ["3"]
