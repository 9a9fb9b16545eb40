"""Adapters are merged as PEFT does, and critics are left to transformers; or they are refused in one line."""

import json

import peft
import pytest
import torch
from given import (
    CHATML,
    adapter,
    assert_same,
    brought,
    checkpoint,
    edit,
    edit_tensors,
    ours,
    refused,
    refused_base,
    refused_teacher,
)
from peft import PeftModel
from spoiled import coded, renamed, with_tensor, without, zeros
from transformers import AutoConfig, AutoModelForCausalLM

from projected_grpo.digests import file_digest
from projected_grpo.evaluator.jobs import local_critic
from projected_grpo.model import agreement
from projected_grpo.model.door import bring_teacher
from projected_grpo.model.load import load_weights, write_digests
from projected_grpo.model.tokenizer import Tokenizer

MACHINE = {"device": "cpu", "dtype": "float32"}
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
    given = adapter(tmp_path / "base", tmp_path / "adapter", **ADAPTERS[name])
    canonical, teacher = brought(tmp_path / "base", "canonical"), tmp_path / "teacher"
    bring_teacher(str(given), canonical, teacher, "float32")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    assert_same(teacher, PeftModel.from_pretrained(theirs, given).eval())
    assert (ours(teacher) - ours(canonical)).abs().max() > 0.01
    assert Tokenizer(teacher).ends == Tokenizer(canonical).ends


def test_a_teacher_is_merged_in_float32_and_rounded_once(base, tmp_path):
    given = str(adapter(base, tmp_path / "adapter"))
    rounded = brought(base, dtype="bfloat16")
    bring_teacher(given, rounded, tmp_path / "half", "bfloat16")
    bring_teacher(given, rounded, tmp_path / "exact", "float32")
    half = load_weights(tmp_path / "half", "bfloat16")
    for name, W in load_weights(tmp_path / "exact").weights.items():
        assert torch.equal(half.weights[name], W.bfloat16())


def test_what_an_adapter_takes_out_of_a_rounded_base_is_rounded_as_peft_does(base, tmp_path):
    canonical = brought(base, "canonical", "bfloat16")
    given = str(adapter(canonical, tmp_path / "adapter", init_lora_weights="pissa"))
    bring_teacher(given, canonical, tmp_path / "out", "float32")
    rounded = AutoModelForCausalLM.from_pretrained(canonical, dtype="auto")
    assert rounded.dtype == torch.bfloat16
    assert_same(tmp_path / "out", PeftModel.from_pretrained(rounded, given).float().eval())


def test_a_teacher_may_come_in_on_another_day_than_its_base(tmp_path):
    checkpoint(tmp_path / "base", template="{{ strftime_now('%d %b %Y') }}\n" + CHATML)
    canonical = brought(tmp_path / "base", "canonical")
    edit(canonical / "tokenizer_config.json", today="1999-01-02")
    write_digests(canonical)
    bring_teacher(str(adapter(canonical, tmp_path / "adapter")), canonical, tmp_path / "out", "float32")
    assert Tokenizer(tmp_path / "out").chat("t1").startswith("02 Jan 1999\n")


def test_a_published_adapter_is_refused_on_another_base_or_damaged(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter")
    (given / "trained_on.json").write_text(json.dumps({"base": file_digest(canonical / "config.json")}))
    write_digests(given)
    bring_teacher(str(given), canonical, tmp_path / "teacher", "float32")
    other = brought(base, "another", "bfloat16")
    refused_teacher("trained_on.json: base: .*another is .*allowed: model.teacher: small", given, other)
    edit(given / "adapter_config.json", lora_alpha=7)
    refused_teacher("adapter_config.json: damaged or edited", given, canonical)


@pytest.mark.parametrize("beside", ["well above", "just below"])
def test_a_large_model_that_a_teacher_leaves_as_it_is_is_refused(
    base, canonical, tmp_path, monkeypatch, beside
):
    """Just below: the adapter's own parameters would make it large."""
    own = sum(W.numel() for W in load_weights(canonical).weights.values())
    monkeypatch.setattr(agreement, "LARGE", 10 if beside == "well above" else own)
    given = adapter(base, tmp_path / "adapter", layers_to_transform=[2])  # of a layer not compared
    bring_teacher(str(given), canonical, tmp_path / "out", "float32")
    edit_tensors(given, zeros, "adapter_model.safetensors")
    refused_teacher("its log-probabilities are the base's", given, canonical)


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
    given = adapter(base, tmp_path / "adapter")
    edit_tensors(given, change, "adapter_model.safetensors")
    refused_teacher(match, given, canonical)


@pytest.mark.parametrize("tied", [True, False])
def test_whole_weights_of_an_adapter_are_not_rounded_to_its_base(tmp_path, tied):
    checkpoint(tmp_path / "base", tie_word_embeddings=tied)
    canonical = brought(tmp_path / "base", "canonical", "bfloat16")
    given = adapter(canonical, tmp_path / "adapter", modules_to_save=["embed_tokens"])
    key = "base_model.model.model.embed_tokens.weight"
    edit_tensors(given, lambda t: t | {key: t[key].float() + 1e-3}, "adapter_model.safetensors")
    bring_teacher(str(given), canonical, tmp_path / "out", "float32")
    theirs = AutoModelForCausalLM.from_pretrained(canonical, dtype="float32")
    assert_same(tmp_path / "out", PeftModel.from_pretrained(theirs, given).eval())


def test_an_embedding_beside_an_adapter_is_the_bases_in_any_dtype(base, tmp_path):
    canonical = brought(base, "canonical", "bfloat16")
    given, key = adapter(canonical, tmp_path / "adapter"), "base_model.model.model.embed_tokens.weight"
    embedding = load_weights(canonical).weights["model.embed_tokens.weight"]
    for dtype in (torch.bfloat16, torch.float32):
        edit_tensors(given, with_tensor(key, embedding.to(dtype)), "adapter_model.safetensors")
        bring_teacher(str(given), canonical, tmp_path / str(dtype), "float32")
    file = "model.safetensors"
    assert (tmp_path / "torch.bfloat16" / file).read_bytes() == (
        tmp_path / "torch.float32" / file
    ).read_bytes()


@pytest.mark.parametrize("value", [None, False, 0, [], {}])
def test_an_option_of_a_later_peft_that_is_off_is_off(base, canonical, tmp_path, value):
    given = adapter(base, tmp_path / "adapter")
    edit(given / "adapter_config.json", new_option=value)
    bring_teacher(str(given), canonical, tmp_path / "out", "float32")


@pytest.mark.parametrize(
    ("change", "match"),
    [({"new_option": True}, "adapter_config.json: new_option: True, which PEFT does not know"),
     ({"drop": ["lora_alpha"]}, "adapter_config.json: no lora_alpha, allowed: an adapter that says its strength"),
     ({"drop": ["r"]}, "adapter_config.json: no r, allowed"), ({"r": None}, "adapter_config.json: no r, allowed")],
)  # fmt: skip
def test_options_that_peft_would_fill_in_or_pass_over_are_refused(base, canonical, tmp_path, change, match):
    given = adapter(base, tmp_path / "adapter")
    edit(given / "adapter_config.json", **change)
    refused_teacher(match, given, canonical)


def test_an_adapter_of_an_older_peft_may_lack_what_changes_nothing(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter")
    idle = ["bias", "init_lora_weights", "megatron_core", "qalora_group_size", "peft_version", "use_rslora"]
    edit(given / "adapter_config.json", drop=idle)
    bring_teacher(str(given), canonical, tmp_path / "out", "float32")
    theirs = AutoModelForCausalLM.from_pretrained(base)
    assert_same(tmp_path / "out", PeftModel.from_pretrained(theirs, given).eval())


@pytest.mark.parametrize(
    ("kind", "options", "key"),
    [(peft.FourierFTConfig, {"n_frequency": 40}, "scaling"), (peft.VeraConfig, {"r": 4}, "projection_prng_key"),
     (peft.FourierFTConfig, {"n_frequency": 40}, "random_loc_seed"), (peft.RandLoraConfig, {"r": 4}, "randlora_alpha"),
     (peft.OFTConfig, {"r": 0, "oft_block_size": 8, "use_cayley_neumann": False}, "use_cayley_neumann"),
     (peft.VBLoRAConfig, {"vector_length": 8, "num_vectors": 16, "topk": 3}, "topk"),
     (peft.WaveFTConfig, {"n_frequency": 40, "wavelet_family": "db2"}, "wavelet_family")],
)  # fmt: skip
def test_strengths_seeds_and_forms_of_other_kinds_are_not_filled_in(
    base, canonical, tmp_path, kind, options, key
):
    given = adapter(base, tmp_path / "adapter", kind, **options)
    edit(given / "adapter_config.json", drop=[key])
    refused_teacher(f"adapter_config.json: no {key}, allowed: an adapter that says", given, canonical)


def test_an_adapter_that_draws_numbers_whenever_it_runs_is_refused(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter", peft.PveraConfig, r=4, sample_at_inference=True)
    refused_teacher("between transformers' two attention kernels", given, canonical)


@pytest.mark.parametrize("change", [{"drop": ["peft_version"]}, {"peft_version": "0.17.0"}])
def test_an_adapter_that_the_peft_of_its_training_ran_otherwise_is_refused(base, canonical, tmp_path, change):
    given = adapter(base, tmp_path / "adapter", peft.OFTConfig, r=0, oft_block_size=8)
    edit(given / "adapter_config.json", **change)
    refused_teacher("PEFT does not run it as it was trained .The cayley-neumann", given, canonical)


def test_a_name_with_a_line_break_in_it_stays_in_one_line(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter")
    edit_tensors(given, with_tensor("a\n\x1b.lora_A.weight", torch.ones(1)), "adapter_model.safetensors")
    refused_teacher(r"first a\\n\\x1b.lora_A", given, canonical)


def test_an_adapter_that_is_lost_in_rounding_is_refused(base, tmp_path):
    given, canonical = adapter(base, tmp_path / "adapter"), brought(base, "canonical", "bfloat16")
    small = lambda t: {k: W * 1.5e-5 if "lora_B" in k else W for k, W in t.items()}  # noqa: E731
    edit_tensors(given, small, "adapter_model.safetensors")
    refused_teacher("once its weights are rounded to bfloat16", given, canonical, "bfloat16")
    bring_teacher(str(given), canonical, tmp_path / "out", "float32")


def test_an_adapter_of_another_base_names_the_shapes(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter")
    widen = lambda t: {k: torch.ones(3, 64) if "lora_A" in k else W for k, W in t.items()}  # noqa: E731
    edit_tensors(given, widen, "adapter_model.safetensors")
    refused_teacher(r"size mismatch for .*v_proj\.lora_A", given, canonical)


def test_an_adapter_that_takes_its_part_out_of_the_base_by_chance_is_refused(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter", init_lora_weights="pissa_niter_4")
    refused_teacher("'pissa_niter_4', of which PEFT draws", given, canonical)


def test_an_adapter_whose_start_was_taken_out_in_training_alone_is_refused(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter")
    edit(given / "adapter_config.json", init_lora_weights="lora_ga")
    refused_teacher(
        "'lora_ga', whose start PEFT takes out of the base when training begins", given, canonical
    )


def test_an_adapter_without_weights_is_not_asked_of_the_hub(base, canonical, tmp_path, monkeypatch):
    given = adapter(base, tmp_path / "adapters/mine")
    (given / "adapter_model.safetensors").unlink()
    monkeypatch.chdir(tmp_path)
    match = r"adapters/mine: cannot be read \(no adapter_model.safetensors or adapter_model.bin in it\)"
    refused_teacher(match, given.relative_to(tmp_path), canonical)


def test_an_activated_adapter_is_refused(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter", alora_invocation_tokens=[20])
    refused_teacher("PEFT cannot merge it .*aLoRA", given, canonical)


def test_an_adapter_that_repeats_layers_is_refused_by_name(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter", layer_replication=[[0, 2], [1, 3]])
    match = r"adapter: layer_replication: .*allowed: an adapter of the base's own layers"
    refused_teacher(match, given, canonical)


@pytest.mark.parametrize("kind", [peft.PromptTuningConfig, peft.PrefixTuningConfig])
def test_an_adapter_that_is_part_of_the_prompt_is_refused(base, canonical, tmp_path, kind):
    config = kind(num_virtual_tokens=3, task_type="CAUSAL_LM")
    model = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), config)
    model.save_pretrained(tmp_path / "adapter")
    refused_teacher("allowed: an adapter that can be merged into weights", tmp_path / "adapter", canonical)


def test_a_damaged_adapter_is_one_line(base, canonical, tmp_path):
    given = adapter(base, tmp_path / "adapter")
    file = given / "adapter_model.safetensors"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 4711\n")
    refused_teacher("cannot be read", given, canonical)
    file.unlink()
    refused_teacher("cannot be read", given, canonical)
    refused_teacher("without adapter_config", base, canonical)


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
    given = adapter(base, tmp_path / "adapter")
    spoil((given if "adapter" in file else base) / file)
    refused(match, local_critic, str(base), str(given), MACHINE)


def test_a_critic_may_be_of_a_family_that_is_not_run(base):
    sizes = {"vocab_size": 260, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64}
    config = AutoConfig.for_model("gpt2", bos_token_id=None, eos_token_id=258, **sizes)
    (base / "generation_config.json").unlink()
    AutoModelForCausalLM.from_config(config).save_pretrained(base)
    refused_base("'gpt2' is not run", base)
    backend = local_critic(str(base), None, MACHINE | {"max_tokens": 2})
    assert [type(reply.text) for reply in backend.answer(["t1"], {}, 0.0, 0)] == [str]
