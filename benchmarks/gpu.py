"""Time one GRPO step at the shapes of published models (random weights) on one CUDA GPU, against its own floor.

    python benchmarks/gpu.py [--rounds 3] [--shapes qwen3-4b ...] -> benchmarks/results/gpu.json

The step is training's own `one_step` (bf16 weights, delta_S in fp32, arm `erase`): G = 8, 4 and 8 prompts of 400
tokens, rows of 512. The floor is weights read once a decode step at the measured memory bandwidth, and six
operations per parameter and training token, plus the head's, at the measured rate of bf16 products. U and Vh are
random orthonormal matrices, not an SVD: no time depends on their values. What the SVDs of all Linears take is
measured apart, one Linear of each shape. Where TRL is installed (`make optional`) and the shape is small, its trainer
does the same work in turn with ours: full weights, and a LoRA of rank 1 on the same Linears.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from projected_grpo.files import write_json
from projected_grpo.method.adapter import AntiPaSTO, decompose
from projected_grpo.model import graphs
from projected_grpo.model.architecture import Config
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.load import save_weights

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from step import OPTIONAL, Worker, equal_lengths, random_model  # noqa: E402
from step_ours import make_run, phases, stepper  # noqa: E402
from workload import Workload  # noqa: E402

OUT = HERE / "results" / "gpu.json"
LLAMA3 = {
    "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
SHAPES = {
    "smollm2-135m": Config(49152, 576, 1536, 30, 9, 3, 64, 1e-5, 1e5, True, "llama"),
    "qwen2.5-coder-0.5b": Config(151936, 896, 4864, 24, 14, 2, 64, 1e-6, 1e6, True, "qwen2"),
    "llama-3.2-1b": Config(128256, 2048, 8192, 16, 32, 8, 64, 1e-5, 5e5, True, "llama", rope_scaling=LLAMA3),
    "qwen3-4b": Config(151936, 2560, 9728, 36, 32, 8, 128, 1e-6, 1e6, True),
}
GROUP, PROMPT, LENGTH = 8, 400, 512
RIVALS, LARGE = ("trl", "trl_lora"), 7e8  # above it TRL's full trainer takes its whole memory and minutes
MICRO_BATCH_TOKENS = 16384  # as config/qwen3-4b.yaml


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


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


def decomposing(model: Decoder) -> float:
    """Seconds that the SVDs of all Linears take: one of each shape, times how often it occurs."""
    seconds = {}
    for name in model.linears:
        W = model.weights[f"{name}.weight"]
        if W.shape not in seconds:
            wait(W.device.type)
            start = time.perf_counter()
            decompose(W)
            wait(W.device.type)
            seconds[W.shape] = time.perf_counter() - start
    return sum(seconds[model.weights[f"{name}.weight"].shape] for name in model.linears)


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
    work = equal_lengths(prompts, group, length, prompt, config.vocab_size)
    return Workload(name="gpu", model="", vocab=config.vocab_size, repeats=repeats, **work)


@contextmanager
def started(load: Workload, model: Decoder, engines: Sequence[str]) -> Iterator[list[Worker]]:
    """Workers of other engines on the same weights and work."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if engines:
            save_weights(model, Path(folder) / "model")
            replace(load, model=str(Path(folder) / "model")).save(Path(folder) / "workload.json")
        path = Path(folder) / "workload.json"
        yield [stack.enter_context(closing(Worker(engine, path, "--gpu"))) for engine in engines]


def measure(model: Decoder, adapter: AntiPaSTO, load: Workload, rivals: Sequence[Worker] = ()) -> dict:
    """One setting: median seconds of the step after a warm-up, the floor, and the rivals' steps in turn with it."""
    device = model.device.type
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    step = stepper(load, make_run(load, adapter, model, MICRO_BATCH_TOKENS))
    seconds, answers = [], []
    for _ in range(load.repeats):
        wait(device)
        start = time.perf_counter()
        row = step()
        wait(device)
        seconds.append({**phases(row), "step": time.perf_counter() - start})
        answers.append({rival.engine: rival.step() for rival in rivals})
    middle = {p: round(statistics.median(s[p] for s in seconds[1:]), 4) for p in seconds[0]}
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None
    least = floor(model, load, rates(model, load.tokens["trained"]))
    return {
        "prompts": len(load.prompts), "group": load.group, "tokens": load.tokens, "seconds": middle,
        "floor": {p: round(s, 4) for p, s in least.items()}, "ratio_floor": round(middle["step"] / least["step"], 2),
        "peak_gb": peak and round(peak, 1), "rivals": {r.engine: beside(r.engine, seconds, answers) for r in rivals},
    }  # fmt: skip


def beside(engine: str, ours: list[dict], answers: list[dict]) -> dict[str, float]:
    """Medians of a rival's step after the warm-up, and of what it takes for one of ours in the same round."""
    theirs = [answer[engine] for answer in answers[1:]]
    ratios = [t["wall"] / o["step"] for t, o in zip(theirs, ours[1:], strict=True)]
    generate = statistics.median(t["phases"]["generate"] for t in theirs)
    return {
        "step": round(statistics.median(t["wall"] for t in theirs), 2), "generate": round(generate, 2),
        "ratio": round(statistics.median(ratios), 2), "peak_gb": round(max(t["peak_gb"] for t in theirs), 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("error: no CUDA GPU on this machine; benchmarks/step.py measures the CPU")
    torch.manual_seed(0)
    settings = []
    for name in arguments.shapes:
        model = random_model(SHAPES[name], "cuda", torch.bfloat16)
        settings.append({"shape": name, "svd_seconds": round(decomposing(model), 1)})
        print(settings[-1], flush=True)
        adapter = random_adapter(model)
        is_small = sum(W.numel() for W in model.weights.values()) <= LARGE
        for prompts in (4, 8):
            load = workload(model.config, prompts, GROUP, PROMPT, LENGTH, arguments.rounds + 1)
            engines = RIVALS if OPTIONAL.is_dir() and is_small and prompts == 4 else ()
            with started(load, model, engines) as rivals:
                settings.append({"shape": name} | measure(model, adapter, load, rivals))
            print(settings[-1], flush=True)
        graphs._latest.clear()  # it holds the shape's weights
        del model, adapter
    machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    before = json.loads(OUT.read_text()) if OUT.is_file() else {}
    if machine.items() <= before.items():  # shapes that were not asked for stay
        settings += [s for s in before["settings"] if s["shape"] not in arguments.shapes]
    settings.sort(key=lambda s: list(SHAPES).index(s["shape"]))
    write_json(OUT, machine | {"settings": settings})


if __name__ == "__main__":
    main()
