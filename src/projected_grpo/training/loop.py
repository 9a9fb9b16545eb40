"""A run's steps one after the other, each ending in a checkpoint.

A resumed run continues the same streams and gives the same rows, but for the columns of seconds.
"""

import logging
from collections.abc import Callable

from projected_grpo.training.checkpoint import Checkpoint
from projected_grpo.training.run import Run
from projected_grpo.training.schedule import problem_order
from projected_grpo.training.step import one_step

log = logging.getLogger(__name__)


def train(
    run: Run, checkpoint: Checkpoint, progress: Callable[[dict], None] = lambda row: None
) -> list[dict]:
    """Run all steps, resuming from the checkpoint where there is one; return their rows. All else is in the checkpoint.

    progress: hears each row.
    """
    done, state = checkpoint.load()
    rows: list[dict] = []
    if done:
        log.info("resuming after step %d", done)
        rows, run.policy.theta = state["rows"], state["theta"]
        run.optimizer.load(state["optimizer"])
        run.arm.load(state["arm"])
        for row in rows:
            progress(row)
    steps = run.training.steps
    order = problem_order(run.seed, len(run.problems), run.training.prompts, steps)
    for step in range(done + 1, steps + 1):
        row, stored = one_step(run, step, order[step - 1])
        rows.append(row)
        state = {
            "rows": rows,
            "theta": run.policy.theta,
            "optimizer": run.optimizer.state(),
            "arm": run.arm.state(),
        }
        deployed = run.arm.deployed(run.policy.theta) if run.setting.adapter == "antipasto" else None
        checkpoint.save(step, state, stored, deployed)
        progress(row)
    return rows
