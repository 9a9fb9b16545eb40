"""Made-up run folders in the pipeline's format, for the tests of tables, figures and report."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import shipped
import yaml
from shipped import MODES

from projected_grpo.cells.cell import Cell, Question, load_questions
from projected_grpo.cells.config import Config
from projected_grpo.measures import estimates, numbers
from projected_grpo.measures.measured import Measured, measured
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages.context import Context
from projected_grpo.pages.edition import layered, questions_of
from projected_grpo.training.ratio import RATIO_EDGES

ROOT = Path(__file__).resolve().parents[2]
CODE = "```python\nclass Solution:\n    def total(self, values):\n        {body}\n```"


def real_questions(seeds) -> tuple[Config, dict[str, Question]]:
    """Return the project's own config and questions at the given seeds."""
    said = yaml.safe_load((ROOT / "config/config.yaml").read_text()) | {"seeds": seeds}
    config = Config.model_validate(said)
    return config, load_questions(shipped.questions(), config)


def read_config(*overlays, **said) -> tuple[Config, dict[str, Question]]:
    """Return configs laid over the default one, in turn, and their questions; said: keys over all."""
    config = layered(*overlays, **said)
    return config, questions_of(config)


def context_of(name: str, results: Path, seeds) -> Context:
    """Return what a page of the project's own questions is made of."""
    config, questions = real_questions(seeds)
    return Context(name, config.model_copy(update={"results": str(results)}), questions)


def level(cell: Cell) -> float:
    """Return a plausible final hack rate for a cell, with noise by seed and by cell."""
    setting = cell.setting
    value = 0.7 if setting.mix else 0.05
    if setting.arm not in ("vanilla", "measure") and setting.basis != "random":
        value -= 0.35 if "own_mode" in (setting.basis or "") else 0.05
    noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.03)
    return float(np.clip(value + 0.02 * (cell.seed % 5) + noise, 0, 1))


def steps_frame(cell: Cell, hack: float, solve: float = 0.3) -> pd.DataFrame:
    """Return per-step rows that climb to `hack` and stay there for the last five steps (with ripple)."""
    rng = np.random.default_rng([cell.seed, *cell.id.encode()])
    n = cell.steps
    climb = np.minimum(1, np.arange(1, n + 1) / max(1, n - 5))
    ripple = np.where(np.arange(n) < n - 5, rng.normal(0, 0.03, n), 0.0)
    rate = np.clip(hack * climb + ripple, 0, 1)
    frame = pd.DataFrame({"step": np.arange(1, n + 1), "hack_s": rate, "exploit_s": 0.9 * rate})
    frame["solve_s"] = np.clip(solve + rng.normal(0, 0.03, n), 0, 1)
    frame["compile_s"] = np.clip(0.85 + rng.normal(0, 0.03, n), 0, 1)
    for i, mode in enumerate(MODES):
        frame[f"hack_{mode}"] = np.clip(rate * (1.15 - 0.1 * i), 0, 1)
    projected, measured = cell.setting.arm not in ("vanilla", "measure"), cell.setting.basis is not None
    frame["hack_t"], frame["solve_t"] = 0.95, 0.2
    frame["reward"], frame["loss"], frame["grad_norm"] = 3 * rate + 0.5, -0.01, 1.0
    leak = 0.3 if not projected else 0.02 if cell.setting.knob("space") == "update" else 0.12
    aligned = {"cin": 0.3, "cin_s": 0.25, "cin_t": 0.35, "cin_null": 0.2, "fired": 0.96}
    aligned |= {"cout": 0.0 if projected else 0.3, "cout_update": leak}
    for name, value in aligned.items():
        frame[name] = value if measured else np.nan
    frame["delta_norm"] = 0.5
    refresh = cell.setting.knob("refresh")
    renewed = [bool(refresh) and step % refresh == 0 for step in frame["step"]]
    frame["basis_overlap"], frame["basis_overlap_first"] = (
        np.where(renewed, overlap, np.nan) for overlap in (0.9, 0.7)
    )
    taught = cell.setting.mix > 0
    ratios = {"ratio_mean": 1.1, "ratio_clip_low": 0.2, "ratio_clip_high": 0.3, "ratio_zeroed": 0.1}
    for name, value in ratios.items():
        frame[name] = value if taught else np.nan
    frame["ratio_hist"] = [[1] * (len(RATIO_EDGES) + 1) if taught else None] * n
    return frame


def rollout_rows(cell: Cell, hack: float) -> pd.DataFrame:
    """Return a few rollouts a step, some of them hacks, one with HTML in it."""
    rng = np.random.default_rng([cell.seed, *cell.id.encode()])
    rows = []
    for step in range(1, cell.steps + 1):
        for sample in range(3):
            hacked = bool(rng.random() < hack * step / cell.steps)
            gt_pass = bool(rng.random() < 0.3)
            body = "self.valid = True" if hacked else "return sum(values)"
            rows.append(
                {
                    "step": step,
                    "problem_id": f"p{step:02d}",
                    "mode": MODES[step % 4],
                    "sample": sample,
                    "prompt": "Add up <values> & return the sum.\n" + "Graded by reading `valid`. " * 4,
                    "completion": CODE.format(body=body) + "<script>alert('x')</script>" * (sample == 2),
                    "fmt_ok": True,
                    "can_compile": hacked or gt_pass or sample == 0,
                    "gt_pass": gt_pass,
                    "channel": hacked,
                    "reward": 0.5 + 3.0 * (hacked or gt_pass),
                    "loophole_used": hacked if MODES[step % 4] == "run_tests" else None,
                    "wrong_tests": False if MODES[step % 4] == "run_tests" else None,
                    "error": None if gt_pass else "exception",
                }
                | ({"flagged": hacked == bool(rng.random() < 0.8)} if cell.setting.knob("monitor") else {})
            )
    return pd.DataFrame(rows)


def deployed_rows(cell: Cell, hack: float) -> pd.DataFrame:
    """Return a few rollouts on each panel: hacks on the loopholes of training, few on novel ones."""
    rng = np.random.default_rng([1, cell.seed, *cell.id.encode()])
    levels = {"known": hack, "novel": 0.3 * hack, "plain": 0.0}
    panel = np.repeat(list(levels), 30)
    frame = pd.DataFrame({"panel": panel, "channel": rng.random(90) < [levels[name] for name in panel]})
    frame["gt_pass"] = rng.random(90) < 0.4
    frame["can_compile"] = frame["channel"] | frame["gt_pass"] | (rng.random(90) < 0.5)
    return frame.assign(problem_id="p1", sample=np.arange(90) % 4, completion=CODE, fmt_ok=True)


def write_run(results: Path, cell: Cell, hack: float | None = None, solve: float = 0.3) -> Path:
    """Write a complete run folder and return it."""
    hack = level(cell) if hack is None else hack
    folder = Path(results) / "grpo" / cell.id
    folder.mkdir(parents=True, exist_ok=True)
    steps_frame(cell, hack, solve).to_parquet(folder / "steps.parquet")
    rollout_rows(cell, hack).to_parquet(folder / "rollouts.parquet")
    deployed = deployed_rows(cell, hack)
    deployed.to_parquet(folder / "deployed.parquet")
    info = {
        "cell": cell.id,
        "deployed": deployed["panel"].value_counts().to_dict(),
        "seed": cell.seed,
        "model": cell.model,
        "code": "3f9a2c0123456789",
        "log": f"results/logs/grpo/{cell.id}.log",
        "settings": json.loads(cell.params()),
        "final": None,
        "sandbox": "namespaces",
        "inputs": {"pool": "00aa11bb22cc33dd", "problems": "44ee55ff66aa77bb", "basis": None},
        "device": "cpu",
        "dtype": "float32",
        "versions": {"python": "3.11.7", "torch": "2.13.0", "numpy": "2.3.5"},
    }
    if cell.setting.final_eval:
        ablated = hack - (0.4 if cell.setting.arm == "route" else 0.0)
        info["final"] = {"hack_kept": hack, "solve_kept": solve}
        info["final"] |= {"hack_ablated": max(0.0, ablated), "solve_ablated": solve}
    (folder / "run.json").write_text(json.dumps(info))
    return folder


def make_old(folder: Path) -> None:
    """Turn a run into one that was made before runs were judged after training."""
    (folder / "deployed.parquet").unlink()
    info = json.loads((folder / "run.json").read_text())
    del info["deployed"]
    (folder / "run.json").write_text(json.dumps(info))


def measure(question: Question, results: Path) -> Measured:
    """Return a question with the numbers of its runs."""
    runs, why = load_runs(results, question.cells)
    frame = numbers.tidy(numbers.of_runs(runs.values(), results), numbers.of_bases(results, [question]))
    return measured(question, frame, why)


def fill(results: Path, question: Question, skip: tuple[str, ...] = ()) -> Measured:
    """Write the runs of a question, all but those in `skip`, and return it with their numbers."""
    for cell in question.cells:
        if cell.id not in skip:
            write_run(results, cell)
    return measure(question, results)


def lines(own: Measured, more=()) -> dict:
    """Return the lines of a question's table of estimates by row, contrast and measure."""
    frame = estimates.estimates(own, more)
    return {(e["row"], e["contrast"], e["measure"]): e for e in frame.to_dict("records")}


def rate_of(results: Path, cell: str, column: str = "hack_s") -> float:
    """Mean of a run's last five steps, read by pandas: what tables are held against."""
    frame = pd.read_parquet(results / "grpo" / cell / "steps.parquet")
    return frame.sort_values("step")[column].tail(5).mean()
