"""A Hugging Face checkpoint on this machine, with PEFT adapters where it has any, as a backend."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from projected_grpo.devices import claim
from projected_grpo.errors import UserError
from projected_grpo.evaluator.backends import Reply, Usage
from projected_grpo.model.load import DTYPES


class LocalBackend:
    """The checkpoint `model` (folder or hub id), on top of it the PEFT folder or id `adapter`, if given.

    Answers are cut after `max_tokens`; `batch` prompts are worked on together. It has no structured output.
    Raises UserError for what is no checkpoint, tokenizer or adapter.
    """

    def __init__(
        self,
        model: str,
        adapter: str | None = None,
        *,
        name: str,
        device: str = "cpu",
        dtype: str = "float32",
        max_tokens: int = 96,
        batch: int = 64,
    ):
        if device == "cuda":
            claim()
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(model)
            self.model: Any
            self.model = AutoModelForCausalLM.from_pretrained(model, dtype=DTYPES[dtype]).to(device).eval()  # type: ignore[arg-type]
            if adapter:
                self.model = PeftModel.from_pretrained(self.model, adapter)
        except (OSError, ValueError) as error:
            raise UserError(f"{model}: transformers cannot load it ({str(error).splitlines()[0]})") from error
        if not self.tokenizer.chat_template:
            raise UserError(
                f"{model}: the tokenizer has no chat template, allowed: a model that was trained to chat"
            )
        ends = self.model.generation_config.eos_token_id
        self.ends = {*([ends] if isinstance(ends, int) else ends or ()), self.tokenizer.eos_token_id} - {None}
        if not self.ends:
            raise UserError(f"{model}: no eos_token_id, allowed: a model that ends its answers with a token")
        pad = self.tokenizer.pad_token_id
        self.pad = min(self.ends) if pad is None else pad
        self.device, self.max_tokens, self.batch = device, max_tokens, batch
        self.name, self.usage = name, Usage()

    def answer(self, prompts: Sequence[str], schema: dict, temperature: float, seed: int) -> Iterator[Reply]:
        """See `backends.Backend`. Temperature 0 is greedy; samples follow from `seed` and their batch's prompts."""
        for start in range(0, len(prompts), self.batch):
            yield from self._batch(prompts[start : start + self.batch], temperature, seed)

    @torch.no_grad()
    def _batch(self, prompts: Sequence[str], temperature: float, seed: int) -> list[Reply]:
        ids, mask = padded([self._ids(prompt) for prompt in prompts], self.pad)
        sampling = {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}
        settings = GenerationConfig(
            do_sample=temperature > 0,
            max_new_tokens=self.max_tokens,
            eos_token_id=sorted(self.ends),
            pad_token_id=self.pad,
            **sampling,
        )
        digest = hashlib.sha256("\0".join([str(seed), *prompts]).encode("utf-8", "surrogatepass")).digest()
        with torch.random.fork_rng():
            torch.manual_seed(int.from_bytes(digest[:7], "big"))
            out = self.model.generate(
                input_ids=ids.to(self.device), attention_mask=mask.to(self.device), generation_config=settings
            )
        replies = []
        for row, given in zip(out[:, ids.shape[1] :].tolist(), mask.sum(1).tolist(), strict=True):
            tokens = list(itertools.takewhile(lambda token: token not in self.ends, row))
            self.usage.add(given, len(tokens))
            text = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            replies.append(Reply(text, "truncated" if tokens == row else ""))
        return replies

    def _ids(self, prompt: str) -> list[int]:
        chat = [{"role": "user", "content": prompt}]
        how = {"add_generation_prompt": True, "enable_thinking": False, "return_dict": False}
        return self.tokenizer.apply_chat_template(chat, **how)


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token rows as one `[rows, longest]` tensor, padded on the left, and the mask of what is no padding."""
    longest = max(map(len, rows))
    ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask
