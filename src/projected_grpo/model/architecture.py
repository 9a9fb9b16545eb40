"""The architectures that the decoder runs, by their `config.json`: one table of families, and what a config says.

Free of torch, so that a plan can refuse what is not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any

from projected_grpo.errors import UserError, nearest

PARTS = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip


@dataclass(frozen=True)
class Family:
    """What tells the layers of one `model_type` of transformers from those of another.

    qk_norm: queries and keys are normed by head; qkv_bias: their projections and the values' have biases, whatever
    the config says; windowed: `sliding_window` bounds what a token attends to, in every layer.
    """

    architecture: str
    qk_norm: bool = False
    qkv_bias: bool = False
    windowed: bool = False


FAMILIES = {
    "llama": Family("LlamaForCausalLM"),
    "mistral": Family("MistralForCausalLM", windowed=True),
    "qwen2": Family("Qwen2ForCausalLM", qkv_bias=True),
    "qwen3": Family("Qwen3ForCausalLM", qk_norm=True),
}
# rope_type -> what it needs beside rope_theta
ROPE = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}


@dataclass(frozen=True)
class Config:
    """What the forward needs of a `config.json`, under its names.

    rope_scaling: `rope_type` and its numbers, empty where positions are turned as they are; attention_bias, mlp_bias:
    whether the Linears of attention and MLP have biases; sliding_window: the most tokens that a row may have.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    tie_word_embeddings: bool
    model_type: str = "qwen3"
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: int | None = None
    max_position_embeddings: int | None = None
    rope_scaling: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping, source: str = "config.json") -> Config:
        """Read a parsed `config.json`. Raises UserError where it lacks a number or is of what is not run."""
        check_family(raw, source)
        rope = _rope(raw)
        heads = raw.get("num_attention_heads")
        values = {**raw, "rope_theta": rope.get("rope_theta"), "rope_scaling": _scaling(rope)}
        values["tie_word_embeddings"] = bool(raw.get("tie_word_embeddings"))
        values["num_key_value_heads"] = raw.get("num_key_value_heads") or heads
        values["head_dim"] = raw.get("head_dim") or (heads and raw.get("hidden_size", 0) // heads)
        if not FAMILIES[raw["model_type"]].windowed:
            values["sliding_window"] = None
        fields = cls.__dataclass_fields__.values()
        missing = [
            f.name for f in fields if values.get(f.name) is None and f.default is f.default_factory is MISSING
        ]
        if missing:
            raise UserError(f"{source}: no {', '.join(missing)}")
        return cls(**{f.name: values[f.name] for f in fields if values.get(f.name) is not None})

    def to_dict(self, dtype: str) -> dict[str, Any]:
        """Return the `config.json` that transformers reads; dtype: of the weights beside it."""
        written = {name: getattr(self, name) for name in _NUMBERS} | {
            "architectures": [self.family.architecture], "model_type": self.model_type, "hidden_act": "silu",
            "attention_bias": self.attention_bias,
            "rope_parameters": {"rope_type": "default", **self.rope_scaling, "rope_theta": self.rope_theta},
            "dtype": dtype,
        }  # fmt: skip
        others = {"mlp_bias": self.mlp_bias or None, "max_position_embeddings": self.max_position_embeddings}
        if self.family.windowed:
            written["sliding_window"] = self.sliding_window
        return written | {name: value for name, value in others.items() if value is not None}

    @property
    def family(self) -> Family:
        return FAMILIES[self.model_type]

    @property
    def biased(self) -> tuple[str, ...]:
        """The parts of a layer, as in `PARTS`, whose Linear has a bias."""
        qkv, o, mlp = PARTS[:3], PARTS[3:4], PARTS[4:]
        attention = qkv + o if self.attention_bias else qkv if self.family.qkv_bias else ()
        return attention + (mlp if self.mlp_bias else ())


_NUMBERS = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "rms_norm_eps", "tie_word_embeddings",
)  # fmt: skip


def check_family(raw: Mapping, source: str) -> None:
    """Raise UserError, one line, where a parsed `config.json` is of an architecture or variant that is not run."""
    kind = raw.get("model_type")
    if kind not in FAMILIES:
        raise UserError(f"{source}: model_type: {kind!r} is not run; {nearest(str(kind), FAMILIES)}")
    family, rope = FAMILIES[kind], _rope(raw)
    scaling = rope.get("rope_type", rope.get("type", "default"))
    biased = raw.get("attention_bias") and family.qkv_bias
    sliding = "sliding_attention" in (raw.get("layer_types") or ()) and not family.windowed
    unfit = {
        "hidden_act": (raw.get("hidden_act", "silu") != "silu", "silu"),
        "use_sliding_window": (bool(raw.get("use_sliding_window")) and not family.windowed, "false"),
        "layer_types": (sliding, "full_attention"),
        "partial_rotary_factor": (rope.get("partial_rotary_factor", 1.0) != 1.0, "1"),
        "attention_bias": (bool(biased), f"false, as transformers has it for {kind}"),
    }
    for key, (is_unfit, allowed) in unfit.items():
        if is_unfit:
            raise UserError(
                f"{source}: {key}: {raw.get(key, rope.get(key))!r} is not run; allowed: {allowed}"
            )
    if scaling not in ROPE:
        raise UserError(f"{source}: rope_type: {scaling!r} is not run; {nearest(str(scaling), ROPE)}")
    lacking = [name for name in ROPE[scaling] if not isinstance(rope.get(name), int | float)]
    if lacking:
        raise UserError(f"{source}: rope_type {scaling!r} has no {', '.join(lacking)}")


def _rope(raw: Mapping) -> dict[str, Any]:
    """What a config says of rotary positions, whichever version of transformers wrote it."""
    kept = {key: raw[key] for key in ("rope_theta", "partial_rotary_factor") if raw.get(key) is not None}
    return {**kept, **(raw.get("rope_scaling") or {}), **(raw.get("rope_parameters") or {})}


def _scaling(rope: Mapping[str, Any]) -> dict[str, Any]:
    kind = rope.get("rope_type", rope.get("type", "default"))
    return {"rope_type": kind, **{name: rope[name] for name in ROPE[kind]}} if ROPE[kind] else {}


def shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Return checkpoint name -> shape of every weight of the architecture, in the order of files."""
    d, q, kv = c.hidden_size, c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    linears = dict(
        zip(PARTS, [(q, d), (kv, d), (kv, d), (d, q), *2 * [(c.intermediate_size, d)], (d, c.intermediate_size)],
            strict=True)
    )  # fmt: skip
    out: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (c.vocab_size, d)}
    for i in range(c.num_hidden_layers):
        at = f"model.layers.{i}."
        layer: dict[str, tuple[int, ...]] = {"input_layernorm": (d,), "post_attention_layernorm": (d,)}
        if c.family.qk_norm:
            layer |= {"self_attn.q_norm": (c.head_dim,), "self_attn.k_norm": (c.head_dim,)}
        out |= {f"{at}{name}.weight": shape for name, shape in (layer | linears).items()}
        out |= {f"{at}{part}.bias": linears[part][:1] for part in c.biased}
    out["model.norm.weight"] = (d,)
    if not c.tie_word_embeddings:
        out["lm_head.weight"] = (c.vocab_size, d)
    return out
