"""GGUF files as llama.cpp has them, of transformers' models."""

import json

import gguf
import torch
from given import CHATML


def write_gguf(folder, model, path, scaling=None, other=None, drop=None, says=None, foreign=None):
    """Write a llama of transformers as llama.cpp has it: q and k turned, tensors by its names.

    scaling: of positions, by its name; other: name of one more tensor; drop: a key that is left out;
    says: more keys of the family with their values; foreign: numbers under any other keys.
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
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    for key, value in (says or {}).items():
        add[type(value)](f"llama.{key}", value)
    for key, value in (foreign or {}).items():
        writer.add_float32(key, value)
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
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, c.num_hidden_layers)
    for name, p in model.named_parameters():
        named, W = names.get_name(name, try_suffixes=(".weight",)), p.detach()
        if "q_proj" in name or "k_proj" in name:
            heads = c.num_attention_heads if "q_proj" in name else c.num_key_value_heads
            W = W.view(heads, 2, -1, W.shape[1]).transpose(1, 2).reshape(W.shape)
        if W.dim() == 2 and W.shape[1] % 32 == 0:  # what a block of Q8_0 holds
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(named, gguf.quantize(W.numpy(), kind), raw_dtype=kind)
        else:
            writer.add_tensor(named, W.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
