"""Tiny given checkpoints and adapters as transformers and PEFT write them, and what becomes of them at the door."""

import json
from pathlib import Path

import pytest
import torch
from families import reference
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Core
from tokenizers import decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from projected_grpo.errors import UserError
from projected_grpo.model.batch import Batch
from projected_grpo.model.door import bring_base, bring_teacher
from projected_grpo.model.load import load

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = 260  # bytes, the special tokens, one that no text has
ROWS = [[7, 9, 11, 20, 31, 5], [2, 40, 8, 8, 100]]


def checkpoint(folder, variant="qwen3", template=CHATML, shard="1GB", **config):
    """Write a tiny random checkpoint with a byte-level tokenizer; return transformers' model."""
    config = {"tie_word_embeddings": True} | config
    model = reference(variant, torch.float32, vocab_size=VOCABULARY, **config)
    model.save_pretrained(folder, max_shard_size=shard)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Core(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=SPECIAL[0], eos_token=SPECIAL[2], extra_special_tokens=[SPECIAL[1]]
    )
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return model


def adapter(base, folder, config=LoraConfig, **options):
    """Write a PEFT adapter on the checkpoint `base` with other than its first weights; return its folder."""
    torch.manual_seed(5)
    lora = {"r": 3, "lora_alpha": 6} if config is LoraConfig else {}
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base),
        config(**({"target_modules": ["v_proj", "gate_proj"], **lora} | options)),
    )
    for name, p in model.named_parameters():
        if p.requires_grad and "lora_magnitude" not in name:
            p.data += 0.2 * torch.randn_like(p)
    model.save_pretrained(folder)
    return folder


@torch.no_grad()
def logprobs(model):
    """Return the log-probs of every token after the first of `ROWS` by a transformers or PEFT model."""
    return torch.cat(
        [
            model(torch.tensor([row])).logits[0, :-1].log_softmax(-1)[range(len(row) - 1), row[1:]]
            for row in ROWS
        ]
    )


def assert_same(folder, theirs):
    """Hold the decoder's log-probs on a canonical folder against those of a transformers or PEFT model."""
    torch.testing.assert_close(ours(folder), logprobs(theirs), rtol=0, atol=1e-4)


@torch.no_grad()
def ours(folder):
    """Return the same log-probs by the decoder on a canonical folder."""
    return load(folder)[0].logprobs(Batch([(row[:1], row[1:]) for row in ROWS]))


def brought(source, name="out", dtype="float32"):
    """Bring a base in at the door; return its canonical folder, `name` beside it."""
    out = source.with_name(name)
    bring_base(str(source), out, dtype)
    return out


def refused(match, call, *arguments):
    """Return the one line with which a call is refused."""
    with pytest.raises(UserError, match=match) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def refused_base(match, source):
    """Return the one line about a base at the door, which names it and leaves nothing behind."""
    out = source.with_name("refused")
    said = refused(match, bring_base, str(source), out, "float32")
    assert said.startswith(str(source)) and f".{out.name}." not in said and not out.exists()
    return said


def refused_teacher(match, adapter, base, dtype="float32"):
    """Let the door refuse an adapter on a canonical base, and leave nothing behind."""
    out = adapter.with_name("refused")
    refused(match, bring_teacher, str(adapter), base, out, dtype)
    assert not out.exists()


def edit(path, drop=(), **changes):
    """Change keys of a JSON file."""
    value = json.loads(Path(path).read_text()) | changes
    Path(path).write_text(json.dumps({key: item for key, item in value.items() if key not in drop}))


def edit_tensors(folder, change, name="model.safetensors"):
    """Replace the tensors of a file by what `change` makes of them."""
    tensors = change({key: value.clone() for key, value in load_file(folder / name).items()})
    save_file(tensors, folder / name, metadata={"format": "pt"})
