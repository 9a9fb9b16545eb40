"""Time one GRPO step side by side: ours, TRL's GRPOTrainer, a loop of the published structure, the bare products.

    python benchmarks/step.py [--rounds 5] [--only SETTING ...]
        -> benchmarks/results/step.json, docs/benchmarks.md

All engines get the same weights, prompts, tokens to draw and rewards (`workload.py`), one thread each, and take turns:
in every round each does one step while the others wait, so that whatever else the machine does slows all. Figures
are medians over the rounds (a warm-up round is dropped) of CPU seconds; ratios are taken within a round.
"""

import argparse
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from projected_grpo.errors import UserError
from projected_grpo.files import write_json, write_text
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.load import save_weights

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import dag  # noqa: E402
import step_docs  # noqa: E402
from workload import Workload  # noqa: E402

OPTIONAL = Path(sys.prefix) / "optional"  # made by `make optional`
OUT, DOCS = HERE / "results" / "step.json", HERE.parent / "docs" / "benchmarks.md"
MODELS = {
    "0.9M": Config(768, 128, 384, 4, 4, 2, 32, 1e-6, 1e4, True),
    "10M": Config(768, 384, 1152, 6, 6, 2, 64, 1e-6, 1e4, True),
    "135M": Config(49152, 576, 1536, 30, 9, 3, 64, 1e-5, 1e5, True, "llama"),
}
GROUP, PROMPT, LENGTH, VOCAB = 8, 64, 64, MODELS["0.9M"].vocab_size
# Our step is timed twice: all rows live, which is what TRL can do, and with one teacher row a group, so that the
# gradient is split by source, which is what the reference loop does.
SCRIPTS = {
    "ours": ["step_ours.py"], "ours_split": ["step_ours.py", "--teacher"],
    "reference_loop": ["reference_loop.py"], "floor": ["floor.py"], "trl": ["trl_step.py"],
    "trl_lora": ["trl_step.py", "--lora"],
}  # fmt: skip
SMALL = tuple(engine for engine in SCRIPTS if engine != "trl_lora")
# Both of TRL's trainers at once would need more than 24 GB at 135M, and so would the full one at 8 prompts.
FULL, LORA, LIGHT = ("ours", "floor", "trl"), ("ours", "trl_lora"), ("ours", "floor")


@dataclass(frozen=True)
class Setting:
    """One workload: a model's size, prompts a step, and whose tokens; None: random rows of equal length."""

    size: str
    prompts: int
    tokens: str | None = None  # a file of recorded/ without its suffix
    max_new: int = LENGTH
    engines: tuple[str, ...] = SMALL

    def work(self) -> dict:
        """Return what the engines do."""
        if self.tokens is None:
            return equal_lengths(self.prompts)
        return recorded(self.tokens, self.prompts, self.max_new)


SETTINGS = {
    "0.9M-equal": Setting("0.9M", 16),
    "0.9M-recorded": Setting("0.9M", 16, "0.9M", 72),
    "10M-equal": Setting("10M", 4),
    "10M-recorded": Setting("10M", 4, "0.9M", 72),
    "135M-recorded": Setting("135M", 4, "135M", 80, FULL),
    "135M-recorded-lora": Setting("135M", 4, "135M", 80, LORA),
    "135M-recorded-8": Setting("135M", 8, "135M", 80, LIGHT),
}


def random_model(config: Config, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Decoder:
    """Weights of a fresh model, made on the device: normal with deviation 0.02, norms of one."""
    generator, made = torch.Generator(device).manual_seed(0), {"device": device, "dtype": dtype}
    weights = {
        name: torch.ones(shape, **made)
        if len(shape) == 1
        else torch.randn(shape, generator=generator, **made).mul_(0.02)
        for name, shape in shapes(config).items()
    }
    return Decoder(config, weights)


def saved(folder: str, size: str) -> Path:
    """Return the canonical folder of a size's model, written at the first call."""
    path = Path(folder) / size
    if not path.exists():
        save_weights(random_model(MODELS[size]), path)
    return path


def equal_lengths(
    prompts: int, group: int = GROUP, length: int = LENGTH, prompt: int = PROMPT, vocab: int = VOCAB
) -> dict:
    """Prompts and rows of exactly these lengths, none like another, in every group rewards that differ."""
    draw = random.Random(0)
    return {
        "prompts": [[draw.randrange(vocab - 1) for _ in range(prompt)] for _ in range(prompts)],
        "completions": [
            [[draw.randrange(vocab - 1) for _ in range(length)] for _ in range(group)] for _ in range(prompts)
        ],
        "rewards": [[3.5 * (s % 2) for s in range(group)]] * prompts,
        "max_new": length,
    }


def recorded(size: str, prompts: int, max_new: int) -> dict:
    """Tokens and rewards of so many prompts of a real run (`recorded/`, made by `record.py`)."""
    groups = json.loads((HERE / "recorded" / f"{size}.json").read_text())[:prompts]
    keys = {"prompts": "prompt", "completions": "completions", "rewards": "rewards"}
    return {key: [group[name] for group in groups] for key, name in keys.items()} | {"max_new": max_new}


class Worker:
    """An engine in a process of its own, doing one step at a time."""

    def __init__(self, engine: str, workload: Path, *more: str):
        script, *options = SCRIPTS[engine]
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        if engine.startswith("trl"):
            environ["PYTHONPATH"] = str(OPTIONAL)
        self.engine = engine
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process)
        self.process = subprocess.Popen(
            [sys.executable, HERE / script, workload, *options, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, env=environ,
        )  # fmt: skip
        self._read()

    def step(self) -> dict:
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict:
        while line := self.process.stdout.readline():
            if line.startswith('{"'):  # a trainer may print other things
                return json.loads(line)
        self.errors.seek(0)
        raise RuntimeError(f"{self.engine} stopped: {self.errors.read().strip()[-800:]}")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def measure(name: str, model: Path, work: dict, rounds: int, engines: Sequence[str]) -> dict[str, list[dict]]:
    """Answers of every engine over the rounds, the warm-up dropped."""
    vocab = json.loads((model / "config.json").read_text())["vocab_size"]
    load = Workload(name=name, model=str(model), vocab=vocab, repeats=rounds + 1, **work)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder) / "workload.json"
        load.save(path)
        workers = [stack.enter_context(closing(Worker(engine, path))) for engine in engines]
        turns = tqdm(range(rounds + 1), desc=name, unit="round")
        answers = [{w.engine: w.step() for w in workers} for _ in turns][1:]
    return {engine: [answer[engine] for answer in answers] for engine in engines}


def median(values) -> float:
    return round(statistics.median(values), 4)


def summary(work: dict, config: Config, answers: dict[str, list[dict]]) -> dict:
    """One setting's entry of step.json."""

    def ratio(slow: str, fast: str) -> float | None:
        if slow not in answers or fast not in answers:
            return None
        return median(s["cpu"] / f["cpu"] for s, f in zip(answers[slow], answers[fast], strict=True))

    load = Workload(name="", model="", vocab=config.vocab_size, repeats=0, **work)
    tokens = load.tokens
    cpu = {engine: median(a["cpu"] for a in rows) for engine, rows in answers.items()}
    phases = {
        engine: {p: median(a["phases"][p] for a in rows) for p in rows[0]["phases"]}
        for engine, rows in answers.items()
    }
    return {
        "parameters": sum(map(math.prod, shapes(config).values())),
        "prompts": len(load.prompts), "group": load.group, "rounds": len(answers["ours"]), "tokens": tokens,
        "ratio_trl": ratio("trl", "ours"),
        "ratio_trl_lora": ratio("trl_lora", "ours"),
        "ratio_reference_loop": ratio("reference_loop", "ours_split"),
        "ratio_floor": ratio("ours", "floor"),
        "cpu_seconds": cpu,
        "wall_seconds": {engine: median(a["wall"] for a in rows) for engine, rows in answers.items()},
        "phases_wall_seconds": phases,
        "peak_mb": {engine: round(max(a["peak_mb"] for a in rows)) for engine, rows in answers.items()},
        "tokens_per_second": {e: round(tokens["generated"] / s) for e, s in cpu.items()},
    }  # fmt: skip


def growth(model: Path, rounds: int) -> list[dict]:
    """CPU seconds of our step by group size and by length, 16 prompts."""
    out = []
    for group, length in ((2, 64), (4, 64), (8, 64), (16, 64), (8, 16), (8, 32), (8, 128)):
        rows = measure("growth", model, equal_lengths(16, group, length), rounds, ["ours"])["ours"]
        out.append({"group": group, "length": length, "cpu_seconds": median(r["cpu"] for r in rows)})
    return out


def machine() -> dict:
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]  # fmt: skip
    return {
        "cpu": names[0] if names else platform.processor(), "cores": os.cpu_count(), "torch": torch.__version__,
        "load_average_at_start": round(os.getloadavg()[0], 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=[*SETTINGS, "growth", "dag"])
    arguments = parser.parse_args()
    if not (OPTIONAL / "trl").is_dir():
        raise UserError("TRL is not here; `make optional` first")
    only = arguments.only
    # a partial run keeps what it does not measure
    result = json.loads(OUT.read_text()) if only and OUT.is_file() else {"settings": {}}
    result["machine"] = machine()
    with tempfile.TemporaryDirectory() as folder:
        for name, setting in SETTINGS.items():
            if only and name not in only:
                continue
            work = setting.work()
            answers = measure(name, saved(folder, setting.size), work, arguments.rounds, setting.engines)
            entry = summary(work, MODELS[setting.size], answers)
            result["settings"][name] = entry
            write_json(OUT, result)
            print(name, {k: v for k, v in entry.items() if k.startswith("ratio")}, flush=True)
        if not only or "growth" in only:
            result["growth"] = growth(saved(folder, "0.9M"), max(5, arguments.rounds))
        if not only or "dag" in only:
            result["dag"] = dag.measure()
    write_json(OUT, result)
    write_text(DOCS, step_docs.render(result))


if __name__ == "__main__":
    try:
        main()
    except (UserError, RuntimeError) as error:
        raise SystemExit(f"error: {error}") from None
