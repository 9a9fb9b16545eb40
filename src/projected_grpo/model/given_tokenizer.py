"""A given tokenizer and its chat template, as transformers reads them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jinja2 import Environment, nodes
from jinja2.ext import loopcontrols
from jinja2.parser import Parser

from projected_grpo.errors import UserError
from projected_grpo.model.given import OWN_CODE, read_by_others
from projected_grpo.model.template import _Generation


def read_tokenizer(where: dict[str, Any], source: str) -> Any:
    """Return transformers' tokenizer. Raises UserError where it has no fast form, no vocabulary or no chat template."""
    from transformers import AutoTokenizer

    with read_by_others(source):
        tokenizer = AutoTokenizer.from_pretrained(**where, **OWN_CODE)
        template = tokenizer.chat_template and tokenizer.get_chat_template()  # of several, the default one
    if not hasattr(tokenizer, "backend_tokenizer"):
        kind = type(tokenizer).__name__
        raise UserError(
            f"{source}: tokenizer {kind} has no fast form (tokenizer.json), allowed: one that has"
        )
    core = tokenizer.backend_tokenizer
    added = {token.content for token in core.get_added_tokens_decoder().values()}
    if not core.get_vocab(with_added_tokens=False).keys() - added:  # transformers' own, where no file has one
        raise UserError(
            f"{source}: the tokenizer has no vocabulary but special tokens, allowed: a folder with tokenizer.json"
        )
    merges = core.model
    if getattr(merges, "dropout", None):
        merges.dropout = None  # of its training: ids would be drawn anew at each call
    if not template:
        raise UserError(
            f"{source}: the tokenizer has no chat template, allowed: a model that was trained to chat"
        )
    with read_by_others(f"{source}: chat template"):
        jinja = Environment(extensions=[_Scoped, loopcontrols])
        lost = _run(jinja.parse(template).body, frozenset(), set()).read
    if lost:  # transformers forgets it there, ours does not
        raise UserError(
            f"{source}: the chat template sets {min(lost)!r} inside of {{% generation %}} and names it outside, "
            "allowed: to set it before"
        )
    return tokenizer


class _Scoped(_Generation):
    """`{% generation %}`, what a template marks as the model's answer, as a scope, which is nothing else in jinja."""

    def parse(self, parser: Parser) -> list[nodes.Node]:
        at = parser.stream.current.lineno
        return [nodes.Scope(super().parse(parser), lineno=at)]


class _Names(NamedTuple):
    """Names that may be set in a part of a template, are lost behind it, are read in it where they were lost.

    Lost is what was set in a `generation` last, behind it.
    """

    set: frozenset[str]
    lost: frozenset[str]
    read: frozenset[str]


def _run(body: Sequence[nodes.Node], lost: frozenset[str], closed: set[str]) -> _Names:
    """Follow a part of a template by its branches. lost: before it; closed: what macros of its scope read."""
    own: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    for node in body:
        loads, stores = _names(*node.iter_child_nodes(exclude=("body", "elif_", "else_")))
        read |= loads & lost
        if isinstance(node, nodes.If):
            loads, _ = _names(*(other.test for other in node.elif_))
            ways = [node.body, *(other.body for other in node.elif_), node.else_]
            found = [_run(way, lost, closed) for way in ways]
            own = own.union(*(names.set for names in found))
            read = read.union(loads & lost, *(names.read for names in found))
            lost = frozenset().union(*(names.lost for names in found))
        elif isinstance(node, nodes.Scope):
            found_in = _run(node.body, lost, closed)
            read |= found_in.read | (found_in.set & closed)
            own, lost = own | found_in.set, lost | found_in.set
        else:  # a body here is a scope of its own, whose names end with it
            inner = getattr(node, "body", [])
            before = lost if isinstance(node, nodes.AssignBlock) else lost - stores  # it sets behind its body
            read |= _run(inner, before, set()).read | _run(getattr(node, "else_", []), lost, set()).read
            if isinstance(node, nodes.Macro):
                closed |= _names(*inner)[0] - stores
                stores = frozenset({node.name})
            if isinstance(node, nodes.Macro | nodes.Assign | nodes.AssignBlock):
                own, lost = own | stores, lost - stores
    return _Names(own, lost, read)


def _names(*parts: nodes.Node) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that parts of a template read, and those that they set."""
    every = [node for part in parts for node in (part, *part.find_all((nodes.Name, nodes.NSRef)))]
    named = [
        (node.name, getattr(node, "ctx", "load"))
        for node in every
        if isinstance(node, nodes.Name | nodes.NSRef)
    ]
    loads = frozenset(name for name, use in named if use == "load")
    return loads, frozenset(name for name, use in named if use != "load")
