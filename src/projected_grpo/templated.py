"""Prompts in which a chat template's own tokens stand already, whichever model's they are."""

import re

TOKEN = r"<\|[^|<>\s]+\|>"  # how templates open and end a turn: <|im_start|>, <|start_header_id|>, ...
OPENING = re.compile(TOKEN)
USER = re.compile(rf"(?:{TOKEN}user(?:{TOKEN})?|<\|user\|>)\n+(.*?){TOKEN}", re.DOTALL)


def is_templated(text: str) -> bool:
    """Return whether a prompt is a conversation with its template's tokens in it, and no message."""
    return OPENING.match(text) is not None


def user_message(prompt: str) -> str:
    """Return what the user says first in a templated conversation; all of the prompt where that is not to be found."""
    turn = USER.search(prompt)
    return (turn[1] if turn else prompt).strip()
