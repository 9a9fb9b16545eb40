"""Time one GRPO step at Qwen3-4B's shape (random weights) on one CUDA GPU, against a floor measured on that GPU.

    python benchmarks/gpu.py [--rounds 3] -> benchmarks/results/gpu.json

The step is training's own `one_step` (bf16 weights, delta_S in fp32, arm `erase`): G = 8, 4 and 8 prompts of 400
tokens, rows of 512. The floor is weights read once a decode step at the measured memory bandwidth, and six
operations per parameter and training token, plus the head's, at the measured rate of bf16 products. U and Vh are
random orthonormal matrices, not an SVD: no time depends on their values.
"""

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

import torch

from projected_grpo.files import write_json
from projected_grpo.method.adapter import AntiPaSTO
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.decoder import Decoder

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from step_ours import make_run, phases, stepper  # noqa: E402
from workload import Workload  # noqa: E402

OUT = HERE / "results" / "gpu.json"
QWEN3_4B = Config(151936, 2560, 9728, 36, 32, 8, 128, 1e-6, 1e6, True)
GROUP, PROMPT, LENGTH = 8, 400, 512
MICRO_BATCH_TOKENS = 16384  # as config/qwen3-4b.yaml


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def random_model(config: Config, device: str, dtype: torch.dtype) -> Decoder:
    """Random weights, made on the device."""
    weights = {
        name: torch.ones(shape, device=device, dtype=dtype)
        if len(shape) == 1
        else torch.randn(shape, device=device, dtype=dtype).mul_(0.02)
        for name, shape in shapes(config).items()
    }
    return Decoder(config, weights)


def random_adapter(model: Decoder) -> AntiPaSTO:
    """delta_S on every Linear along random orthonormal axes."""
    weights = {name: model.weights[f"{name}.weight"] for name in model.linears}

    def axes(rows: int, r: int) -> torch.Tensor:
        return torch.linalg.qr(torch.randn(rows, r, device=model.device))[0]

    # one pair per shape: Linears of equal shape may share axes here
    made = {
        shape: (axes(shape[0], min(shape)), axes(shape[1], min(shape)).T.contiguous())
        for shape in {tuple(W.shape) for W in weights.values()}
    }
    return AntiPaSTO(weights, {name: made[tuple(W.shape)] for name, W in weights.items()})


def best_seconds(work, device: str, repeats: int = 5) -> float:
    """Least wall seconds of `work()` over some repeats."""
    times = []
    for _ in range(repeats + 1):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def rates(model: Decoder, tokens: int) -> dict[str, float]:
    """Bytes per second of reading the weights, floating-point operations per second of the widest product."""
    device = model.device.type
    source = torch.empty(min(1 << 30, sum(W.numel() for W in model.weights.values())), dtype=model.dtype)
    source = source.to(device).fill_(1.0)
    read = source.numel() * source.element_size() / best_seconds(lambda: source.sum(), device)
    W = model.weights[f"{model.linears[4]}.weight"]
    x = torch.randn(min(tokens, MICRO_BATCH_TOKENS), W.shape[1], device=device, dtype=model.dtype)
    multiply = 2 * len(x) * W.numel() / best_seconds(lambda: x @ W.T, device)
    return {"bytes_per_second": read, "flops_per_second": multiply}


def floor(model: Decoder, load: Workload, measured: dict[str, float]) -> dict[str, float]:
    """Seconds that decoding and training cannot go below at the measured rates."""
    linear = sum(model.weights[f"{name}.weight"].numel() for name in model.linears)
    read = (linear + model.head.numel()) * model.head.element_size()
    trained, predicting = load.tokens["trained"], load.tokens["predicting"]
    generate = load.max_new * read / measured["bytes_per_second"]
    operations = 6 * linear * trained + 4 * model.head.numel() * predicting
    backward = operations / measured["flops_per_second"]
    return {"generate": generate, "backward": backward, "step": generate + backward}


def workload(config: Config, prompts: int, group: int, prompt: int, length: int, repeats: int) -> Workload:
    draw = random.Random(0)
    return Workload(
        name="gpu",
        model="",
        prompts=[[draw.randrange(config.vocab_size - 1) for _ in range(prompt)] for _ in range(prompts)],
        completions=[
            [[draw.randrange(config.vocab_size - 1) for _ in range(length)] for _ in range(group)]
            for _ in range(prompts)
        ],
        rewards=[[3.5 * (s % 2) for s in range(group)]] * prompts,
        max_new=length,
        vocab=config.vocab_size,
        repeats=repeats,
    )


def measure(model: Decoder, adapter: AntiPaSTO, load: Workload) -> dict:
    """One setting: median seconds of the step after a warm-up, and the floor."""
    device = model.device.type
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    step = stepper(load, make_run(load, adapter, model, MICRO_BATCH_TOKENS))
    seconds = []
    for _ in range(load.repeats):
        wait(device)
        start = time.perf_counter()
        row = step()
        wait(device)
        seconds.append({**phases(row), "step": time.perf_counter() - start})
    middle = {p: round(statistics.median(s[p] for s in seconds[1:]), 4) for p in seconds[0]}
    least = floor(model, load, rates(model, load.tokens["trained"]))
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None
    return {
        "prompts": len(load.prompts), "group": load.group, "tokens": load.tokens, "seconds": middle,
        "floor": {p: round(s, 4) for p, s in least.items()}, "ratio_floor": round(middle["step"] / least["step"], 2),
        "peak_gb": peak and round(peak, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("error: no CUDA GPU on this machine; benchmarks/step.py measures the CPU")
    torch.manual_seed(0)
    model = random_model(QWEN3_4B, "cuda", torch.bfloat16)
    adapter = random_adapter(model)
    settings = []
    for prompts in (4, 8):
        load = workload(QWEN3_4B, prompts, GROUP, PROMPT, LENGTH, arguments.rounds + 1)
        settings.append(measure(model, adapter, load))
        print(settings[-1], flush=True)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "settings": settings}
    write_json(OUT, result)


if __name__ == "__main__":
    main()
