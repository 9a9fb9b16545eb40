"""Time one GRPO step side by side: ours, TRL's GRPOTrainer, a loop of the published structure, the bare products.

    python benchmarks/step.py [--rounds 5] [--only SETTING ...] [--no-trl]
        -> benchmarks/results/step.json, docs/benchmarks.md

All engines get the same weights, prompts, tokens to draw and rewards (`workload.py`), one thread each, and take turns:
in every round each does one step while the others wait, so that whatever else the machine does slows all. Figures
are medians over the rounds (a warm-up round is dropped) of CPU seconds; ratios are taken within a round.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
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
import trl_environment  # noqa: E402
from workload import Workload  # noqa: E402

OUT, DOCS = HERE / "results" / "step.json", HERE.parent / "docs" / "benchmarks.md"
VOCAB = 768
MODELS = {
    "0.9M": Config(VOCAB, 128, 384, 4, 4, 2, 32, 1e-6, 1e4, True),
    "10M": Config(VOCAB, 384, 1152, 6, 6, 2, 64, 1e-6, 1e4, True),
}
PROMPTS = {"0.9M": 16, "10M": 4}
GROUP, PROMPT, LENGTH, MAX_NEW = 8, 64, 64, 72
# Our step is timed twice: all rows live, which is what TRL can do, and with one teacher row a group, so that the
# gradient is split by source, which is what the reference loop does.
SCRIPTS = {
    "ours": ["step_ours.py"], "ours_split": ["step_ours.py", "--teacher"],
    "reference_loop": ["reference_loop.py"], "floor": ["floor.py"], "trl": ["trl_step.py"],
}  # fmt: skip


def random_model(config: Config) -> Decoder:
    """Weights of a fresh model: normal with deviation 0.02, norms of one."""
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.ones(shape) if len(shape) == 1 else 0.02 * torch.randn(shape, generator=generator)
        for name, shape in shapes(config).items()
    }
    return Decoder(config, weights)


def equal_lengths(prompts: int, group: int = GROUP, length: int = LENGTH) -> dict:
    """Prompts of 64 tokens, rows of exactly `length`, none like another, in every group rewards that differ."""
    draw = random.Random(0)
    return {
        "prompts": [[draw.randrange(VOCAB - 1) for _ in range(PROMPT)] for _ in range(prompts)],
        "completions": [
            [[draw.randrange(VOCAB - 1) for _ in range(length)] for _ in range(group)] for _ in range(prompts)
        ],
        "rewards": [[3.5 * (s % 2) for s in range(group)]] * prompts,
        "max_new": length,
    }


def recorded(prompts: int) -> dict:
    """Tokens and rewards of a recorded step of the embedded default (`recorded.json`, made by `record.py`)."""
    groups = json.loads((HERE / "recorded.json").read_text())[:prompts]
    keys = {"prompts": "prompt", "completions": "completions", "rewards": "rewards"}
    return {key: [group[name] for group in groups] for key, name in keys.items()} | {"max_new": MAX_NEW}


class Worker:
    """An engine in a process of its own, doing one step at a time."""

    def __init__(self, engine: str, workload: Path):
        python = trl_environment.PYTHON if engine == "trl" else sys.executable
        script, *options = SCRIPTS[engine]
        self.engine = engine
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process)
        self.process = subprocess.Popen(
            [python, HERE / script, workload, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
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


def measure(name: str, model: Path, work: dict, rounds: int, engines: list[str]) -> dict[str, list[dict]]:
    """Answers of every engine over the rounds, the warm-up dropped."""
    load = Workload(name=name, model=str(model), vocab=VOCAB, repeats=rounds + 1, **work)
    with tempfile.TemporaryDirectory() as folder:
        load.save(Path(folder) / "workload.json")
        workers = [Worker(engine, Path(folder) / "workload.json") for engine in engines]
        try:
            turns = tqdm(range(rounds + 1), desc=name, unit="round")
            answers = [{w.engine: w.step() for w in workers} for _ in turns][1:]
        finally:
            for worker in workers:
                worker.close()
    return {engine: [answer[engine] for answer in answers] for engine in engines}


def median(values) -> float:
    return round(statistics.median(values), 4)


def summary(work: dict, model: Decoder, answers: dict[str, list[dict]]) -> dict:
    """One setting's entry of step.json."""

    def ratio(slow: str, fast: str) -> float | None:
        if slow not in answers:
            return None
        return median(s["cpu"] / f["cpu"] for s, f in zip(answers[slow], answers[fast], strict=True))

    load = Workload(name="", model="", vocab=VOCAB, repeats=0, **work)
    tokens = load.tokens
    cpu = {engine: median(a["cpu"] for a in rows) for engine, rows in answers.items()}
    phases = {
        engine: {p: median(a["phases"][p] for a in rows) for p in rows[0]["phases"]}
        for engine, rows in answers.items()
    }
    return {
        "parameters": sum(W.numel() for W in model.weights.values()),
        "prompts": len(load.prompts), "group": load.group, "rounds": len(answers["ours"]), "tokens": tokens,
        "ratio_trl": ratio("trl", "ours"),
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
    parser.add_argument("--only", nargs="+", help="settings such as 0.9M-equal, or: growth, dag")
    parser.add_argument("--no-trl", action="store_true")
    arguments = parser.parse_args()
    engines = [e for e in SCRIPTS if not (arguments.no_trl and e == "trl")]
    if "trl" in engines:
        trl_environment.make()
    only = arguments.only
    # a partial run keeps what it does not measure
    result = json.loads(OUT.read_text()) if only and OUT.is_file() else {"settings": {}}
    result["machine"] = machine()
    with tempfile.TemporaryDirectory() as folder:
        for size, config in MODELS.items():
            path = Path(folder) / size
            model = random_model(config)
            save_weights(model, path)
            for kind, work in (
                ("equal", equal_lengths(PROMPTS[size])),
                ("recorded", recorded(PROMPTS[size])),
            ):
                name = f"{size}-{kind}"
                if not only or name in only:
                    entry = summary(work, model, measure(name, path, work, arguments.rounds, engines))
                    result["settings"][name] = entry
                    write_json(OUT, result)
                    print(name, {k: v for k, v in entry.items() if k.startswith("ratio")}, flush=True)
        if not only or "growth" in only:
            result["growth"] = growth(Path(folder) / "0.9M", max(5, arguments.rounds))
        if not only or "dag" in only:
            result["dag"] = dag.measure()
    write_json(OUT, result)
    write_text(DOCS, step_docs.render(result))


if __name__ == "__main__":
    try:
        main()
    except (UserError, RuntimeError) as error:
        raise SystemExit(f"error: {error}") from None
