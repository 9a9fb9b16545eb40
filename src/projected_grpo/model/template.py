"""A chat template as transformers renders it, without transformers, whose import takes seconds.

The names that a template may use are those of `transformers.utils.chat_template_utils`; the door
(`model.door`) compares the texts of both for every given model.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from projected_grpo.errors import UserError

Messages = Sequence[Mapping[str, str]]


class _Generation(Extension):
    """`{% generation %}`, which marks what a trainer learns from, and prints what it holds."""

    tags = frozenset({"generation"})  # type: ignore[assignment]

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Template:
    """A template with its tokenizer's special tokens. Raises UserError, with `source`, for what is no template.

    today: the date that a template may print; it is the checkpoint's own, so that prompts do not change overnight.
    """

    def __init__(self, text: str, special: Mapping[str, str], today: date, source: str):
        jinja = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        jinja.filters["tojson"] = _to_json
        jinja.globals |= {"raise_exception": _refuse, "strftime_now": today.strftime}
        self.special, self.source = dict(special), source
        try:
            self.compiled = jinja.from_string(text)
        except TemplateError as error:
            raise UserError(f"{source}: no chat template ({_line(error)})") from error

    def render(self, messages: Messages, add_generation_prompt: bool = True) -> str:
        """Return the text of a chat, thinking off where the template knows it.

        Raises UserError where the template refuses the messages.
        """
        options = {"tools": None, "documents": None, "enable_thinking": False, **self.special}
        try:
            return self.compiled.render(
                messages=[dict(m) for m in messages], add_generation_prompt=add_generation_prompt, **options
            )
        except (TemplateError, TypeError) as error:
            roles = ", ".join(str(message.get("role")) for message in messages)
            raise UserError(
                f"{self.source}: the template does not take messages of {roles} ({_line(error)})"
            ) from error


def _to_json(value: object, ensure_ascii: bool = False, indent: int | None = None, **how: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **how)  # jinja's own escapes HTML


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0]
