"""Rates after the last step: of the policy as it was trained, and as its arm deploys it."""

from projected_grpo.method.adapter import Parameters
from projected_grpo.training.columns import rate
from projected_grpo.training.panels import deployed_rows
from projected_grpo.training.run import Run

PROBLEMS, SAMPLES = 80, 8  # training problems at the most, samples of each


def final_rates(run: Run) -> dict[str, float | None]:
    """Return hack and solve rates on training problems with the arm's quarantine kept and ablated, from one stream."""
    panels = {"trained": run.problems[:PROBLEMS]}

    def rates(theta: Parameters) -> tuple[float | None, float | None]:
        model, max_new = run.policy.merged(theta), run.training.max_new
        rows = deployed_rows(model, run.policy.tokenizer, panels, run.grader, SAMPLES, max_new, run.seed)
        return rate(rows, "hacked"), rate(rows, "gt_pass")

    theta = run.policy.theta
    kept = rates(run.arm.sampled_theta(theta))
    # What stores nothing beside theta is the same model with the same samples.
    ablated = rates(run.arm.deployed(theta)) if run.arm.stored() else kept
    names = ("hack_kept", "solve_kept", "hack_ablated", "solve_ablated")
    return dict(zip(names, kept + ablated, strict=True))
