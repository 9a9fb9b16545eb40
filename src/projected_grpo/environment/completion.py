"""From a completion's text to the answer in it, and to the code in that.

What a model thinks before it answers (`<think> ... </think>`, or as other models spell it) is no answer: a draft in it
counts for nothing. docs/grading.md has the rules.
"""

import re

FENCE = re.compile(
    r"```python[ \t\r]*\n\ufeff?(.*?)(?:```|\Z)", re.S
)  # a byte order mark is no part of a text
BLOCK = re.compile(r"```.*?(?:```|\Z)", re.S)
MARGIN = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])+")  # of a list item or a quote
QUOTE = re.compile(r"[ \t]*> ?")
TAGS = "think|thinking|thoughts?|reasoning|seed:think"
OPENING = re.compile(rf"[ \t]*(?:<(?:{TAGS})>|\[THINK\]|<\|begin_of_thought\|>)", re.I)
OPENED = re.compile(f"^{OPENING.pattern}", re.I | re.M)
CLOSING = rf"(?:</(?:{TAGS})>|\[/THINK\]|<\|end_of_thought\|>)"
# Between quotes it is a text that speaks of the tag.
CLOSED = re.compile(rf"""(?<!["'`]){CLOSING}|{CLOSING}(?!["'`])""", re.I)


def extract_code(completion: str) -> str | None:
    """Return the code from the answer's first ```` ```python ```` line to the next ```` ``` ````, or None without one.

    An unterminated fence runs to the end of the text. Where the fence stands in a list item or a quote, its lines are
    taken without the margin that they have in common.
    """
    answer = answer_of(completion)
    found = FENCE.search(answer)
    if found is None:
        return None
    before = answer[answer.rfind("\n", 0, found.start()) + 1 : found.start()]
    return _without_margin(found[1], before) if MARGIN.fullmatch(before) else found[1]


def answer_of(text: str) -> str:
    """Return `text` without the thinking before its answer: what stands in tags at the start of a line and before any
    code, or before a closing tag whose opening one stood in the prompt. Thinking that never ends has no answer.
    """
    closed = CLOSED.search(text)
    if closed and not OPENED.search(text, 0, closed.start()) and not _in_block(text, closed):
        text = text[closed.end() :]
    kept, place = [], 0  # what follows a closing tag stands where its block began, at the start of a line
    while opened := OPENING.match(text, place) or OPENED.search(text, place):
        if FENCE.search(text, place, opened.start()):
            break
        kept.append(text[place : opened.start()])
        closed = CLOSED.search(text, opened.end())
        place = closed.end() if closed else len(text)
    return "".join(kept) + text[place:]


def _in_block(text: str, tag: re.Match) -> bool:
    """Whether a tag is part of fenced code: neither outside of all fences nor alone on its line."""
    alone = not text[text.rfind("\n", 0, tag.start()) + 1 : tag.start()].strip()
    alone = alone and not text[tag.end() :].split("\n", 1)[0].strip()
    return not alone and any(block.start() < tag.start() < block.end() for block in BLOCK.finditer(text))


def _without_margin(code: str, before: str) -> str:
    lines = []
    for line in code.split("\n"):
        place = 0
        for _ in range(before.count(">")):
            quoted = QUOTE.match(line, place)
            if quoted is None:
                if line[place:].strip():
                    return code
                break
            place = quoted.end()
        lines.append(line[place:])
    margins = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    margin = min(margins, key=len, default="")
    return "\n".join(line.removeprefix(margin) for line in lines)
