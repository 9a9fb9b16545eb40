"""Checkpoints on disk: sharded, tied, untied, half precision; LoRA merged as PEFT does it; clear errors."""

import json

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer as Core
from tokenizers import models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from projected_grpo.errors import UserError
from projected_grpo.model.batch import Batch
from projected_grpo.model.load import load, load_weights, save_weights
from projected_grpo.model.small_tokenizer import train_tokenizer
from projected_grpo.model.tokenizer import Tokenizer

BATCH = [([1, 2, 3], [6, 7]), ([4, 5], [8])]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}{% endif %}"
)


def write_checkpoint(folder, tied=True, dtype=torch.float32, shard="1GB"):
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, tie_word_embeddings=tied, initializer_range=0.2,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config).to(dtype).eval()
    model.save_pretrained(folder, max_shard_size=shard)
    core = Core(models.WordLevel({f"w{i}": i for i in range(60)} | {"[UNK]": 60}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|endoftext|>", eos_token="<|im_end|>", unk_token="[UNK]",
        additional_special_tokens=["<|im_start|>"],
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return model


def write_lora(base, folder, **options):
    torch.manual_seed(1)
    lora = get_peft_model(base, LoraConfig(target_modules=["q_proj", "down_proj"], **options))
    for name, p in lora.named_parameters():
        if "lora_" in name:
            p.data = 0.3 * torch.randn_like(p)
    lora.save_pretrained(folder)


def logprobs(model) -> torch.Tensor:
    rows = []
    for prompt, completion in BATCH:
        ids = torch.tensor([prompt + completion])
        logp = model(ids).logits[0].float().log_softmax(-1)
        rows.append(logp[range(len(prompt) - 1, ids.shape[1] - 1), completion])
    return torch.cat(rows)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shard", ["1GB", "4KB"])
def test_checkpoint_folder_equals_transformers(tmp_path, tied, shard):
    reference = write_checkpoint(tmp_path, tied=tied, shard=shard)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (shard == "4KB")
    model, tokenizer = load(tmp_path)
    torch.testing.assert_close(model.logprobs(Batch(BATCH)), logprobs(reference), rtol=1e-5, atol=1e-5)
    assert tokenizer.decode(tokenizer.encode("w3 w5")) == "w3 w5"
    assert load_weights(tmp_path, "bfloat16").dtype == torch.bfloat16


@pytest.mark.parametrize(
    "options",
    [{"r": 4, "lora_alpha": 8}, {"r": 4, "lora_alpha": 8, "use_rslora": True},
     {"r": 4, "lora_alpha": 8, "alpha_pattern": {"q_proj": 32}, "rank_pattern": {"down_proj": 2}}],
    ids=["plain", "rslora", "patterns"],
)  # fmt: skip
def test_lora_is_merged_as_peft_does(tmp_path, options):
    base = write_checkpoint(tmp_path / "base")
    write_lora(base, tmp_path / "lora", **options)
    merged = PeftModel.from_pretrained(Qwen3ForCausalLM.from_pretrained(tmp_path / "base"), tmp_path / "lora")
    merged = merged.merge_and_unload()
    model = load_weights(tmp_path / "base", teacher=tmp_path / "lora")
    torch.testing.assert_close(model.logprobs(Batch(BATCH)), logprobs(merged), rtol=1e-5, atol=1e-5)
    plain = load_weights(tmp_path / "base").logprobs(Batch(BATCH))
    assert (plain - logprobs(merged)).abs().max() > 0.05


def test_lora_is_merged_in_fp32_and_rounded_once(tmp_path):
    base = write_checkpoint(tmp_path / "base")
    write_lora(base, tmp_path / "lora", r=4, lora_alpha=8)
    exact = load_weights(tmp_path / "base", "float32", teacher=tmp_path / "lora")
    half = load_weights(tmp_path / "base", "bfloat16", teacher=tmp_path / "lora")
    for name, W in exact.weights.items():
        assert torch.equal(half.weights[name], W.bfloat16())


def test_saved_weights_load_in_transformers(tmp_path):
    reference = write_checkpoint(tmp_path / "a")
    save_weights(load_weights(tmp_path / "a"), tmp_path / "b")
    again = Qwen3ForCausalLM.from_pretrained(tmp_path / "b")
    torch.testing.assert_close(logprobs(again), logprobs(reference), rtol=1e-6, atol=1e-6)
    same = load_weights(tmp_path / "b")
    assert same.config == load_weights(tmp_path / "a").config


def test_chat_template(tmp_path):
    write_checkpoint(tmp_path)
    tokenizer = Tokenizer(tmp_path)
    ids = tokenizer.encode_chat("w1 w2")
    assert ids == tokenizer.encode_chat([{"role": "user", "content": "w1 w2"}])
    text = tokenizer.decode(ids, special=True)
    assert text.count("<|im_start|>") == 2 and "w1 w2" in text
    assert tokenizer.chat("w1").endswith("<think></think>")
    assert tokenizer.encode_chat("<|im_start|>w1") == tokenizer.encode("<|im_start|>w1")
    assert len(tokenizer.encode_chat("<|im_start|>w1")) == 2
    assert tokenizer.end == tokenizer.encode("<|im_end|>")[0]
    assert tokenizer.pad == tokenizer.encode("<|endoftext|>")[0]
    assert tokenizer.decode([1, tokenizer.end, tokenizer.pad]).strip() == "w1"


@pytest.mark.parametrize("kind", ["TokenizersBackend", "Qwen2Tokenizer"])
def test_a_tokenizer_is_that_of_transformers_with_and_without_a_class_of_its_own(tmp_path, kind):
    train_tokenizer(["def f(x): return x + 12", "print('all tests passed')"] * 9, tmp_path, 280)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings, "tokenizer_class": kind}))
    ours, theirs = Tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    text = "def g(x): return 'né' + 7<|im_end|>"
    ids = theirs.encode(text, add_special_tokens=False)
    assert ours.encode(text) == ours.encode_batch([text])[0] == ids
    for special in (False, True):
        assert ours.decode(ids, special) == theirs.decode(
            ids, skip_special_tokens=not special, clean_up_tokenization_spaces=False
        )
    chat = [{"role": "system", "content": " a\n"}, {"role": "user", "content": "{{ b }}"}]
    assert ours.chat(chat) == theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert (ours.end, ours.pad, ours.size) == (theirs.eos_token_id, theirs.pad_token_id, len(theirs))


def test_what_is_no_checkpoint_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    write_checkpoint(tmp_path / "ok")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/config.json").write_text(json.dumps({"model_type": "gemma3"}))
    (tmp_path / "torn").mkdir()
    for file in (tmp_path / "ok").iterdir():
        (tmp_path / "torn" / file.name).write_bytes(file.read_bytes()[:100])
    cases = {
        "/no/such/folder": "no such folder", tmp_path / "empty": "config.json",
        tmp_path / "other": "gemma3", tmp_path / "torn": "not JSON", "nobody/no-model": "nobody/no-model",
    }  # fmt: skip
    for model, word in cases.items():
        with pytest.raises(UserError, match=word) as error:
            load(model)
        assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="folder's path"):
        load("nobody/no-model")
    with pytest.raises(UserError, match="adapter_config"):
        load_weights(tmp_path / "ok", teacher=tmp_path / "empty")
    with pytest.raises(UserError, match="float32"):
        load_weights(tmp_path / "ok", dtype="float31")
    (tmp_path / "ok/model.safetensors").write_bytes(b"junk")
    with pytest.raises(UserError, match="damaged"):
        load_weights(tmp_path / "ok")
