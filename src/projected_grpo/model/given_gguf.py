"""A given GGUF file: what transformers leaves out of it, or fills in."""

from typing import Any

from projected_grpo.errors import UserError

# Keys of a GGUF file that change a model's numbers, and those that transformers has a number of its own for.
GGUF_PASSED_OVER = (
    *("rope.scaling.type", "rope.scaling.factor", "rope.scale_linear", "rope.scaling.attn_factor"),
    "attention.clamp_kqv",
)
GGUF_SIZES = ("attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon")


def left_out_of(path: str, model: Any) -> list[str]:
    """What changes a model's numbers in a GGUF file and transformers passes over: how it scales positions, tensors.

    Takes away the end token that transformers gives a file without one. Raises UserError for a file without a key
    for which transformers has a number of its own.
    """
    from gguf import GGUFReader
    from transformers.modeling_gguf_pytorch_utils import TensorProcessor, get_gguf_hf_weights_map

    file = GGUFReader(path)
    said = {key.partition(".")[2]: field.contents() for key, field in file.fields.items()}
    if lacking := [key for key in GGUF_SIZES if key not in said]:
        raise UserError(
            f"{path}: no {', '.join(lacking)} in its metadata, allowed: a file with all sizes of its model"
        )
    if "ggml.eos_token_id" not in said:
        model.generation_config.eos_token_id = model.config.eos_token_id = None
    scaled = [key for key in GGUF_PASSED_OVER if said.get(key, 1.0) not in (0.0, 1.0, "none")]
    known = get_gguf_hf_weights_map(model, TensorProcessor())
    return scaled + sorted(tensor.name for tensor in file.tensors if tensor.name not in known)
