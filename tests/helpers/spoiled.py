"""What makes the tensors of a file other ones: codes with and without scales, weights that are missing or too many."""

import torch


def without(name):
    return lambda tensors: {key: W for key, W in tensors.items() if key != name}


def with_tensor(name, value):
    return lambda tensors: tensors | {name: value}


def coded(dtype, names="_proj"):
    """Layers as whole numbers of a dtype, without the scales that they were divided by."""
    codes = lambda W: (W / W.abs().max() * 100).round().to(dtype)  # noqa: E731
    return lambda tensors: {name: codes(W) if names in name else W for name, W in tensors.items()}


def scaled(tensors, side=128, but="no layer"):
    """Layers as float8 with a scale for each block, the last of which may be smaller; the layer `but` without."""
    out = dict(tensors)
    for name, W in tensors.items():
        if "_proj" in name:
            height, width = (-(-length // side) for length in W.shape)
            scales = torch.rand(height, width) + 0.01
            wide = scales.repeat_interleave(side, 0).repeat_interleave(side, 1)[: W.shape[0], : W.shape[1]]
            out[name] = (W / wide).to(torch.float8_e4m3fn)
            if but not in name:
                out[name + "_scale_inv"] = scales
    return out


def float8(tensors, scale="weight_scale_inv", grid="block", dtype=torch.float32, side=4):
    """Layers and embedding as float8 with scales; return them with what they stand for, by plain multiplication.

    scale: name of the scales; grid: one for each block of `side`, each row or alone; dtype: theirs, uint8 the exponents
    of powers of two.
    """
    out, plain = dict(tensors), {}
    for name, W in tensors.items():
        if "_proj" not in name and "embed" not in name:
            continue
        height, width = W.shape
        shape = {"block": (-(-height // side), -(-width // side)), "row": (height, 1), "alone": ()}[grid]
        scales = (0.004 + 0.01 * torch.rand(shape)).log2().round().exp2()
        wide = scales
        if grid == "block":
            wide = torch.stack([scales[i // side, j // side] for i in range(height) for j in range(width)])
            wide = wide.view(height, width)
        out[name] = (W / wide).clamp(-440, 440).to(torch.float8_e4m3fn)
        plain[name] = out[name].float() * wide
        stored = scales.log2() + 127 if dtype == torch.uint8 else scales
        out[f"{name.removesuffix('weight')}{scale}"] = stored.to(dtype)
    return out, plain


def as_bytes(tensors):
    """Layers as float8 and their scales, the codes as whole numbers of eight bits."""
    codes = scaled(tensors)
    return {k: W.view(torch.uint8) if W.dtype == torch.float8_e4m3fn else W for k, W in codes.items()}


def zeros(tensors):
    return {key: torch.zeros_like(W) if "lora_B" in key else W for key, W in tensors.items()}


def renamed(tensors):
    return {key.replace("layers.1", "layers.9"): W for key, W in tensors.items()}
