"""Given models and teachers come in as transformers and PEFT have them, or are refused in one line."""

import json
from datetime import date

import gguf
import peft
import pytest
import torch
from families import VARIANTS
from given import CHATML, ROWS, adapter, checkpoint, edit, edit_tensors, logprobs
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from projected_grpo.errors import UserError
from projected_grpo.evaluator.jobs import local_critic
from projected_grpo.model import agreement, door, offered
from projected_grpo.model.batch import Batch
from projected_grpo.model.door import bring_base, bring_teacher
from projected_grpo.model.load import check_digests, load, load_weights
from projected_grpo.model.sampler import sample, uniforms
from projected_grpo.model.tokenizer import Tokenizer

CHAT = [
    {"role": "system", "content": "Keep x < 3 & don't stop"},
    {"role": "user", "content": "t1"},
    {"role": "assistant", "content": "t2 é"},
    {"role": "user", "content": "t3"},
]


def ours(folder):
    with torch.no_grad():
        return load(folder)[0].logprobs(Batch([(row[:1], row[1:]) for row in ROWS]))


def refused(match, bring, *arguments):
    with pytest.raises(UserError, match=match) as error:
        bring(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def base(tmp_path):
    checkpoint(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def canonical(base, tmp_path):
    bring_base(str(base), tmp_path / "canonical", "float32")
    return tmp_path / "canonical"


# --- bases ---


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_base_of_every_family_is_as_transformers_has_it(variant, tmp_path):
    model = checkpoint(tmp_path / "base", variant)
    found = bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    assert 0 < found.largest <= found.bound
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(model), rtol=0, atol=1e-4)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    torch.testing.assert_close(logprobs(again), logprobs(model), rtol=0, atol=1e-5)
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["model_type"] == VARIANTS[variant][0] and config["dtype"] == "float32"


def test_a_base_is_the_same_bytes_each_time_and_half_as_wide_in_bfloat16(base, tmp_path):
    for name, dtype in (("a", "float32"), ("b", "float32"), ("half", "bfloat16")):
        bring_base(str(base), tmp_path / name, dtype)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    single, half = load_weights(tmp_path / "a"), load_weights(tmp_path / "half", "bfloat16")
    assert all(torch.equal(half.weights[name], W.bfloat16()) for name, W in single.weights.items())


def test_shards_leave_an_index_that_transformers_does_not_read(tmp_path):
    model = checkpoint(tmp_path / "base", shard="6KB")
    model.model.layers[1].mlp.up_proj.weight.data *= 1.7
    model.save_pretrained(tmp_path / "base")
    bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(model), rtol=0, atol=1e-4)


def test_a_head_of_its_own_is_used_whatever_the_config_says(base, tmp_path):
    def own_head(tensors):
        embedding = tensors["model.embed_tokens.weight"]
        return tensors | {"lm_head.weight": embedding + 0.3 * torch.randn_like(embedding)}

    edit_tensors(base, own_head)
    bring_base(str(base), tmp_path / "out", "float32")
    theirs = AutoModelForCausalLM.from_pretrained(base)
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(theirs), rtol=0, atol=1e-4)
    assert json.loads((tmp_path / "out/config.json").read_text())["tie_word_embeddings"] is False


UNKNOWN = {"quant_method": "mystery", "bits": 8}
FLOAT8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def test_float8_weights_get_their_scales(base, tmp_path):
    edit_tensors(base, scaled)
    file = load_file(base / "model.safetensors")
    plain = {
        name: W.float() * file[name + "_scale_inv"] for name, W in file.items() if name + "_scale_inv" in file
    }
    edit(base / "config.json", quantization_config=FLOAT8)
    bring_base(str(base), tmp_path / "out", "float32")
    weights = load_weights(tmp_path / "out").weights
    assert len(plain) == 21
    for name, W in plain.items():
        torch.testing.assert_close(weights[name], W, rtol=1e-2, atol=1e-6)  # transformers rounds to bfloat16
    theirs = AutoModelForCausalLM.from_pretrained(base)
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(theirs.float()), rtol=0, atol=1e-4)
    edit(base / "config.json", drop=["quantization_config"])
    refused("21 unexpected keys", bring_base, str(base), tmp_path / "none", "float32")


def test_float8_blocks_that_fit_get_theirs(base, tmp_path):
    edit_tensors(base, lambda tensors: in_blocks(tensors, 8))
    file = load_file(base / "model.safetensors")
    edit(base / "config.json", quantization_config=FLOAT8 | {"weight_block_size": [8, 8]})
    bring_base(str(base), tmp_path / "out", "float32")
    weights = load_weights(tmp_path / "out").weights
    for name in (name for name in weights if "_proj" in name):
        wide = file[name + "_scale_inv"].repeat_interleave(8, 0).repeat_interleave(8, 1)
        torch.testing.assert_close(weights[name], file[name].float() * wide, rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_biases_that_are_codes_are_refused(tmp_path, dtype):
    checkpoint(tmp_path / "base", "qwen2")
    codes = lambda W: (W / W.abs().max() * 100).round().to(dtype)  # noqa: E731
    change = lambda tensors: {k: codes(W) if k.endswith("bias") else W for k, W in tensors.items()}  # noqa: E731
    edit_tensors(tmp_path / "base", change)
    match = f"k_proj.bias is {dtype} in the file, without a quantization_config"
    refused(match, bring_base, str(tmp_path / "base"), tmp_path / "out", "float32")


def without(name):
    return lambda tensors: {key: W for key, W in tensors.items() if key != name}


def with_tensor(name, value):
    return lambda tensors: tensors | {name: value}


def not_finite(value, dtype=torch.float32):
    """A weight that every text needs, or one of a token that no text has and float64 alone can hold."""

    def change(tensors):
        wide = dtype == torch.float64
        name = "model.embed_tokens.weight" if wide else "model.layers.2.mlp.up_proj.weight"
        tensors = {key: W.to(dtype) for key, W in tensors.items()}
        tensors[name][259 if wide else 0, 0] = value
        return tensors

    return change


@pytest.mark.parametrize(
    ("change", "match"),
    [(without("model.layers.1.mlp.up_proj.weight"), "1 missing keys, first model.layers.1.mlp.up_proj.weight"),
     (with_tensor("model.layers.7.mlp.up_proj.weight", torch.ones(3)), "1 unexpected keys"),
     (with_tensor("model.layers.1.self_attn.q_proj.bias", torch.ones(48)), "1 unexpected keys"),
     (with_tensor("model.layers.1.mlp.up_proj.weight", torch.ones(3, 4)),
      r"1 mismatched keys, first model.layers.1.mlp.up_proj.weight \(\(3, 4\) for \(40, 32\)\)"),
     (not_finite(float("nan")), "not finite"), (not_finite(float("-inf")), "not finite"),
     (not_finite(1e39, torch.float64), "embed_tokens.weight has weights that are not finite in float32")],
)  # fmt: skip
def test_weights_that_transformers_would_fill_or_drop_are_refused(base, tmp_path, change, match):
    edit_tensors(base, change)
    said = refused(match, bring_base, str(base), tmp_path / "out", "float32")
    assert said.startswith(str(base)) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("spoil", "match"),
    [(lambda d: (d / "model.safetensors").write_bytes(b"junk"), "cannot be read"),
     (lambda d: (d / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n"), "cannot be"),
     (lambda d: (d / "model.safetensors").unlink(), "cannot be read"),
     (lambda d: (d / "config.json").write_text("{"), "cannot be read"),
     (lambda d: (d / "config.json").unlink(), "a folder without config.json"),
     (lambda d: (d / "tokenizer.json").write_text("{}"), "cannot be read"),
     (lambda d: (d / "chat_template.jinja").unlink(), "no chat template"),
     (lambda d: (d / "chat_template.jinja").write_text("{% for %}"), "template"),
     (lambda d: (d / "chat_template.jinja").write_text("{{ messages[0].content[0].text.x }}"), "template|cannot be"),
     (lambda d: (d / "chat_template.jinja").write_text("{{ raise_exception('no') }}"), "does not take messages"),
     (lambda d: edit(d / "tokenizer_config.json", split_special_tokens=True), "other token ids"),
     (lambda d: edit(d / "config.json", model_type="gpt_neox"), "model_type: 'gpt_neox' is not run"),
     (lambda d: edit(d / "config.json", hidden_act="gelu"), "hidden_act: 'gelu' is not run"),
     (lambda d: (d / "chat_template.jinja").write_text("{{ 1 // 0 }}"), "ZeroDivisionError"),
     (lambda d: (d / "chat_template.jinja").write_text(BY_PLACE), "base: chat template: the template does not take"),
     (lambda d: (d / "chat_template.jinja").write_text("\n"), "leaves 0 tokens of 'What is"),
     (lambda d: (d / "generation_config.json").write_text('{"eos_token_id": 2.5}'), "eos_token_id 2.5, allowed: ids"),
     (lambda d: edit(d / "tokenizer.json", model={"type": "WordLevel", "vocab": {"t1": 0}, "unk_token": "?"}),
      "Missing .UNK."),
     (lambda d: edit(d / "tokenizer.json", normalizer={"type": "Precompiled", "precompiled_charsmap": ""}),
      "PanicException: Precompiled: Error"),
     (lambda d: edit(d / "config.json", quantization_config=FLOAT8) or edit_tensors(d, coded(torch.float8_e4m3fn)),
      "does not turn its weights into plain ones .*allowed: plain weights, or codes with all their scales"),
     (lambda d: edit(d / "config.json", quantization_config=UNKNOWN), "it knows no quant_method 'mystery'"),
     (lambda d: edit(d / "config.json", quantization_config=UNKNOWN) or edit_tensors(d, coded(torch.bfloat16)),
      "it knows no quant_method 'mystery'"),
     (lambda d: edit_tensors(d, coded(torch.int8)), "down_proj.weight is torch.int8 in the file, without a quant"),
     (lambda d: edit_tensors(d, coded(torch.float8_e4m3fn)), "down_proj.weight is torch.float8_e4m3fn in the file"),
     (lambda d: edit_tensors(d, coded(torch.int8)) or as_bin(d), "is torch.int8 in the file"),
     (lambda d: edit(d / "config.json", quantization_config=FLOAT8 | {"modules_to_not_convert": ["model.layers.1"]})
      or edit_tensors(d, lambda tensors: scaled(tensors, but="layers.1")), "layers.1.* without scales"),
     (lambda d: edit(d / "config.json", quantization_config=FLOAT8) or edit_tensors(d, as_bytes),
      "down_proj.weight is torch.uint8 in the file, where float8 is said"),
     (lambda d: edit(d / "config.json", quantization_config=FLOAT8 | {"weight_block_size": [24, 24]})
      or edit_tensors(d, lambda tensors: in_blocks(tensors, 24)), r"allowed: whole blocks of \(24, 24\)"),
     (lambda d: (d / "chat_template.jinja").write_text(SET_WITHIN), "sets 'tail' inside of {% generation %}"),
     (lambda d: edit(d / "config.json", drop=["intermediate_size"]),
      "config.json: no intermediate_size, allowed"),
     (lambda d: (d / "generation_config.json").write_text('{"eos_token_id": [258, 256'), "generation_config.json"),
     (lambda d: (d / "generation_config.json").write_text("[1]"), "cannot be read"),
     (lambda d: adapter(d, d), "adapter_config.json beside the model"),
     (lambda d: edit(d / "config.json", rms_norm_eps="?"), "Validation error for field 'rms_norm_eps': .*'\\?'"),
     (lambda d: edit(d / "config.json", num_attention_heads=3), "mismatched keys")],
)  # fmt: skip
def test_what_is_no_checkpoint_is_one_line(base, tmp_path, spoil, match):
    spoil(base)
    said = refused(match, bring_base, str(base), tmp_path / "out", "float32")
    assert said.startswith(str(base)) and len(said) < 700 and ".out." not in said


# A filter's arguments as transformers alone takes them, in chats that end with their first message.
BY_PLACE = (
    "{% if not messages[1:] %}{{ messages[0].content | tojson(false, none, none, true) }}{% endif %}" + CHATML
)


# Transformers forgets what is set there at its end, which shows in no chat that is compared.
SET_WITHIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% set tail = 'A' %}"
    "{% generation %}{% set tail = 'B' %}{{ m.content }}{% endgeneration %}"
    "{{ tail if 'zq' in m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def coded(dtype):
    """Layers as whole numbers of a dtype, without the scales that they were divided by."""
    codes = lambda W: (W / W.abs().max() * 100).round().to(dtype)  # noqa: E731
    return lambda tensors: {name: codes(W) if "_proj" in name else W for name, W in tensors.items()}


def scaled(tensors, but=None):
    """Layers as float8 and their scales; those of the layer `but` without."""
    out = dict(tensors)
    for name, W in tensors.items():
        if "_proj" in name:
            scale = W.abs().max() / 448
            out[name] = (W / scale).to(torch.float8_e4m3fn)
            if but is None or but not in name:
                out[name + "_scale_inv"] = scale.reshape(1, 1)
    return out


def as_bytes(tensors):
    """Layers as float8 and their scales, the codes as whole numbers of eight bits."""
    codes = scaled(tensors)
    return {k: W.view(torch.uint8) if W.dtype == torch.float8_e4m3fn else W for k, W in codes.items()}


def in_blocks(tensors, side):
    """Layers as float8 with a scale for each block, the last of which may be smaller."""
    out = dict(tensors)
    for name, W in tensors.items():
        if "_proj" in name:
            height, width = (-(-length // side) for length in W.shape)
            scales = torch.rand(height, width) + 0.01
            wide = scales.repeat_interleave(side, 0).repeat_interleave(side, 1)[: W.shape[0], : W.shape[1]]
            out[name], out[name + "_scale_inv"] = (W / wide).to(torch.float8_e4m3fn), scales
    return out


def as_bin(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize(("variant", "key"), [("mistral", "attention_bias"), ("qwen3", "mlp_bias")])
def test_a_key_that_the_family_does_not_read_is_not_read(variant, key, tmp_path):
    model = checkpoint(tmp_path / "base", variant)
    edit(tmp_path / "base/config.json", **{key: True})
    bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(model), rtol=0, atol=1e-4)


def test_a_window_within_which_the_texts_do_not_fit_is_one_line(tmp_path):
    checkpoint(tmp_path / "base", "mistral", sliding_window=512)
    refused(
        "base: sliding_window: .* allowed: 512",
        bring_base,
        str(tmp_path / "base"),
        tmp_path / "out",
        "float32",
    )


def test_a_token_beyond_the_vocabulary_is_one_line(tmp_path):
    """As where tokens were added and the embedding was not made larger."""
    model = checkpoint(tmp_path / "base", template="<|new|>" + CHATML)
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens = json.loads((tmp_path / "base/tokenizer.json").read_text())["added_tokens"]
    tokens += [{"id": 259 + i, "content": name, **added} for i, name in enumerate(("<|free|>", "<|new|>"))]
    edit(tmp_path / "base/tokenizer.json", added_tokens=tokens)
    assert model.config.vocab_size == 260
    match = r"base: token 260 \('<\|new\|>'\), allowed: below vocab_size 260"
    refused(match, bring_base, str(tmp_path / "base"), tmp_path / "out", "float32")
    (tmp_path / "base/chat_template.jinja").write_text(CHATML)  # other texts have it
    refused(match, bring_base, str(tmp_path / "base"), tmp_path / "out", "float32")
    edit(tmp_path / "base/tokenizer.json", added_tokens=tokens[:-1])
    bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    edit(tmp_path / "base/tokenizer_config.json", pad_token="<|pad|>")
    match = r"base: token 260 \('<\|pad\|>'\), allowed"
    refused(match, bring_base, str(tmp_path / "base"), tmp_path / "out", "float32")


def test_a_merge_beyond_the_vocabulary_is_one_line(base, tmp_path):
    model = json.loads((base / "tokenizer.json").read_text())["model"]
    edit(
        base / "tokenizer.json", model=model | {"vocab": model["vocab"] | {"qz": 300}, "merges": [["q", "z"]]}
    )
    refused(r"token 300 \('qz'\), allowed", bring_base, str(base), tmp_path / "out", "float32")


@pytest.mark.parametrize(
    "changes", [{"rope_parameters": "yarn"}, {"model_type": ["llama"]}, {"layer_types": 3}]
)
def test_a_config_of_other_things_is_one_line_before_any_job(base, changes):
    edit(base / "config.json", **changes)
    assert refused("cannot be read", offered.problem, str(base), offered.BASE).startswith(str(base))


def test_a_config_of_nests_is_one_line_before_any_job(base):
    (base / "config.json").write_text("[" * 100_000)
    assert refused("cannot be read", offered.problem, str(base), offered.BASE).startswith(str(base))


@pytest.mark.parametrize(
    ("name", "match"),
    [("x" * 300 + "/m", "File name too long"), ("o/m@v\0", "control character"), ("o/m\nn", "a line break")],
)
def test_what_can_be_no_name_is_one_line(name, match, canonical, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    refused(match, bring_base, name, tmp_path / "out", "float32")
    refused(match, bring_teacher, name, canonical, tmp_path / "out", "float32")
    for kind in (offered.BASE, offered.CHECKPOINT, offered.ADAPTER):
        assert match in offered.problem(name, kind)


def test_a_source_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    refused("nobody/model@v2: no such folder", bring_base, "nobody/model@v2", tmp_path / "out", "float32")
    refused(r"none\.gguf: no such file", bring_base, "none.gguf", tmp_path / "out", "float32")


def test_a_forward_that_differs_is_refused(base, tmp_path, monkeypatch):
    """As where a family has more than the table says."""
    named = door.given.named_weights

    def changed(model):
        return {
            name: 1.001 * W if name == "model.layers.1.mlp.up_proj.weight" else W
            for name, W in named(model).items()
        }

    monkeypatch.setattr(door.given, "named_weights", changed)
    said = refused("differs by", bring_base, str(base), tmp_path / "out", "float32")
    assert "from transformers', allowed: " in said


@pytest.mark.parametrize("beside", ["well above", "just below"])
def test_a_large_model_that_a_teacher_leaves_as_it_is_is_refused(
    base, canonical, tmp_path, monkeypatch, beside
):
    """Just below: the adapter's own parameters would make it large."""
    own = sum(W.numel() for W in load_weights(canonical).weights.values())
    monkeypatch.setattr(agreement, "LARGE", 10 if beside == "well above" else own)
    adapter(base, tmp_path / "adapter", layers_to_transform=[2])
    bring_teacher(
        str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32"
    )  # of a layer not compared
    edit_tensors(tmp_path / "adapter", zeros, "adapter_model.safetensors")
    match = "its log-probabilities are the base's"
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "none", "float32")


def test_of_a_large_model_the_first_layers_are_compared_unless_asked(base, tmp_path, monkeypatch):
    monkeypatch.setattr(agreement, "LARGE", 10)
    named = door.given.named_weights

    def changed(model):
        return {
            name: 1.01 * W if name == "model.layers.2.mlp.up_proj.weight" else W
            for name, W in named(model).items()
        }

    monkeypatch.setattr(door.given, "named_weights", changed)
    bring_base(str(base), tmp_path / "out", "float32")  # the third layer is not looked at
    refused("differs by", bring_base, str(base), tmp_path / "full", "float32", True)


def write_gguf(folder, model, path, scaling=None, other=None, drop=None):
    """Write a llama of transformers as llama.cpp has it: q and k turned, tensors by its names.

    scaling: of positions, by its name; other: name of one more tensor; drop: a key that is left out.
    """
    c, tokenizer = model.config, json.loads((folder / "tokenizer.json").read_text())
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    if drop != "attention.head_count_kv":
        writer.add_head_count_kv(c.num_key_value_heads)
    if drop != "attention.layer_norm_rms_epsilon":
        writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_rope_freq_base(500.0)
    if scaling:
        writer.add_rope_scaling_type(scaling)
        writer.add_rope_scaling_factor(4.0)
    if other:
        writer.add_tensor(other, torch.ones(c.head_dim // 2).numpy())
    writer.add_vocab_size(c.vocab_size)
    tokens = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    tokens = [token for token, _ in tokens] + [token["content"] for token in tokenizer["added_tokens"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*tokens, "ab"])
    writer.add_token_types([1] * 256 + [3] * 3 + [1])
    writer.add_token_merges(["a b"])
    if drop != "eos_token_id":
        writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_chat_template(CHATML)
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "ffn_norm"}  # fmt: skip
    for name, p in model.named_parameters():
        W = p.detach()
        if name.startswith("model.layers."):
            _, _, i, part = name.removesuffix(".weight").split(".", 3)
            if part in ("self_attn.q_proj", "self_attn.k_proj"):
                heads = c.num_attention_heads if "q_proj" in part else c.num_key_value_heads
                W = W.view(heads, 2, -1, W.shape[1]).transpose(1, 2).reshape(W.shape)
            named = f"blk.{i}.{names[part]}.weight"
        else:
            named = {
                "model.embed_tokens.weight": "token_embd.weight",
                "model.norm.weight": "output_norm.weight",
            }[name]
        if W.dim() == 2 and part_is_wide(W):
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(named, gguf.quantize(W.numpy(), kind), raw_dtype=kind)
        else:
            writer.add_tensor(named, W.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def part_is_wide(W):
    return W.shape[1] % 32 == 0  # what a block of Q8_0 holds


def test_a_quantised_gguf_file_is_what_transformers_makes_of_it(tmp_path):
    model = checkpoint(tmp_path / "base", "llama")
    write_gguf(tmp_path / "base", model, tmp_path / "model.gguf")
    bring_base(str(tmp_path / "model.gguf"), tmp_path / "out", "float32")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf")
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(theirs), rtol=0, atol=1e-4)
    apart = (logprobs(theirs) - logprobs(model)).abs().max()
    assert 0 < apart < 0.5  # eight bits of each weight are left


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"scaling": gguf.RopeScalingType.LINEAR}, "leaves out rope.scaling.type of it"),
        ({"other": "rope_freqs.weight"}, "leaves out rope_freqs.weight of it"),  # Llama 3's scaling
        ({"other": "blk.0.ffn_up.bias"}, "leaves out blk.0.ffn_up.bias of it"),
        ({"drop": "attention.head_count_kv"}, "no attention.head_count_kv in its metadata"),
        ({"drop": "attention.layer_norm_rms_epsilon"}, "no attention.layer_norm_rms_epsilon in its metadata"),
    ],
)
def test_what_transformers_leaves_out_of_a_gguf_file_is_refused(tmp_path, more, match):
    model = checkpoint(tmp_path / "base", "llama")
    write_gguf(tmp_path / "base", model, tmp_path / "model.gguf", **more)
    refused(match, bring_base, str(tmp_path / "model.gguf"), tmp_path / "out", "float32")


def test_a_gguf_file_without_an_end_token_gets_that_of_a_turn_alone(tmp_path):
    """Transformers gives it a default of its own, which is a letter here."""
    model = checkpoint(tmp_path / "base", "llama")
    write_gguf(tmp_path / "base", model, tmp_path / "model.gguf", drop="eos_token_id")
    assert (
        AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf").generation_config.eos_token_id
        == 2
    )
    bring_base(str(tmp_path / "model.gguf"), tmp_path / "out", "float32")
    tokenizer = Tokenizer(tmp_path / "out")
    assert [tokenizer.core.id_to_token(end) for end in tokenizer.ends] == ["<|im_end|>"]


def test_a_gguf_file_of_the_same_name_in_the_working_folder_is_not_read(tmp_path, monkeypatch):
    model = checkpoint(tmp_path / "base", "llama")
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        write_gguf(tmp_path / "base", model, tmp_path / name / "model.gguf")
        model.model.norm.weight.data *= 2
    monkeypatch.chdir(tmp_path / "there")
    bring_base("../here/model.gguf", tmp_path / "out", "float32")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=str(tmp_path / "here/model.gguf"))
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(theirs), rtol=0, atol=1e-4)


# --- tokenizers and templates ---


def test_a_stored_truncation_cuts_nothing(base, tmp_path):
    text = " ".join(f"t{i}" for i in range(30))
    used = AutoTokenizer.from_pretrained(base)
    used([text], truncation=True, padding="max_length", max_length=8)
    used.save_pretrained(base)
    assert json.loads((base / "tokenizer.json").read_text())["truncation"]["max_length"] == 8
    bring_base(str(base), tmp_path / "out", "float32")
    written = json.loads((tmp_path / "out/tokenizer.json").read_text())
    assert written["truncation"] is None and written["padding"] is None
    tokenizer = Tokenizer(tmp_path / "out")
    assert tokenizer.encode(text) == AutoTokenizer.from_pretrained(base)(text)["input_ids"]
    assert len(tokenizer.encode(text)) > 30 and tokenizer.encode_batch([text]) == [tokenizer.encode(text)]


HEAD = "{% for m in messages %}<|im_start|>{{ m.role }}\n"
TAIL = (
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
TEMPLATES = {
    "plain": CHATML,
    "generation": HEAD + "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}" + TAIL,
    "year": "{{ strftime_now('%Y') }}\n" + HEAD + "{{ m.content }}" + TAIL,
    "eos_token": HEAD + "{{ m.content }}{{ eos_token }}{{ pad_token }}" + TAIL,
    "json": HEAD + "{{ m | tojson }}{{ m.content | tojson(indent=2) }}" + TAIL,
    "tools": "{% if tools is none and documents is defined %}none{% endif %}" + HEAD + "{{ m.content }}" + TAIL,
    "loops": "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
    "{% set ns.n = ns.n + 1 %}<|im_start|>{{ ns.n }}{{ m.role }}\n  {%- if loop.index > 9 %}{% break %}{% endif %}\n"
    "{{ m['content'].strip() + ' ' }}" + TAIL,
    "no system, by chance": "{% if messages[0].role == 'system' %}{{ 1 // 0 }}{% endif %}" + CHATML,
    "no system": "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}" + CHATML,
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_written_for_transformers_gives_the_same_text(name, tmp_path):
    checkpoint(tmp_path / "base", template=TEMPLATES[name])
    bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    theirs, tokenizer = AutoTokenizer.from_pretrained(tmp_path / "base"), Tokenizer(tmp_path / "out")
    chat = CHAT[1:] if name.startswith("no system") else CHAT
    text = theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    assert tokenizer.chat(chat) == text
    if name == "no system":
        refused("does not take messages of system, user.*no system here", tokenizer.chat, CHAT)
    again = AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = again.apply_chat_template(
        chat, add_generation_prompt=True, enable_thinking=False, return_dict=False
    )
    assert ids == tokenizer.encode_chat(chat)


def test_a_date_stays_that_of_the_door(tmp_path):
    checkpoint(tmp_path / "base", template=TEMPLATES["year"])
    bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    settings = json.loads((tmp_path / "out/tokenizer_config.json").read_text())
    assert settings["today"] == date.today().isoformat()
    edit(tmp_path / "out/tokenizer_config.json", today="1999-01-02")
    assert Tokenizer(tmp_path / "out").chat(CHAT).startswith("1999\n")
    checkpoint(tmp_path / "hour", template="{{ strftime_now('%s %f') }}" + CHATML)
    refused("another text here", bring_base, str(tmp_path / "hour"), tmp_path / "none", "float32")


def test_pad_token_as_an_object(base, tmp_path):
    """As transformers 4 writes it."""
    token = {"__type": "AddedToken", "content": "<|endoftext|>", "lstrip": False, "normalized": False}
    edit(base / "tokenizer_config.json", pad_token=token | {"rstrip": False, "single_word": False})
    bring_base(str(base), tmp_path / "out", "float32")
    tokenizer = Tokenizer(tmp_path / "out")
    assert [tokenizer.pad] == tokenizer.encode("<|endoftext|>")


def test_a_prompt_of_another_template_is_refused(canonical):
    tokenizer = Tokenizer(canonical)
    assert tokenizer.chat("<|im_start|>user\nhi") == "<|im_start|>user\nhi"
    assert tokenizer.chat("hi") == tokenizer.chat([{"role": "user", "content": "hi"}])
    refused(
        r"templated with <\|start_header_id\|>", tokenizer.chat, "<|start_header_id|>user<|end_header_id|>"
    )


def test_a_dropout_of_merges_is_of_training_alone(base, tmp_path):
    model = json.loads((base / "tokenizer.json").read_text())["model"]
    merged = model | {"vocab": model["vocab"] | {"zq": 259}, "merges": [["z", "q"]]}
    edit(base / "tokenizer.json", model=merged | {"dropout": 0.5})
    bring_base(str(base), tmp_path / "out", "float32")
    tokenizer = Tokenizer(tmp_path / "out")
    assert {tuple(tokenizer.encode("zq")) for _ in range(20)} == {(259,)}


def test_end_tokens_of_the_config_count_where_the_generation_config_names_none(base, tmp_path):
    ids = AutoTokenizer.from_pretrained(base).convert_tokens_to_ids(
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    )
    edit(base / "config.json", eos_token_id=ids[:2])
    (base / "generation_config.json").write_text('{"temperature": 0.7, "do_sample": true}')
    bring_base(str(base), tmp_path / "out", "float32")
    assert Tokenizer(tmp_path / "out").ends == set(ids)


@pytest.mark.parametrize(
    ("template", "said", "expected"),
    [(CHATML, None, ["<|im_end|>"]), (CHATML, ["<|endoftext|>"], ["<|im_end|>", "<|endoftext|>"]),
     (CHATML, ["<|endoftext|>", "<|im_end|>"], ["<|im_end|>", "<|endoftext|>"]),
     ("{% for m in messages %}[{{ m.role }}] {{ m.content }} {{ pad_token }}{% endfor %}", None,
      ["<|endoftext|>", "<|im_end|>"]),
     ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}", ["<|endoftext|>"], ["<|endoftext|>"]),
     (CHATML.replace("m.content", "m.content | upper"), None, ["<|im_end|>"]),
     (CHATML.replace("m.content", "m.content if m.role == 'user'"), None, ["<|im_end|>"]),
     ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}", None, ["<|im_end|>"])],
)  # fmt: skip
def test_end_tokens_are_that_of_a_turn_and_all_of_the_model(tmp_path, template, said, expected):
    checkpoint(tmp_path / "base", template=template)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "base")
    if said:
        ids = tokenizer.convert_tokens_to_ids(said)
        (tmp_path / "base/generation_config.json").write_text(json.dumps({"eos_token_id": ids}))
    bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    found = Tokenizer(tmp_path / "out")
    wanted = tokenizer.convert_tokens_to_ids(expected)
    assert found.end == wanted[0] and found.ends == set(wanted)
    written = AutoModelForCausalLM.from_pretrained(tmp_path / "out").generation_config.eos_token_id
    assert written == wanted


def test_a_row_stops_at_the_second_end_token_as_in_transformers(tmp_path):
    model = checkpoint(tmp_path / "base", tie_word_embeddings=False)
    first, second = 258, 256
    for name, p in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight", "lm_head.weight")):
            p.data.zero_()
        if "embed_tokens" in name or name == "model.norm.weight":
            p.data.fill_(1.0)
    model.lm_head.weight.data[second] = 9.0
    model.save_pretrained(tmp_path / "base")
    (tmp_path / "base/generation_config.json").write_text(json.dumps({"eos_token_id": [first, second]}))
    bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    decoder, tokenizer = load(tmp_path / "out")
    drawn = sample(decoder, [[1, 2]], 1, uniforms(0, 0, 0, 1, 1, 7), 7, tokenizer.ends)[0].tokens
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    assert drawn == [second] == theirs.generate(torch.tensor([[1, 2]]), max_new_tokens=7)[0, 2:].tolist()


# --- teachers ---

ADAPTERS = {
    "plain": {}, "rslora": {"use_rslora": True}, "dora": {"use_dora": True}, "pissa": {"init_lora_weights": "pissa"},
    "patterns": {"alpha_pattern": {"v_proj": 32}, "rank_pattern": {"gate_proj": 2}},
    "patterns of nothing": {"alpha_pattern": {"w_proj": 32}, "rank_pattern": {"q_proj": 2}},
    "late layer": {"layers_to_transform": [2]},
    "whole head": {"modules_to_save": ["lm_head"]}, "saved head of a tied model": {"modules_to_save": ["lm_head"]},
    "head of a tied model": {"target_modules": ["lm_head", "v_proj"]},
    "embedding of a tied model": {"target_modules": ["embed_tokens", "v_proj"]},
    "both, tied": {"target_modules": ["embed_tokens", "v_proj"], "ensure_weight_tying": True},
    "rows of a tied embedding": {"trainable_token_indices": [5, 7, 20]},
    "vera": {"config": peft.VeraConfig, "r": 4, "save_projection": False},
    "ia3": {"config": peft.IA3Config, "target_modules": ["v_proj", "down_proj"], "feedforward_modules": ["down_proj"]},
    "loha": {"config": peft.LoHaConfig, "r": 2, "alpha": 4}, 
    "oft": {"config": peft.OFTConfig, "r": 2, "oft_block_size": 0},
}  # fmt: skip


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_that_peft_can_merge_is_merged_as_peft_does(name, tmp_path):
    checkpoint(tmp_path / "base", tie_word_embeddings=name != "whole head")
    adapter(tmp_path / "base", tmp_path / "adapter", **ADAPTERS[name])
    bring_base(str(tmp_path / "base"), tmp_path / "canonical", "float32")
    bring_teacher(str(tmp_path / "adapter"), tmp_path / "canonical", tmp_path / "teacher", "float32")
    theirs = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(tmp_path / "base"), tmp_path / "adapter"
    ).eval()
    torch.testing.assert_close(ours(tmp_path / "teacher"), logprobs(theirs), rtol=0, atol=1e-4)
    assert (ours(tmp_path / "teacher") - ours(tmp_path / "canonical")).abs().max() > 0.01
    assert Tokenizer(tmp_path / "teacher").ends == Tokenizer(tmp_path / "canonical").ends


def test_a_teacher_is_merged_in_float32_and_rounded_once(base, tmp_path):
    adapter(base, tmp_path / "adapter")
    for dtype in ("float32", "bfloat16"):
        bring_base(str(base), tmp_path / f"{dtype}-base", dtype)
    bring_teacher(str(tmp_path / "adapter"), tmp_path / "bfloat16-base", tmp_path / "half", "bfloat16")
    bring_teacher(str(tmp_path / "adapter"), tmp_path / "bfloat16-base", tmp_path / "exact", "float32")
    half = load_weights(tmp_path / "half", "bfloat16")
    for name, W in load_weights(tmp_path / "exact").weights.items():
        assert torch.equal(half.weights[name], W.bfloat16())


def test_what_an_adapter_takes_out_of_a_rounded_base_is_rounded_as_peft_does(base, tmp_path):
    canonical = tmp_path / "canonical"
    bring_base(str(base), canonical, "bfloat16")
    adapter(canonical, tmp_path / "adapter", init_lora_weights="pissa")
    bring_teacher(str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")
    rounded = AutoModelForCausalLM.from_pretrained(canonical, dtype="auto")
    assert rounded.dtype == torch.bfloat16
    theirs = PeftModel.from_pretrained(rounded, str(tmp_path / "adapter")).float().eval()
    torch.testing.assert_close(ours(tmp_path / "out"), logprobs(theirs), rtol=0, atol=1e-4)


def zeros(tensors):
    return {key: torch.zeros_like(W) if "lora_B" in key else W for key, W in tensors.items()}


def renamed(tensors):
    return {key.replace("layers.1", "layers.9"): W for key, W in tensors.items()}


@pytest.mark.parametrize(
    ("change", "match"),
    [(lambda tensors: {}, "PEFT did not load it whole|keys of the adapter are missing"),
     (lambda tensors: {k: torch.zeros(0) for k in tensors}, "cannot be read"),
     (zeros, "its log-probabilities are the base's"), (renamed, "did not load it whole|fit no module|are missing"),
     (lambda tensors: {k: W for k, W in tensors.items() if "layers.1" not in k}, "did not load it whole|are missing"),
     (lambda tensors: tensors | {"base_model.model.model.layers.0.mlp.up_proj.lora_A.weight": torch.ones(3, 32)},
      "1 keys of the adapter fit no module"),
     (lambda tensors: {k: W * float("nan") for k, W in tensors.items()}, "not finite|NaN|cannot be read"),
     (lambda tensors: {k: (30 * W).to(torch.int8) for k, W in tensors.items()}, "is torch.int8 in the file, allowed"),
     (lambda tensors: {k: W.to(torch.float8_e4m3fn) for k, W in tensors.items()}, "is torch.float8_e4m3fn in the")],
)  # fmt: skip
def test_an_adapter_that_peft_would_not_load_whole_is_refused(base, canonical, tmp_path, change, match):
    adapter(base, tmp_path / "adapter")
    edit_tensors(tmp_path / "adapter", change, "adapter_model.safetensors")
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()


def test_an_adapter_that_is_lost_in_rounding_is_refused(base, tmp_path):
    adapter(base, tmp_path / "adapter")
    small = lambda t: {k: W * 1.5e-5 if "lora_B" in k else W for k, W in t.items()}  # noqa: E731
    edit_tensors(tmp_path / "adapter", small, "adapter_model.safetensors")
    bring_base(str(base), tmp_path / "canonical", "bfloat16")
    given = (str(tmp_path / "adapter"), tmp_path / "canonical", tmp_path / "out")
    refused("once its weights are rounded to bfloat16", bring_teacher, *given, "bfloat16")
    bring_teacher(*given, "float32")


def test_an_adapter_of_another_base_names_the_shapes(base, canonical, tmp_path):
    adapter(base, tmp_path / "adapter")
    widen = lambda t: {k: torch.ones(3, 64) if "lora_A" in k else W for k, W in t.items()}  # noqa: E731
    edit_tensors(tmp_path / "adapter", widen, "adapter_model.safetensors")
    match = r"size mismatch for .*v_proj\.lora_A"
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")


def test_an_adapter_that_takes_its_part_out_of_the_base_by_chance_is_refused(base, canonical, tmp_path):
    adapter(base, tmp_path / "adapter", init_lora_weights="pissa_niter_4")
    match = "'pissa_niter_4', of which PEFT draws"
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")


def test_an_adapter_whose_start_was_taken_out_in_training_alone_is_refused(base, canonical, tmp_path):
    adapter(base, tmp_path / "adapter")
    edit(tmp_path / "adapter/adapter_config.json", init_lora_weights="lora_ga")
    match = "'lora_ga', whose start PEFT takes out of the base when training begins"
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")


def test_an_adapter_without_weights_is_not_asked_of_the_hub(base, canonical, tmp_path, monkeypatch):
    adapter(base, tmp_path / "adapters/mine")
    (tmp_path / "adapters/mine/adapter_model.safetensors").unlink()
    monkeypatch.chdir(tmp_path)
    match = r"adapters/mine: cannot be read \(no adapter_model.safetensors or adapter_model.bin in it\)"
    refused(match, bring_teacher, "adapters/mine", canonical, tmp_path / "out", "float32")


def test_an_activated_adapter_is_refused(base, canonical, tmp_path):
    adapter(base, tmp_path / "adapter", alora_invocation_tokens=[20])
    match = "PEFT cannot merge it .*aLoRA"
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")


def test_an_adapter_that_repeats_layers_is_refused_by_name(base, canonical, tmp_path):
    adapter(base, tmp_path / "adapter", layer_replication=[[0, 2], [1, 3]])
    match = r"adapter: layer_replication: .*allowed: an adapter of the base's own layers"
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")


@pytest.mark.parametrize("kind", [peft.PromptTuningConfig, peft.PrefixTuningConfig])
def test_an_adapter_that_is_part_of_the_prompt_is_refused(base, canonical, tmp_path, kind):
    config = kind(num_virtual_tokens=3, task_type="CAUSAL_LM")
    peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(
        tmp_path / "adapter"
    )
    match = "allowed: an adapter that can be merged into weights"
    refused(match, bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32")


def test_a_damaged_adapter_is_one_line(base, canonical, tmp_path):
    adapter(base, tmp_path / "adapter")
    file = tmp_path / "adapter/adapter_model.safetensors"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 4711\n")
    refused(
        "cannot be read", bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32"
    )
    file.unlink()
    refused(
        "cannot be read", bring_teacher, str(tmp_path / "adapter"), canonical, tmp_path / "out", "float32"
    )
    refused("without adapter_config", bring_teacher, str(base), canonical, tmp_path / "out", "float32")


# --- critics, which transformers itself runs ---


@pytest.mark.parametrize(
    ("file", "spoil", "match"),
    [("model.safetensors", lambda f: edit_tensors(f.parent, without("model.layers.1.mlp.up_proj.weight")),
      "1 missing keys, first model.layers.1.mlp.up_proj.weight"),
     ("model.safetensors", lambda f: edit_tensors(f.parent, with_tensor("model.norm.weight", torch.ones(3))),
      "1 mismatched keys"),
     ("model.safetensors", lambda f: edit_tensors(f.parent, coded(torch.int8)), "is torch.int8 in the file"),
     ("model.safetensors", lambda f: f.write_bytes(b"junk"), "cannot be read .*Safetensor"),
     ("config.json", lambda f: edit(f, rms_norm_eps="?"), "cannot be read .*rms_norm_eps"),
     ("generation_config.json", lambda f: f.write_text("{"), "cannot be read .*generation_config.json"),
     ("tokenizer.json", lambda f: f.write_text("{}"), "cannot be read"),
     ("adapter_model.safetensors", lambda f: f.write_bytes(b"junk"), "cannot be read .*Safetensor"),
     ("adapter_model.safetensors", lambda f: edit_tensors(f.parent, renamed, f.name), "did not load it whole"),
     ("adapter_config.json", lambda f: f.unlink(), "a folder without adapter_config.json")],
)  # fmt: skip
def test_a_critic_that_transformers_would_fill_in_is_one_line(base, tmp_path, file, spoil, match):
    adapter(base, tmp_path / "adapter")
    spoil((tmp_path / "adapter" if "adapter" in file else base) / file)
    machine = {"device": "cpu", "dtype": "float32"}
    refused(match, local_critic, str(base), str(tmp_path / "adapter"), machine)


def test_a_critic_may_be_of_a_family_that_is_not_run(tmp_path):
    checkpoint(tmp_path / "base")
    sizes = {"vocab_size": 260, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64}
    config = AutoConfig.for_model("gpt2", bos_token_id=None, eos_token_id=258, **sizes)
    (tmp_path / "base/generation_config.json").unlink()
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "base")
    refused("'gpt2' is not run", bring_base, str(tmp_path / "base"), tmp_path / "out", "float32")
    backend = local_critic(
        str(tmp_path / "base"), None, {"device": "cpu", "dtype": "float32", "max_tokens": 2}
    )
    assert [type(reply.text) for reply in backend.answer(["t1"], {}, 0.0, 0)] == [str]


# --- canonical folders ---


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "chat_template.jinja", "tokenizer.json"]
)
def test_a_damaged_canonical_folder_is_not_loaded(canonical, name):
    check_digests(canonical)
    data = (canonical / name).read_bytes()
    (canonical / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    refused(f"{name}: damaged or edited", load, canonical)


def test_a_folder_that_is_not_canonical_is_not_loaded(base):
    refused("no canonical folder", load, base)
