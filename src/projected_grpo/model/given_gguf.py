"""A given GGUF file: what transformers leaves out of it, or fills in."""

from typing import Any

from projected_grpo.errors import UserError

# Keys below the family's name: without these transformers has numbers of its own, and these it reads, too.
SIZES = ("attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon")
READ = (
    *SIZES, "block_count", "context_length", "embedding_length", "feed_forward_length", "rope.freq_base", "vocab_size",
)  # fmt: skip
UNSET = (0, "", "none")  # what any other key may say
# Those that change nothing as 1, either.
FACTORS = (
    *("rope.scaling.factor", "rope.scaling.attn_factor", "rope.scaling.finetuned", "rope.scale_linear"),
    *("logit_scale", "residual_scale", "embedding_scale"),
)


def left_out_of(path: str, model: Any, source: str) -> list[str]:
    """What changes a model's numbers in a GGUF file and transformers passes over: keys that it does not read, tensors.

    Takes away the end token that transformers gives a file without one. Raises UserError for a file without a key
    for which transformers has a number of its own, or with keys of another family, which it takes for the model's.
    """
    from gguf import GGUFReader
    from transformers.modeling_gguf_pytorch_utils import (
        GGUF_TO_TRANSFORMERS_MAPPING,
        TensorProcessor,
        get_gguf_hf_weights_map,
    )

    file = GGUFReader(path)
    fields = {key: field.contents() for key, field in file.fields.items()}
    architecture = fields["general.architecture"]
    families: Any = GGUF_TO_TRANSFORMERS_MAPPING["config"]
    others = families.keys() - {"general", "tokenizer", architecture}
    if foreign := [key for key in fields if key.partition(".")[0] in others]:
        raise UserError(f"{source}: {foreign[0]} in its metadata, allowed: keys of its family {architecture}")
    family = f"{architecture}."
    said = {key.removeprefix(family): value for key, value in fields.items() if key.startswith(family)}
    if lacking := [key for key in SIZES if key not in said]:
        raise UserError(
            f"{source}: no {', '.join(lacking)} in its metadata, allowed: a file with all sizes of its model"
        )
    if "tokenizer.ggml.eos_token_id" not in fields:
        model.generation_config.eos_token_id = model.config.eos_token_id = None
    c, context = model.config, said.get("context_length")
    width = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    only = {
        "rope.dimension_count": width, "attention.key_length": width, "attention.value_length": width,
        "attention.causal": True, "rope.scaling.original_context_length": context,
        "tensor_data_layout": "Meta AI original pth",
    }  # fmt: skip

    def changes(key: str, value: Any) -> bool:
        if key in only:
            return bool(value != only[key])
        return key not in READ and value not in (*UNSET, *((1,) if key in FACTORS else ()))

    keys = [f"{key} ({value!r})" for key, value in said.items() if changes(key, value)]
    known = get_gguf_hf_weights_map(model, TensorProcessor())
    return keys + sorted(tensor.name for tensor in file.tensors if tensor.name not in known)
