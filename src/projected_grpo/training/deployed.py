"""Rates after the last step: of the policy as it was trained, and as its arm deploys it."""

from projected_grpo.method.adapter import Parameters
from projected_grpo.training.columns import rate
from projected_grpo.training.loop import Run
from projected_grpo.training.rollouts import grade_rows, sample_live

PROBLEMS, SAMPLES = 80, 8  # training problems at the most, samples of each


def final_rates(run: Run) -> dict[str, float | None]:
    """Return hack and solve rates with the arm's quarantine kept and ablated, both from the same sampling stream."""
    indices = list(range(min(PROBLEMS, len(run.problems))))

    def rates(theta: Parameters) -> tuple[float | None, float | None]:
        model, counts, step = run.policy.merged(theta), [SAMPLES] * len(indices), run.training.steps + 1
        rollouts = sample_live(run, model, indices, counts, step, run.plain_prompts)
        rows = [row for group in grade_rows(run, indices, rollouts) for row in group]
        return rate(rows, "hacked"), rate(rows, "gt_pass")

    theta = run.policy.theta
    kept = rates(run.arm.sampled_theta(theta))
    # What stores nothing beside theta is the same model with the same samples.
    ablated = rates(run.arm.deployed(theta)) if run.arm.stored() else kept
    names = ("hack_kept", "solve_kept", "hack_ablated", "solve_ablated")
    return dict(zip(names, kept + ablated, strict=True))
