"""Holds the decoder's forward, and the light tokenizer, against transformers' own on eight texts.

A bound that a machine sets itself: ten times what transformers' two attention kernels differ by on the same texts.
Where these differ by more than rounding does, transformers has no one answer to compare with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from projected_grpo.errors import UserError
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.given import in_a_line, read_by_others, upcast
from projected_grpo.model.template import Messages
from projected_grpo.model.tokenizer import Tokenizer

FACTOR, LEAST = 10, 1e-5
MOST = 0.01  # that rounding makes the two kernels differ by
LONG = 1024  # tokens that one of the texts exceeds
LARGE = 1_000_000_000  # parameters above which the first layers and the head stand for all
SHORT = 2  # of them
CODE = "def add(a: int, b: int) -> int:\n    return a + b  # t1, w1\n\n\nprint(add(1, 2) == 3)\n"
PARAGRAPH = "The committee met at noon, looked at 1,024 numbers, and could not agree on any of them. "
SPACED = "It 's so , isn n't it ? I 'm . They 're , we 've . ' No ' !"  # as what cleans up a decoded text looks for


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _chats() -> list[list[dict[str, str]]]:
    answer = {"role": "assistant", "content": "It is Paris, x < 3 & y > 2."}
    return [
        [_user("What is the capital of France?")],
        [_user(f"Write `add`.\n\n```python\n{CODE}```")],
        [{"role": "system", "content": "Keep x < 3 & don't stop."}, _user("t1 w1 2 + 2 =")],
        [_user("Zählt man 你好, Ωμέγα, ñandú und 🎉 zusammen? Привет! e\u0301 ﬁ\u00a0x")],
        [_user("What is the capital of France?"), answer, _user("And of \tItaly?\n\n  ")],
        [_user('{"key": [1, 2.5, null, true], "text": "\\u00e9 \\n"} <b>&amp;</b> \'quotes\' ``')],
        [_user("  leading and trailing blanks, tabs\t\tand\n\n\nlines   ")],
    ]


@dataclass(frozen=True)
class Agreement:
    """largest: difference of a token's log-probability between transformers and the decoder; bound: that is allowed."""

    largest: float
    bound: float


def token_rows(ours: Tokenizer, theirs: Any, source: str) -> list[list[int]]:
    """Return the ids of the eight texts. Raises UserError where text or ids are not those of `apply_chat_template`.

    Ids of plain text, too, are held against transformers' own, and what they are decoded to.
    """
    chat: Messages
    chats: list[Messages] = []
    long = PARAGRAPH * (LONG // len(ours.encode(PARAGRAPH)) + 1)
    for chat in [*_chats(), [_user(CODE + long)]]:
        try:
            wanted = _rendered(theirs, chat, tokenize=False)
        except Exception as error:  # a template's own, of any kind
            try:
                ours.chat(chat)
            except Exception:
                chats.append(chat[1:] if chat[0]["role"] == "system" else chat[:1])
                continue
            raise UserError(
                f"{source}: transformers refuses a chat that is rendered here ({in_a_line(error)})"
            ) from error
        if (text := ours.chat(chat)) != wanted:
            raise UserError(
                f"{source}: the chat template gives another text here than with transformers, "
                f"{_from_where(text, wanted)}"
            )
        chats.append(chat)
    rows = []
    for chat in chats:
        content = chat[-1]["content"]
        with read_by_others(source):
            wanted = _rendered(theirs, chat, tokenize=True, return_dict=False)
        if ours.encode_chat(chat) != list(wanted):
            raise _other_ids(content, source)
        _compare_text(content, ours, theirs, source)
        if len(wanted) < 2:
            raise UserError(
                f"{source}: the chat template leaves {len(wanted)} tokens of {content[:40]!r}, "
                "allowed: one that writes the messages"
            )
        rows.append(list(wanted))
    if ours.chat(chats[0]) == ours.chat(chats[1]):  # as what Git LFS leaves in a file's place
        raise UserError(
            f"{source}: the chat template writes one text for two questions, allowed: one that writes the messages"
        )
    added = ours.core.get_added_tokens_decoder().values()
    _compare_text(" ".join([SPACED, *(token.content for token in added)]), ours, theirs, source)
    return rows


def _compare_text(text: str, ours: Tokenizer, theirs: Any, source: str) -> None:
    with read_by_others(source):
        ids = list(theirs(text, add_special_tokens=False)["input_ids"])
        wanted = theirs.decode(ids, skip_special_tokens=True)
    if ours.encode(text) != ids:
        raise _other_ids(text, source)
    if ours.decode(ids) != wanted:
        raise UserError(
            f"{source}: ids are decoded to another text here than with transformers, "
            f"{_from_where(ours.decode(ids), wanted)}"
        )


def _other_ids(text: str, source: str) -> UserError:
    return UserError(f"{source}: {text[:40]!r} has other token ids here than with transformers")


def _rendered(tokenizer: Any, chat: Messages, **how: Any) -> Any:
    messages = [dict(message) for message in chat]
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True, enable_thinking=False, **how)


def _from_where(ours: str, theirs: str) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
    )
    return f"from {ours[at : at + 30]!r} in place of {theirs[at : at + 30]!r}"


@dataclass(frozen=True)
class Reference:
    """What transformers says of the texts: log-probs of every token after the first, and how far its kernels differ."""

    rows: Sequence[list[int]]
    logprobs: Tensor
    bound: float
    layers: int | None


def compared(model: nn.Module, whole: bool) -> int | None:
    """Return how many layers of a model are compared: the first of one above `LARGE`, unless `whole`; None for all."""
    large = sum(p.numel() for p in model.parameters()) > LARGE
    return SHORT if large and not whole else None


def reference(model: Any, rows: Sequence[list[int]], source: str, layers: int | None) -> Reference:
    """Run transformers' model, its weights upcast to float32 for good, as many layers of it.

    Raises UserError where a log-probability is not finite, or the two kernels do not compute the same.
    """
    plain = model.get_base_model() if hasattr(model, "get_base_model") else model
    depth = plain.config.num_hidden_layers
    if layers is not None:
        plain.config.num_hidden_layers = layers
    upcast(model)
    found = {}
    for kernel in ("eager", "sdpa"):
        plain.set_attn_implementation(kernel)
        found[kernel] = torch.cat([_logprobs(model, row) for row in rows])
    plain.config.num_hidden_layers = depth
    if not all(logprobs.isfinite().all() for logprobs in found.values()):
        raise UserError(f"{source}: log-probabilities that are not finite, allowed: a model without NaN")
    own = (found["eager"] - found["sdpa"]).abs().max().item()
    if own > MOST:
        raise UserError(
            f"{source}: a token's log-probability differs by {own:.2g} between transformers' two attention kernels, "
            f"allowed: {MOST} (as where an adapter draws numbers whenever it runs)"
        )
    return Reference(rows, found["sdpa"], max(FACTOR * own, LEAST), layers)


@torch.no_grad()
def _logprobs(model: nn.Module, row: list[int]) -> Tensor:
    ids = torch.tensor([row])
    logits = model(input_ids=ids, use_cache=False).logits[0, :-1].float()
    return logits.gather(1, ids[0, 1:, None])[:, 0] - logits.logsumexp(-1)


@torch.no_grad()
def apart(model: Decoder, wanted: Reference, source: str) -> float:
    """Return the largest difference of a token's log-probability between the decoder, in float32, and a reference."""
    if wanted.layers is not None:
        model = Decoder(replace(model.config, num_hidden_layers=wanted.layers), model.weights)
    try:
        found = torch.cat([model.logprobs(Batch([(row[:1], row[1:])])) for row in wanted.rows])
    except UserError as error:  # a row beyond the model's window
        raise UserError(f"{source}: {error}") from error
    return (found - wanted.logprobs).abs().max().item()


def compare(model: Decoder, wanted: Reference, source: str) -> Agreement:
    """Compare the decoder with transformers. Raises UserError where they differ by more than the bound."""
    largest = apart(model, wanted, source)
    if not largest <= wanted.bound:
        raise UserError(
            f"{source}: a token's log-probability differs by {largest:.2g} from transformers', "
            f"allowed: {wanted.bound:.2g} (ten times what its own attention kernels differ by)"
        )
    return Agreement(largest, wanted.bound)
