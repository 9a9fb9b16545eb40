"""Canonical folders: what is written is read back, and only that."""

import pytest
import torch
from given import checkpoint, edit, edit_tensors
from transformers import AutoTokenizer, Qwen3ForCausalLM

from projected_grpo.errors import UserError
from projected_grpo.model.door import bring_base
from projected_grpo.model.load import copy_tokenizer, load, load_weights, save_weights, write_digests
from projected_grpo.model.small_tokenizer import train_tokenizer
from projected_grpo.model.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("canonical")
    checkpoint(folder / "given")
    bring_base(str(folder / "given"), folder / "base", "float32")
    return folder / "base"


@pytest.fixture
def folder(made, tmp_path):
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_what_is_saved_is_what_is_loaded_and_transformers_has_it_too(made, tmp_path):
    model, tokenizer = load(made)
    save_weights(model, tmp_path)
    copy_tokenizer(made, tmp_path)
    write_digests(tmp_path)
    again, same = load(tmp_path)
    theirs = dict(Qwen3ForCausalLM.from_pretrained(tmp_path).named_parameters())
    assert again.config == model.config and theirs.keys() == model.weights.keys()
    for name, W in model.weights.items():
        assert torch.equal(again.weights[name], W) and torch.equal(theirs[name], W)
    assert same.encode_chat("né") == tokenizer.encode_chat("né") and same.ends == tokenizer.ends
    assert load_weights(tmp_path, "bfloat16").dtype == torch.bfloat16


def test_the_small_models_tokenizer_is_that_of_transformers(tmp_path):
    train_tokenizer(["def f(x): return x + 12", "print('all tests passed')"] * 9, tmp_path, 280)
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
    assert ours.ends == {ours.end}


@pytest.mark.parametrize(
    ("change", "match"),
    [(lambda t: {k: W for k, W in t.items() if "norm" not in k}, "13 weights are missing, first model.layers.0"),
     (lambda t: t | {"lm_head.weight": torch.ones(3)}, "1 weights have no place in the model, first lm_head"),
     (lambda t: {k: W[:1] for k, W in t.items()}, r"expected \(260, 32\)"),
     (lambda t: {k: W.to(torch.float8_e4m3fn) for k, W in t.items()}, "of torch.float8_e4m3fn")],
)  # fmt: skip
def test_weights_that_the_config_does_not_ask_for_are_refused(folder, change, match):
    edit_tensors(folder, change)
    with pytest.raises(UserError, match=match):
        load_weights(folder)


@pytest.mark.parametrize(
    ("spoil", "match"),
    [(lambda d: (d / "model.safetensors").write_bytes(b"junk"), "damaged or absent"),
     (lambda d: (d / "model.safetensors").unlink(), "damaged or absent"),
     (lambda d: edit(d / "config.json", model_type="gemma3"), "gemma3"),
     (lambda d: edit(d / "config.json", drop=["vocab_size"]), "no vocab_size")],
)  # fmt: skip
def test_a_damaged_folder_is_one_line(folder, spoil, match):
    spoil(folder)
    with pytest.raises(UserError, match=match) as error:
        load_weights(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ends", [None, [], 7, ["<|im_end|>"]])
def test_end_tokens_are_a_list_of_ids(folder, ends):
    edit(folder / "generation_config.json", eos_token_id=ends)
    with pytest.raises(UserError, match=r"eos_token_id: .*allowed: a list of ids"):
        Tokenizer(folder)


def test_an_unknown_dtype_is_one_line(folder):
    with pytest.raises(UserError, match="float32"):
        load_weights(folder, dtype="float31")
