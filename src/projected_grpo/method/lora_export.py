"""A trained LoRA arm as a PEFT adapter folder, to be deployed without this project.

W' = W + s (B A - B0 A0) is a plain LoRA of twice the rank: s [B, -B0] [A; A0].
"""

from pathlib import Path

import torch
from safetensors.torch import save_file

from projected_grpo.files import atomic, write_json
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.lora import LoRA


def save_peft(adapter: LoRA, theta: Parameters, base: str, folder: Path) -> None:
    """Write `adapter_config.json` and `adapter_model.safetensors`; PEFT merges them to `adapter.merge(theta)`.

    base: folder or hub id of the base model, noted in the config.
    """
    tensors = {}
    for name, change in theta.items():
        (A0, B0), (A, B) = adapter.start[name], adapter.factors(name, change)
        tensors[f"base_model.model.{name}.lora_A.weight"] = torch.cat([A, A0]).cpu().contiguous()
        tensors[f"base_model.model.{name}.lora_B.weight"] = torch.cat([B, -B0], dim=1).cpu().contiguous()
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": 2 * adapter.rank,
        "lora_alpha": adapter.scale * 2 * adapter.rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.rsplit(".", 1)[-1] for name in theta}),
        "inference_mode": True,
    }
    with atomic(Path(folder) / "adapter_model.safetensors") as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})
    write_json(Path(folder) / "adapter_config.json", config)
