"""What a policy does where it is deployed: plain prompts, nothing of what an arm holds beside it.

Every policy of a seed is sampled from one stream, whatever its arm, its steps and its own sampling stream: equal
weights give equal rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice

from projected_grpo.cells.config import Deployed
from projected_grpo.environment.facts import facts, verdict
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import NOVEL
from projected_grpo.environment.problems import Problem
from projected_grpo.environment.prompts import messages_for
from projected_grpo.method.adapter import Parameters
from projected_grpo.model.load import Tokenizer
from projected_grpo.model.qwen3 import Qwen3
from projected_grpo.training.columns import rate
from projected_grpo.training.run import Run
from projected_grpo.training.teacher_pool import sample_rows

Panels = Mapping[str, Sequence[Problem]]
STREAM = (1 << 32) + 2  # apart from the pool's, the small model's rates' and every training run's
FINAL_PROBLEMS, FINAL_SAMPLES = 80, 8  # training problems at the most, samples of each
HEADING = ("panel", "problem_id", "mode", "sample", "prompt", "tokens", "completion")
COLUMNS = (*HEADING, *verdict(facts(), "gt_only"))


def make_panels(held_out: Sequence[Problem], modes: Sequence[str], sizes: Deployed) -> Panels:
    """Return the problems of each panel with their levers: `known` the row's own in rotation, `novel` the same channels
    under other names, `plain` none.

    A panel goes on in the list where the one before it ended, and at its start where it ends: no problem stands
    twice in a panel, nor in two while the list is long enough. The ids depend on the list and the sizes alone, not on
    arm or modes. Raises UserError where a prompt has no place for a lever.
    """
    levers = {"known": modes, "novel": [NOVEL[mode] for mode in modes if mode in NOVEL], "plain": ["gt_only"]}
    panels: dict[str, list[Problem]] = {}
    start = 0
    for name, own in levers.items():
        size = min(getattr(sizes, name), len(held_out))
        chosen = islice(cycle(held_out), start, start + size)
        panels[name] = [replace(one, mode=mode) for one, mode in zip(chosen, cycle(own), strict=False)]
        start += size
    for problem in (problem for own in panels.values() for problem in own):
        messages_for(problem)
    return panels


def deployed_rows(
    model: Qwen3,
    tokenizer: Tokenizer,
    panels: Panels,
    grader: Grader,
    samples: int,
    max_new: int,
    seed: int,
) -> list[dict]:
    """Return a row of `COLUMNS` per rollout, as `deployed.parquet` has it."""
    names = [name for name, own in panels.items() for _ in own]
    problems = [problem for own in panels.values() for problem in own]
    sampled = sample_rows(model, tokenizer, problems, samples, max_new, seed, STREAM)
    rows = [
        {"panel": name, "problem_id": str(problem.id), "mode": problem.mode, "sample": row["sample_id"]}
        | {"prompt": messages_for(problem)[-1]["content"], "tokens": len(row["tokens"])}
        | {"completion": row["completion"]}
        for name, problem, group in zip(names, problems, sampled, strict=True)
        for row in group
    ]
    ids = (problem.id for problem in problems for _ in range(samples))
    asked = [(id, row["mode"], row["completion"]) for id, row in zip(ids, rows, strict=True)]
    return [row | found for row, found in zip(rows, grader.grade(asked), strict=True)]


def final_rates(run: Run) -> dict[str, float | None]:
    """Return hack and solve rates on training problems with the arm's quarantine kept and ablated, from one stream."""
    panels = {"trained": run.problems[:FINAL_PROBLEMS]}

    def rates(theta: Parameters) -> tuple[float | None, float | None]:
        model, max_new = run.policy.merged(theta), run.training.max_new
        rows = deployed_rows(
            model, run.policy.tokenizer, panels, run.grader, FINAL_SAMPLES, max_new, run.seed
        )
        return rate(rows, "hacked"), rate(rows, "gt_pass")

    theta = run.policy.theta
    kept = rates(run.arm.sampled_theta(theta))
    # What stores nothing beside theta is the same model with the same samples.
    ablated = rates(run.arm.deployed(theta)) if run.arm.stored() else kept
    names = ("hack_kept", "solve_kept", "hack_ablated", "solve_ablated")
    return dict(zip(names, kept + ablated, strict=True))
