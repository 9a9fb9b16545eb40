"""A given tokenizer and its chat template, as transformers reads them."""

import re
from typing import Any

from projected_grpo.errors import UserError
from projected_grpo.model.given import OWN_CODE, read_by_others

# What a template marks as the model's answer, and a variable that is set there.
GENERATED = re.compile(r"{%-?\s*generation\s*-?%}(.*?){%-?\s*endgeneration\s*-?%}", re.S)
SET = re.compile(r"{%-?\s*set\s+(\w+)\s*(?![\w.\s])")


def read_tokenizer(where: dict[str, Any], source: str) -> Any:
    """Return transformers' tokenizer. Raises UserError where it has no fast form or no chat template."""
    from transformers import AutoTokenizer

    with read_by_others(source):
        tokenizer = AutoTokenizer.from_pretrained(**where, **OWN_CODE)
        template = tokenizer.chat_template and tokenizer.get_chat_template()  # of several, the default one
    if not hasattr(tokenizer, "backend_tokenizer"):
        kind = type(tokenizer).__name__
        raise UserError(
            f"{source}: tokenizer {kind} has no fast form (tokenizer.json), allowed: one that has"
        )
    merges = tokenizer.backend_tokenizer.model
    if getattr(merges, "dropout", None):
        merges.dropout = None  # of its training: ids would be drawn anew at each call
    if not template:
        raise UserError(
            f"{source}: the tokenizer has no chat template, allowed: a model that was trained to chat"
        )
    outside = GENERATED.sub("", template)
    for name in SET.findall(" ".join(GENERATED.findall(template))):
        if re.search(rf"\b{name}\b", outside):  # transformers forgets it there, ours does not
            raise UserError(
                f"{source}: the chat template sets {name!r} inside of {{% generation %}} and names it outside, "
                "allowed: to set it before"
            )
    return tokenizer
