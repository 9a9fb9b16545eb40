"""Tiny given checkpoints and adapters as transformers and PEFT write them, and what those say of token rows."""

import json
from pathlib import Path

import torch
from families import reference
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Core
from tokenizers import decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

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


def adapter(base, folder, noise=0.2, config=LoraConfig, **options):
    """Write a PEFT adapter on the checkpoint `base` with other than its first weights; return PEFT's model."""
    torch.manual_seed(5)
    lora = {"r": 3, "lora_alpha": 6} if config is LoraConfig else {}
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base),
        config(**({"target_modules": ["v_proj", "gate_proj"], **lora} | options)),
    )
    for name, p in model.named_parameters():
        if p.requires_grad and "lora_magnitude" not in name:
            p.data += noise * torch.randn_like(p)
    model.save_pretrained(folder)
    return model.eval()


@torch.no_grad()
def logprobs(model):
    """Return the log-probs of every token after the first of `ROWS` by a transformers or PEFT model."""
    return torch.cat(
        [
            model(torch.tensor([row])).logits[0, :-1].log_softmax(-1)[range(len(row) - 1), row[1:]]
            for row in ROWS
        ]
    )


def edit(path, drop=(), **changes):
    """Change keys of a JSON file."""
    value = json.loads(Path(path).read_text()) | changes
    Path(path).write_text(json.dumps({key: item for key, item in value.items() if key not in drop}))


def edit_tensors(folder, change, name="model.safetensors"):
    """Replace the tensors of a file by what `change` makes of them."""
    tensors = change({key: value.clone() for key, value in load_file(folder / name).items()})
    save_file(tensors, folder / name, metadata={"format": "pt"})
