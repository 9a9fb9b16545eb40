"""Given bases come in as transformers has them, or are refused in one line."""

import json

import gguf
import pytest
import torch
from families import LLAMA3, VARIANTS
from gguf_files import write_gguf
from given import (
    CHATML,
    adapter,
    assert_same,
    brought,
    checkpoint,
    edit,
    edit_tensors,
    logprobs,
    refused,
    refused_base,
)
from safetensors.torch import load_file, save_file
from spoiled import as_bytes, coded, float8, scaled, with_tensor, without
from transformers import AutoModelForCausalLM

from projected_grpo.model import agreement, door, offered
from projected_grpo.model.door import bring_base, bring_teacher
from projected_grpo.model.load import check_digests, load, load_weights
from projected_grpo.model.tokenizer import Tokenizer


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_base_of_every_family_is_as_transformers_has_it(variant, tmp_path):
    model = checkpoint(tmp_path / "base", variant)
    found = bring_base(str(tmp_path / "base"), tmp_path / "out", "float32")
    assert 0 < found.largest <= found.bound
    assert_same(tmp_path / "out", model)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    torch.testing.assert_close(logprobs(again), logprobs(model), rtol=0, atol=1e-5)
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["model_type"] == VARIANTS[variant][0] and config["dtype"] == "float32"


def test_a_base_is_the_same_bytes_each_time_and_half_as_wide_in_bfloat16(base):
    one, other = brought(base, "a"), brought(base, "b")
    for file in one.iterdir():
        assert file.read_bytes() == (other / file.name).read_bytes()
    single, half = load_weights(one), load_weights(brought(base, "half", "bfloat16"), "bfloat16")
    assert all(torch.equal(half.weights[name], W.bfloat16()) for name, W in single.weights.items())


def test_shards_leave_an_index_that_transformers_does_not_read(tmp_path):
    model = checkpoint(tmp_path / "base", shard="6KB")
    model.model.layers[1].mlp.up_proj.weight.data *= 1.7
    model.save_pretrained(tmp_path / "base")
    assert_same(brought(tmp_path / "base"), model)


def test_a_head_of_its_own_is_used_whatever_the_config_says(base):
    def own_head(tensors):
        embedding = tensors["model.embed_tokens.weight"]
        return tensors | {"lm_head.weight": embedding + 0.3 * torch.randn_like(embedding)}

    edit_tensors(base, own_head)
    out = brought(base)
    assert_same(out, AutoModelForCausalLM.from_pretrained(base))
    assert json.loads((out / "config.json").read_text())["tie_word_embeddings"] is False


UNKNOWN = {"quant_method": "mystery", "bits": 8}
FLOAT8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def test_float8_weights_get_their_scales(base):
    edit_tensors(base, scaled)
    file = load_file(base / "model.safetensors")
    plain = {
        name: W.float() * file[name + "_scale_inv"] for name, W in file.items() if name + "_scale_inv" in file
    }
    edit(base / "config.json", quantization_config=FLOAT8)
    out = brought(base)
    weights = load_weights(out).weights
    assert len(plain) == 21
    for name, W in plain.items():
        torch.testing.assert_close(weights[name], W, rtol=1e-2, atol=1e-6)  # transformers rounds to bfloat16
    assert_same(out, AutoModelForCausalLM.from_pretrained(base).float())
    edit(base / "config.json", drop=["quantization_config"])
    refused_base("21 unexpected keys", base)


def test_float8_blocks_that_fit_get_theirs(base):
    edit_tensors(base, lambda tensors: scaled(tensors, 8))
    file = load_file(base / "model.safetensors")
    edit(base / "config.json", quantization_config=FLOAT8 | {"weight_block_size": [8, 8]})
    weights = load_weights(brought(base)).weights
    for name in (name for name in weights if "_proj" in name):
        wide = file[name + "_scale_inv"].repeat_interleave(8, 0).repeat_interleave(8, 1)
        torch.testing.assert_close(weights[name], file[name].float() * wide, rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize(
    ("how", "said"),
    [({"scale": "scale"}, {}), ({"scale": "qscale_weight", "dtype": torch.float16}, {}),
     ({"dtype": torch.bfloat16}, {}), ({"dtype": torch.uint8}, {"quant_method": "mxfp8"}),
     ({"dtype": torch.float8_e4m3fn}, {}), ({"grid": "row"}, {"weight_block_size": None}),
     ({"grid": "alone"}, {"weight_block_size": None}), ({"grid": "alone"}, {})],
)  # fmt: skip
def test_float8_scales_of_all_names_dtypes_and_shapes_are_multiplied_in(base, how, said):
    codes, plain = float8(load_file(base / "model.safetensors"), **how)
    edit_tensors(base, lambda tensors: codes)
    edit(base / "config.json", quantization_config=FLOAT8 | {"weight_block_size": [4, 4]} | said)
    weights = load_weights(brought(base)).weights
    assert len(plain) == 22
    for name, W in plain.items():
        torch.testing.assert_close(weights[name], W, rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "match"),
    [(lambda tensors: {k: (W * 1000).to(torch.int8) if "scale" in k else W for k, W in tensors.items()},
      "weight_scale_inv is torch.int8 in the file, allowed: numbers"),
     (with_tensor("model.layers.0.mlp.up_proj.weight", torch.ones(40, 32, dtype=torch.bfloat16)),
      "up_proj.weight is torch.bfloat16 in the file, where float8 is said by .*up_proj.weight_scale_inv"),
     (with_tensor("model.layers.0.mlp.up_proj.scale", torch.ones(10, 8)), "are scales of one weight"),
     (with_tensor("model.layers.0.mlp.up_proj.weight_scale", torch.ones(10, 8)), "1 unexpected keys"),
     (with_tensor("model.layers.0.mlp.up_proj.weight_scale_inv", torch.ones(40, 1)),
      r"\(40, 32\) has scales of \(40, 1\), allowed: whole blocks of \(4, 4\)")],
)  # fmt: skip
def test_float8_scales_that_may_mean_another_weight_are_refused(base, change, match):
    edit_tensors(base, lambda tensors: change(float8(tensors)[0]))
    edit(base / "config.json", quantization_config=FLOAT8 | {"weight_block_size": [4, 4]})
    refused_base(match, base)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_biases_that_are_codes_are_refused(tmp_path, dtype):
    checkpoint(tmp_path / "base", "qwen2")
    edit_tensors(tmp_path / "base", coded(dtype, "bias"))
    refused_base(f"k_proj.bias is {dtype} in the file, without a quantization_config", tmp_path / "base")


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
def test_weights_that_transformers_would_fill_or_drop_are_refused(base, change, match):
    edit_tensors(base, change)
    refused_base(match, base)


UP = "model.layers.0.mlp.up_proj.weight"
SHARDS = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2, 3)]


def sharded(folder, more=None, place=lambda name: name):
    """The file in two shards, the second with the tensors `more`; place: of a shard, by the index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    for file, part in zip(SHARDS, (names[::2], names[1::2]), strict=False):
        added = (more or {}) if file == SHARDS[1] else {}
        save_file({n: tensors[n].clone() for n in part} | added, folder / file, {"format": "pt"})
    places = {n: place(SHARDS[i % 2]) for i, n in enumerate(names)}
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_two_tensors_for_one_weight_are_refused_unless_they_are_the_same(base):
    W = load_file(base / "model.safetensors")[UP]
    sharded(base, {"model.embed_tokens.weight": torch.ones(260, 32)})
    refused_base("embed_tokens.weight is another here than .*allowed: one value", base)
    for name in SHARDS[:2]:
        (base / name).unlink()
    (base / "model.safetensors.index.json").unlink()
    model = checkpoint(base)
    for name in (UP.removeprefix("model."), "model." + UP):
        edit_tensors(base, with_tensor(name, W * 2))
        refused_base("up_proj.weight is another here than", base)
        edit_tensors(base, with_tensor(name, W.clone()))
        assert_same(brought(base), model)
        edit_tensors(base, without(name))


@pytest.mark.parametrize(
    ("spoil", "match"),
    [(lambda d: sharded(d, place=lambda name: f"../{name}") or [(d / n).rename(d.parent / n) for n in SHARDS[:2]],
      "its index names .*allowed: files of the folder"),
     (lambda d: sharded(d) or save_file({UP: torch.ones(40, 32)}, d / SHARDS[2]), "not in the index of its series"),
     (lambda d: sharded(d) or (d / SHARDS[1]).unlink(), "cannot be read .*No such file .*00002-of-00002"),
     (lambda d: (d / "model.safetensors").rename(d / "__0_0.distcp"), "cannot be read .*no file named model"),
     (lambda d: edit_tensors(d, with_tensor("a\nb\u2028c\x1b.weight", torch.ones(1))), r"first a\\nb\\u2028c\\x1b")],
)  # fmt: skip
def test_files_that_are_not_one_checkpoint_are_one_line(base, spoil, match):
    spoil(base)
    refused_base(match, base)


def test_shards_of_an_index_are_read_and_left_over_ones_are_not(base):
    theirs = AutoModelForCausalLM.from_pretrained(base)
    sharded(base)
    save_file({UP: torch.ones(40, 32)}, base / "model-00003-of-00004.safetensors")
    assert_same(brought(base), theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_angles_of_older_checkpoints_are_those_of_the_config(tmp_path, dtype):
    model = checkpoint(tmp_path / "base", "llama")
    name = "model.layers.2.self_attn.rotary_emb.inv_freq"
    angles = 500.0 ** -(torch.arange(0, 8, 2) / 8)
    edit_tensors(tmp_path / "base", with_tensor(name, angles.to(dtype)))
    assert_same(brought(tmp_path / "base"), model)
    edit_tensors(tmp_path / "base", with_tensor(name, (10000.0 ** -(torch.arange(0, 8, 2) / 8)).to(dtype)))
    refused_base("2.self_attn.rotary_emb.inv_freq is not what config.json gives", tmp_path / "base")


@pytest.mark.parametrize("form", [{"rope_theta": 500.0}, {"rope_theta": 500.0, "rope_scaling": None}])
def test_positions_in_the_form_of_older_versions_are_read(base, form):
    theirs = AutoModelForCausalLM.from_pretrained(base)
    edit(base / "config.json", drop=["rope_parameters"], **form)
    assert_same(brought(base), theirs)


@pytest.mark.parametrize("window", [4096, 8192])
def test_the_first_llamas_need_not_name_the_base_of_their_positions(tmp_path, window):
    theirs = checkpoint(
        tmp_path / "base", "llama", rope_parameters={"rope_type": "default", "rope_theta": 1e4}
    )
    edit(tmp_path / "base" / "config.json", drop=["rope_parameters"], max_position_embeddings=window)
    if window > 4096:
        refused_base("config.json: no rope_theta, allowed", tmp_path / "base")
    else:
        assert_same(brought(tmp_path / "base"), theirs)


def text(file, said):
    return lambda folder: (folder / file).write_text(said)


def template(said):
    return text("chat_template.jinja", said)


def quantised(change, **said):
    """The tensors as `change` makes them, in a folder whose config says float8 and `said`."""
    return lambda folder: (
        edit(folder / "config.json", quantization_config=FLOAT8 | said),
        edit_tensors(folder, change),
    )


def as_bin(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


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


@pytest.mark.parametrize(
    ("spoil", "match"),
    [(lambda d: (d / "model.safetensors").write_bytes(b"junk"), "cannot be read"),
     (text("model.safetensors", "version https://git-lfs.github.com/spec/v1\n"), "cannot be"),
     (lambda d: (d / "model.safetensors").unlink(), "cannot be read"),
     (text("config.json", "{"), "cannot be read"),
     (lambda d: (d / "config.json").unlink(), "a folder without config.json"),
     (text("tokenizer.json", "{}"), "cannot be read"),
     (lambda d: (d / "chat_template.jinja").unlink(), "no chat template"),
     (template("{% for %}"), "template"),
     (template("{{ messages[0].content[0].text.x }}"), "template|cannot be"),
     (template("{{ raise_exception('no') }}"), "does not take messages"),
     (lambda d: edit(d / "tokenizer_config.json", split_special_tokens=True), "other token ids"),
     (lambda d: edit(d / "config.json", model_type="gpt_neox"), "model_type: 'gpt_neox' is not run"),
     (lambda d: edit(d / "config.json", hidden_act="gelu"), "hidden_act: 'gelu' is not run"),
     (template("{{ 1 // 0 }}"), "ZeroDivisionError"),
     (template(BY_PLACE), "base: chat template: the template does not take"),
     (template("\n"), "leaves 0 tokens of 'What is"),
     (template("version https://git-lfs.github.com/spec/v1\n"), "base: the chat template writes one text for two"),
     (text("generation_config.json", '{"eos_token_id": 2.5}'), "eos_token_id 2.5, allowed: ids"),
     (lambda d: edit(d / "tokenizer.json", model={"type": "WordLevel", "vocab": {"t1": 0}, "unk_token": "?"}),
      "Missing .UNK."),
     (lambda d: edit(d / "tokenizer.json", normalizer={"type": "Precompiled", "precompiled_charsmap": ""}),
      "PanicException: Precompiled: Error"),
     (quantised(coded(torch.float8_e4m3fn)),
      "does not turn its weights into plain ones .*allowed: plain weights, or codes with all their scales"),
     (lambda d: edit(d / "config.json", quantization_config=UNKNOWN), "it knows no quant_method 'mystery'"),
     (lambda d: edit(d / "config.json", quantization_config=UNKNOWN) or edit_tensors(d, coded(torch.bfloat16)),
      "it knows no quant_method 'mystery'"),
     (lambda d: edit_tensors(d, coded(torch.int8)), "down_proj.weight is torch.int8 in the file, without a quant"),
     (lambda d: edit_tensors(d, coded(torch.float8_e4m3fn)), "down_proj.weight is torch.float8_e4m3fn in the file"),
     (lambda d: edit_tensors(d, coded(torch.int8)) or as_bin(d), "is torch.int8 in the file"),
     (quantised(lambda tensors: scaled(tensors, but="layers.1"), modules_to_not_convert=["model.layers.1"]),
      "layers.1.* without scales"),
     (quantised(as_bytes), "down_proj.weight is torch.uint8 in the file, where float8 is said"),
     (quantised(lambda tensors: scaled(tensors, 24), weight_block_size=[24, 24]),
      r"allowed: whole blocks of \(24, 24\)"),
     (template(SET_WITHIN), "sets 'tail' inside of {% generation %}"),
     (lambda d: edit(d / "config.json", drop=["intermediate_size"]),
      "config.json: no intermediate_size, allowed"),
     (lambda d: edit(d / "config.json", drop=["rms_norm_eps"]), "config.json: no rms_norm_eps, allowed"),
     (lambda d: edit(d / "config.json", drop=["rope_parameters"]), "config.json: no rope_theta, allowed"),
     (lambda d: edit(d / "config.json", rope_parameters={"rope_type": "default"}), "config.json: no rope_theta"),
     (lambda d: edit(d / "config.json", rope_parameters=without("original_max_position_embeddings")(LLAMA3)),
      "config.json: rope_type 'llama3' has no original_max_position_embeddings"),
     (lambda d: edit(d / "config.json", num_hidden_layers=0, layer_types=[]), "config.json: no num_hidden_layers"),
     (text("config.json", "[]"), "cannot be read"),
     (text("generation_config.json", '{"eos_token_id": [258, 256'), "generation_config.json"),
     (text("generation_config.json", "[1]"), "cannot be read"),
     (lambda d: adapter(d, d), "adapter_config.json beside the model"),
     (lambda d: edit(d / "config.json", rms_norm_eps="?"), "Validation error for field 'rms_norm_eps': .*'\\?'"),
     (lambda d: edit(d / "config.json", num_attention_heads=3), "mismatched keys")],
)  # fmt: skip
def test_what_is_no_checkpoint_is_one_line(base, spoil, match):
    spoil(base)
    assert len(refused_base(match, base)) < 700


@pytest.mark.parametrize(("variant", "key"), [("mistral", "attention_bias"), ("qwen3", "mlp_bias")])
def test_a_key_that_the_family_does_not_read_is_not_read(variant, key, tmp_path):
    model = checkpoint(tmp_path / "base", variant)
    edit(tmp_path / "base/config.json", **{key: True})
    assert_same(brought(tmp_path / "base"), model)


def test_a_window_within_which_the_texts_do_not_fit_is_one_line(tmp_path):
    checkpoint(tmp_path / "base", "mistral", sliding_window=512)
    refused_base("base: sliding_window: .* allowed: 512", tmp_path / "base")


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


def change_ours(monkeypatch, layer, factor):
    """Let the decoder have other weights in a layer, as where a family has more than the table says."""
    named, changed = door.given.named_weights, f"model.layers.{layer}.mlp.up_proj.weight"
    other = lambda model: {n: factor * W if n == changed else W for n, W in named(model).items()}  # noqa: E731
    monkeypatch.setattr(door.given, "named_weights", other)


def test_a_forward_that_differs_is_refused(base, monkeypatch):
    change_ours(monkeypatch, 1, 1.001)
    assert "from transformers', allowed: " in refused_base("differs by", base)


def test_a_checkpoint_with_code_of_its_own_is_refused(base):
    edit(base / "config.json", auto_map={"AutoModelForCausalLM": "modeling_mine.MineForCausalLM"})
    refused_base("base: auto_map: the model has code of its own, which is not run", base)


def test_of_a_large_model_the_first_layers_are_compared_unless_asked(base, tmp_path, monkeypatch):
    monkeypatch.setattr(agreement, "LARGE", 10)
    change_ours(monkeypatch, 2, 1.01)
    brought(base)  # the third layer is not looked at
    refused("differs by", bring_base, str(base), tmp_path / "full", "float32", True)


@pytest.fixture
def llama(tmp_path):
    return checkpoint(tmp_path / "base", "llama")


def test_a_quantised_gguf_file_is_what_transformers_makes_of_it(llama, tmp_path):
    write_gguf(tmp_path / "base", llama, tmp_path / "model.gguf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf")
    assert_same(brought(tmp_path / "model.gguf"), theirs)
    apart = (logprobs(theirs) - logprobs(llama)).abs().max()
    assert 0 < apart < 0.5  # eight bits of each weight are left


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"scaling": gguf.RopeScalingType.LINEAR}, "leaves out rope.scaling.type .'linear'. of it"),
        ({"other": "rope_freqs.weight"}, "leaves out rope_freqs.weight of it"),  # Llama 3's scaling
        ({"other": "blk.0.ffn_up.bias"}, "leaves out blk.0.ffn_up.bias of it"),
        ({"drop": "attention.head_count_kv"}, "no attention.head_count_kv in its metadata"),
        ({"drop": "attention.layer_norm_rms_epsilon"}, "no attention.layer_norm_rms_epsilon in its metadata"),
        ({"says": {"attention.sliding_window": 64}}, r"leaves out attention.sliding_window \(64\) of it"),
        ({"says": {"attention.key_length": 12}}, r"leaves out attention.key_length \(12\) of it"),
        ({"says": {"attention.scale": 1.0}}, r"leaves out attention.scale \(1.0\) of it"),
        ({"says": {"logit_scale": 0.5}}, r"leaves out logit_scale \(0.5\) of it"),
        ({"says": {"expert_count": 4}}, r"leaves out expert_count \(4\) of it"),
        ({"says": {"attention.causal": False}}, r"leaves out attention.causal \(False\) of it"),
        ({"says": {"rope.scaling.yarn_log_multiplier": 0.5}}, "leaves out rope.scaling.yarn_log_multiplier"),
    ],
)
def test_what_transformers_leaves_out_of_a_gguf_file_is_refused(llama, tmp_path, more, match):
    write_gguf(tmp_path / "base", llama, tmp_path / "model.gguf", **more)
    refused_base(match, tmp_path / "model.gguf")


def test_keys_of_another_family_in_a_gguf_file_are_refused(llama, tmp_path):
    """Transformers takes them for the model's own, and so would turn its positions by another base."""
    write_gguf(tmp_path / "base", llama, tmp_path / "model.gguf", foreign={"qwen2.rope.freq_base": 7.0})
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf")
    assert theirs.config.rope_parameters["rope_theta"] == 7.0
    refused_base(
        "qwen2.rope.freq_base in its metadata, allowed: keys of its family llama", tmp_path / "model.gguf"
    )


def test_what_changes_nothing_in_a_gguf_file_may_stand_in_it(llama, tmp_path):
    says = {
        "attention.key_length": 8,
        "rope.dimension_count": 8,
        "expert_count": 0,
        "rope.scaling.factor": 1.0,
    }
    says |= {"attention.causal": True, "logit_scale": 1.0, "rope.scaling.original_context_length": 4096}
    write_gguf(tmp_path / "base", llama, tmp_path / "model.gguf", says=says)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf")
    assert_same(brought(tmp_path / "model.gguf"), theirs)


def test_a_gguf_file_without_an_end_token_gets_that_of_a_turn_alone(llama, tmp_path):
    """Transformers gives it a default of its own, which is a letter here."""
    write_gguf(tmp_path / "base", llama, tmp_path / "model.gguf", drop="eos_token_id")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf")
    assert theirs.generation_config.eos_token_id == 2
    tokenizer = Tokenizer(brought(tmp_path / "model.gguf"))
    assert [tokenizer.core.id_to_token(end) for end in tokenizer.ends] == ["<|im_end|>"]


def test_a_gguf_file_of_the_same_name_in_the_working_folder_is_not_read(llama, tmp_path, monkeypatch):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        write_gguf(tmp_path / "base", llama, tmp_path / name / "model.gguf")
        llama.model.norm.weight.data *= 2
    monkeypatch.chdir(tmp_path / "there")
    bring_base("../here/model.gguf", tmp_path / "out", "float32")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=str(tmp_path / "here/model.gguf"))
    assert_same(tmp_path / "out", theirs)


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
