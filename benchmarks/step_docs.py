"""docs/benchmarks.md from benchmarks/results/step.json (and gpu.json where there is one)."""

import json
from pathlib import Path

GPU = Path(__file__).resolve().parent / "results" / "gpu.json"
NAMES = {
    "ours": "this project", "ours_split": "this project, gradient split by source", "trl": "TRL GRPOTrainer",
    "trl_lora": "TRL GRPOTrainer, LoRA of rank 1",
    "reference_loop": "published structure", "floor": "matrix products alone",
}  # fmt: skip


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join("| " + " | ".join("" if c is None else str(c) for c in line) + " |" for line in lines)
        + "\n"
    )


def trl_over_floor(setting: dict) -> float | None:
    seconds = setting["cpu_seconds"]
    return seconds["trl"] / seconds["floor"] if {"trl", "floor"} <= seconds.keys() else None


def short(ratio: float | None) -> str:
    """A ratio as precise as three to five rounds make it."""
    return "" if ratio is None else f"{ratio:.1f}"


def above_floor(settings: dict) -> list[list]:
    """What is left to gain, by phase, of the settings with a floor."""
    rows = []
    for name, setting in settings.items():
        phases = setting["phases_wall_seconds"]
        if "floor" in phases:
            ours, floor = phases["ours"], phases["floor"]
            left = [f"{ours[phase] - floor[phase]:.2f}" for phase in ("generate", "backward")]
            rows.append([name, *left, f"{ours['project'] + ours['rest']:.2f}"])
    return rows


def reached(ratio: float, goal: bool) -> str:
    return f"{ratio:.1f}{'' if goal else ', missed'}"


def render(result: dict) -> str:
    """The page; every figure is one of `result`."""
    m, settings = result["machine"], result["settings"]
    full, lora = settings["135M-recorded"], settings["135M-recorded-lora"]
    large = (
        f"at least 8 times TRL ({reached(full['ratio_trl'], full['ratio_trl'] >= 8)}), 5 times TRL with LoRA "
        f"({reached(lora['ratio_trl_lora'], lora['ratio_trl_lora'] >= 5)}), at most 1.4 times the floor "
        f"({reached(full['ratio_floor'], full['ratio_floor'] <= 1.4)})"
    )
    rounds = " or ".join(sorted({str(setting["rounds"]) for setting in settings.values()}))
    parts = [
        "# What a step costs\n",
        "Made by `make bench` (`benchmarks/step.py`) from `benchmarks/results/step.json`, the part on a GPU by "
        "`benchmarks/gpu.py` from `gpu.json`; edit none of them by hand.\n",
        "One GRPO step is timed in four ways that take turns on one machine, one thread each, with the same "
        "weights, prompts, tokens to draw and rewards. These are this project's own `one_step`; TRL's "
        "`GRPOTrainer` (full weights, no reference model, no gradient checkpointing); a loop of the published "
        "structure; and the arithmetic floor, the step's matrix products alone. That loop generates prompt by "
        "prompt, has the adapter in the forward, takes the log-softmax over the whole sequence, and goes "
        f"backward twice. CPU seconds, medians over {rounds} rounds; ratios are taken within a round.\n",
        f"Machine: {m['cpu']}, {m['cores']} cores, torch {m['torch']}; load average at the start "
        f"{m['load_average_at_start']} (a busy machine makes all engines slower and the ratios less exact).\n",
        "`equal`: prompts of 64 tokens, rows of 64, random, so that no two are alike: there is no work to share, and "
        "three times TRL's speed would need compiled training kernels. `recorded`: tokens and rewards of a training "
        "step of a run (`benchmarks/recorded/`, made by `benchmarks/record.py`); what rows begin "
        "with alike is computed once, groups of equal rewards and ended rows cost nothing. The floor, too, counts "
        "distinct prefixes. TRL stands beside 135M with 4 prompts alone: at 8 its full trainer needs more than "
        "20 GB.\n",
        "## Ratios\n",
        table(
            ["setting", "parameters", "prompts x G", "TRL / ours", "TRL with LoRA / ours", "published / ours",
             "ours / floor", "TRL / floor"],
            [
                [name, f"{s['parameters'] / 1e6:.3g} M", f"{s['prompts']} x {s['group']}",
                 *map(short, (s["ratio_trl"], s.get("ratio_trl_lora"), s["ratio_reference_loop"], s["ratio_floor"],
                              trl_over_floor(s)))]
                for name, s in result["settings"].items()
            ],
        ),
        f"Goals at 0.9M: TRL at least 5 (recorded); published at least 5; floor at most 3. Goals at 135M: {large}. "
        f"TRL / floor is what an engine with no work but the floor's would reach, {trl_over_floor(full):.1f} at 135M. "
        "Wall seconds above the floor's, by phase; *rest* is the merge of the adapter and what no phase counts:\n",
        table(["setting", "ours less floor, generate", "backward", "project and rest"], above_floor(settings)),
    ]  # fmt: skip
    for name, s in result["settings"].items():
        rows = [
            [NAMES[e], s["cpu_seconds"][e], s["peak_mb"][e], s["tokens_per_second"][e],
             ", ".join(f"{p} {v:.3f}" for p, v in s["phases_wall_seconds"][e].items())]
            for e in s["cpu_seconds"]
        ]  # fmt: skip
        head = ["engine", "CPU s", "peak MB", "tokens / CPU s", "wall s by phase"]
        parts += [f"## {name}\n", table(head, rows)]
    if "growth" in result:
        rows = [[g["group"], g["length"], g["cpu_seconds"]] for g in result["growth"]]
        parts += ["## Growth with group size and length\n", table(["G", "tokens a row", "CPU s"], rows)]
    if "dag" in result:
        d = result["dag"]
        rows = [[r["seeds"], r["jobs"], r["cpu_seconds"], r.get("wall_seconds")] for r in d["dry_run"]]
        parts += [
            "## The DAG\n",
            f"A job that does nothing costs {d['cpu_seconds_per_empty_job']} CPU s. A dry run of everything:\n",
            table(["seeds", "jobs", "CPU s", "wall s"], rows),
        ]
    parts += ["## One GPU\n", gpu()]
    return "\n".join(parts)


def gpu() -> str:
    if not GPU.is_file():
        return "`benchmarks/gpu.py` has not been run on a GPU: no figure is given.\n"
    result = json.loads(GPU.read_text())
    steps = [r for r in result["settings"] if "seconds" in r]
    ours = [
        [r["shape"], r["prompts"], r["seconds"]["generate"], r["seconds"]["backward"],
         r["seconds"]["project"], r["seconds"]["step"],
         r["floor"]["step"], r["ratio_floor"], r["peak_gb"]]
        for r in steps
    ]  # fmt: skip
    theirs = [
        [r["shape"], NAMES[engine], t["generate"], t["step"], t["ratio"], t["peak_gb"]]
        for r in steps
        for engine, t in r["rivals"].items()
    ]
    svd = ", ".join(f"{r['shape']} {r['svd_seconds']:.0f}" for r in result["settings"] if "svd_seconds" in r)
    return "\n".join([
        f"`benchmarks/gpu.py` on one {result['device']}, torch {result['torch']}: random weights at published shapes, "
        "bf16, arm `erase`, G = 8, prompts of 400 tokens, all rows 512 tokens long; medians after a warm-up. The floor "
        "reads the weights once for each token that all rows decode, and multiplies at the measured rate of bf16 "
        "products.\n",
        table(
            ["shape", "prompts", "generate s", "backward s", "project s", "step s", "floor s", "ratio", "peak GB"], ours
        ),
        "A token takes 3 ms in the small models, whatever their size: a layer is some forty small kernels, and "
        "the time goes into starting them.\n",
        "TRL's trainer beside it, in turn, on the same 4 prompts; both are made to draw the same tokens. It samples "
        "with transformers' `generate`, which takes nearly all of its time; vLLM was not measured.\n",
        table(["shape", "engine", "generate s", "step s", "TRL / ours", "peak GB"], theirs),
        "The decompositions of all Linears, once a model, take about these seconds (one of each shape timed): "
        f"{svd}.\n",
    ])  # fmt: skip
