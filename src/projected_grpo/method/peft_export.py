"""A trained adapter as a PEFT LoRA folder, to be used without this project.

Both adapters are plain LoRAs: W' - W = U diag(delta_S) Vh is one of rank r, s (B A - B0 A0) one of twice the rank.
"""

from pathlib import Path

from safetensors.torch import save_file

from projected_grpo.files import atomic, write_json
from projected_grpo.method.adapter import Adapter, Parameters


def save_peft(adapter: Adapter, theta: Parameters, base: str, folder: Path) -> int:
    """Write `adapter_config.json` and `adapter_model.safetensors`; PEFT merges them to `adapter.merge(theta)`.

    base: folder or hub id of the base model, noted in the config. Return the largest rank.
    """
    tensors, ranks = {}, {}
    for name, change in theta.items():
        A, B = adapter.low_rank(name, change)
        tensors[f"base_model.model.{name}.lora_A.weight"] = A.cpu().contiguous()
        tensors[f"base_model.model.{name}.lora_B.weight"] = B.cpu().contiguous()
        ranks[name] = len(A)
    largest = max(ranks.values())
    others = {name: rank for name, rank in ranks.items() if rank != largest}
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": largest,
        "lora_alpha": largest,  # PEFT's scale alpha / r is 1: it is part of B
        "rank_pattern": others,
        "alpha_pattern": others,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.rsplit(".", 1)[-1] for name in theta}),
        "inference_mode": True,
    }
    with atomic(Path(folder) / "adapter_model.safetensors") as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})
    write_json(Path(folder) / "adapter_config.json", config)
    return largest
