"""One GRPO run: problems -> samples -> verdicts -> advantages -> gradient -> intervention -> step -> row.

A simplified GRPO, on purpose: one inner step (the ratio is 1), Dr.GRPO advantages, no reward shaping, teacher
rollouts cached with frozen rewards. Every step ends in a checkpoint; a resumed run continues the same streams and
gives the same rows, but for the `seconds_*` columns.
"""

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.modes import messages_for
from projected_grpo.environment.problems import Problem
from projected_grpo.method.basis import Basis, overlap
from projected_grpo.method.extraction import extract_basis, select_pairs
from projected_grpo.method.optimizer import AdamW, learning_rate
from projected_grpo.method.policy import Policy
from projected_grpo.method.projection import Intervention
from projected_grpo.model.qwen3 import Qwen3
from projected_grpo.model.sampler import Rollout, sample, uniforms
from projected_grpo.training.checkpoint import Checkpoint
from projected_grpo.training.groups import Group, Row
from projected_grpo.training.schedule import problem_order, teacher_draw
from projected_grpo.training.update import Update, policy_gradient, ratio_columns

log = logging.getLogger(__name__)


@dataclass
class Refresh:
    """Where a refreshed basis comes from: the pair file and the extraction knobs."""

    pairs: Path
    knobs: dict


@dataclass
class Run:
    """Everything a training run needs, loaded. `settings`: a cell's `setting`, `use` and `grpo`."""

    seed: int
    setting: dict
    use: dict
    grpo: dict
    policy: Policy
    problems: list[Problem]
    pool: dict[str, list[Row]]
    grader: Grader
    basis: Basis | None = None  # as stored; `use` says how much of it is used
    refresh: Refresh | None = None
    prompts: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self):
        encode = self.policy.tokenizer.encode_chat
        self.prompts = {str(p.id): encode(messages_for(p)) for p in self.problems}
        self.known = self.basis.used(**self.use) if self.basis else None

    @property
    def steps(self) -> int:
        return self.grpo["steps"]


class Timer:
    """Seconds per phase of one step; what no phase claims is `rest`."""

    def __init__(self):
        self.start = self.last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self.last
        self.last = now

    def columns(self) -> dict[str, float]:
        rest = time.perf_counter() - self.start - sum(self.seconds.values())
        phases = ("generate", "grade", "backward", "project")
        return {f"seconds_{p}": self.seconds.get(p, 0.0) for p in phases} | {"seconds_rest": rest}


def sample_live(
    run: Run, model: Qwen3, indices: list[int], counts: list[int], step: int
) -> list[list[Rollout]]:
    """Sample `counts[i]` completions of problem `indices[i]` for each i, from the run's sampling stream."""
    stream, max_new = run.setting["stream"], run.grpo["max_new"]
    end = run.policy.tokenizer.end
    rollouts: dict[int, list[Rollout]] = {i: [] for i in indices}
    for n in sorted(set(counts) - {0}):  # one call for all prompts with equally many rows
        chosen = [i for i, count in zip(indices, counts, strict=True) if count == n]
        prompts = [run.prompts[str(run.problems[i].id)] for i in chosen]
        draws = uniforms(run.seed, stream, step, chosen, n, max_new)
        drawn = sample(model, prompts, n, draws, max_new, end)
        rollouts |= dict(zip(chosen, _split(drawn, [n] * len(chosen)), strict=True))
    return [rollouts[i] for i in indices]


def _split(items: list, counts: list[int]) -> list[list]:
    rest = iter(items)
    return [[next(rest) for _ in range(n)] for n in counts]


def grade_rows(run: Run, indices: list[int], rollouts: list[list]) -> list[list[Row]]:
    """Turn sampled rollouts into graded rows; the verdict also keeps the completion's text."""
    decode = run.policy.tokenizer.decode
    texts = [[decode(rollout.tokens) for rollout in group] for group in rollouts]
    asked = [
        (run.problems[i].id, run.problems[i].mode, t)
        for i, group in zip(indices, texts, strict=True)
        for t in group
    ]
    verdicts = _split(run.grader.grade(asked), [len(group) for group in rollouts])
    return [
        [
            Row(rollout.tokens, rollout.logprobs, verdict["reward"], {**verdict, "completion": text})
            for rollout, text, verdict in zip(*group, strict=True)
        ]
        for group in zip(rollouts, texts, verdicts, strict=True)
    ]


def make_groups(run: Run, model: Qwen3, indices: list[int], step: int, timer: Timer) -> list[Group]:
    """Return the groups of a step: G_t = round(G mix) pool rows and G - G_t live samples per prompt.

    Prompts of a held-out mode get live samples only.
    """
    size, setting = run.grpo["group"], run.setting
    from_pool = [
        0 if run.problems[i].mode == setting["held_out_mode"] else round(size * setting["mix"])
        for i in indices
    ]
    counts = [size - n for n in from_pool]
    rollouts = sample_live(run, model, indices, counts, step)
    timer.lap("generate")
    live = grade_rows(run, indices, rollouts)
    timer.lap("grade")
    groups = []
    for index, n, rows in zip(indices, from_pool, live, strict=True):
        problem = run.problems[index]
        pool = run.pool.get(str(problem.id), []) if n else []
        drawn = [pool[i] for i in teacher_draw(run.seed, step, index, len(pool), n)] if n else []
        groups.append(Group(problem, run.prompts[str(problem.id)], rows, drawn))
    return groups


def rate(rows: list[Row], key: str) -> float | None:
    """Return the share of rows whose verdict has `key`; None without rows or where no row has a verdict on it."""
    values = [row.verdict[key] for row in rows if row.verdict.get(key) is not None]
    return sum(values) / len(values) if values else None


def outcome_columns(groups: list[Group], modes: list[str]) -> dict:
    """Return the step's rates over student (`_s`) and teacher (`_t`) rows, and the hack rate per mode."""
    live = [row for group in groups for row in group.live]
    teacher = [row for group in groups for row in group.teacher]
    columns = {
        "hack_s": rate(live, "hacked"),
        "exploit_s": rate(live, "exploited"),
        "solve_s": rate(live, "gt_pass"),
        "compile_s": rate(live, "can_compile"),
        "hack_t": rate(teacher, "hacked"),
        "solve_t": rate(teacher, "gt_pass"),
        "reward": sum(row.reward for row in live) / len(live),
    }
    for mode in modes:
        columns[f"hack_{mode}"] = rate(
            [r for g in groups if g.problem.mode == mode for r in g.live], "hacked"
        )
    lengths = [len(row.tokens) for row in live]
    columns["tokens_mean"] = sum(lengths) / len(lengths)
    columns["tokens_generated"] = sum(lengths)
    columns["groups_used"] = sum(len({row.reward for row in group.rows}) > 1 for group in groups)
    return columns


def rollout_rows(groups: list[Group], step: int) -> list[dict]:
    """Return the student's rollouts of a step as rows for `rollouts.parquet`."""
    return [
        {"step": step, "problem_id": str(group.problem.id), "mode": group.problem.mode, "sample": number}
        | {"prompt": messages_for(group.problem)[-1]["content"], "tokens": len(row.tokens)}
        | row.verdict
        for group in groups
        for number, row in enumerate(group.live)
    ]


def make_update(run: Run) -> Update:
    """Build the update of a run's arm with fresh optimizer states."""
    grpo, setting = run.grpo, run.setting

    def optimizer() -> AdamW:
        return AdamW(run.policy.theta, tuple(grpo["betas"]), grpo["weight_decay"])

    return Update(
        arm=setting["arm"],
        space=setting["space"],
        how=Intervention(setting["gate"], setting["overshoot"], setting["preserve_magnitude"]),
        optimizer=optimizer(),
        quarantine=optimizer() if setting["arm"] == "route" else None,
        basis=run.known.V if run.known else None,
    )


def refreshed(run: Run, update: Update) -> dict:
    """Re-extract V on the current weights (quarantine ablated) and return its overlap with the one before."""
    knobs = run.refresh.knobs
    pairs = select_pairs(run.refresh.pairs, knobs)
    basis = extract_basis(run.policy, pairs, knobs, run.seed).used(**run.use)
    shared = overlap(update.basis, basis.V)
    update.basis = basis.V
    return {"basis_overlap": shared}


def one_step(run: Run, update: Update, step: int, indices: list[int]) -> tuple[dict, list[dict]]:
    """Run step 1 ... steps and return its row and its rollouts; policy and optimizer advance in place."""
    timer = Timer()
    model = run.policy.merged()
    groups = make_groups(run, model, indices, step, timer)
    setting = run.setting
    checkpoint = run.policy.base.device.type == "cuda"
    gradient = policy_gradient(run.policy, model, groups, run.grpo, setting["off_policy"], checkpoint)
    timer.lap("backward")
    renewed = {"basis_overlap": None}
    if setting["refresh"] and step % setting["refresh"] == 0:
        renewed = refreshed(run, update)
    lr = learning_rate(step, run.steps, run.grpo["lr"], run.grpo["warmup"])
    diagnostics = update(run.policy, gradient, lr, run.grpo["clip"])
    timer.lap("project")
    modes = sorted({problem.mode for problem in run.problems if problem.mode})
    row = {"step": step, **outcome_columns(groups, modes), "loss": gradient.loss, "lr": lr}
    row |= diagnostics | renewed | ratio_columns(gradient.log_ratio) | {"tokens_trained": gradient.tokens}
    return row | timer.columns(), rollout_rows(groups, step)


def train(run: Run, checkpoint: Checkpoint, progress=None) -> tuple[list[dict], list[dict]]:
    """Run all steps, resuming from the checkpoint where there is one; return the steps' rows and the rollouts.

    progress: called with each new row.
    """
    update = make_update(run)
    done, state = checkpoint.load()
    rows: list[dict] = []
    if done:
        log.info("resuming after step %d", done)
        rows = state["rows"]
        run.policy.theta, run.policy.quarantine, update.basis = (
            state["theta"],
            state["quarantine"],
            state["basis"],
        )
        update.optimizer.load(state["optimizer"])
        if update.quarantine:
            update.quarantine.load(state["quarantine_optimizer"])
        for row in rows:
            progress and progress(row)
    order = problem_order(run.seed, len(run.problems), run.grpo["prompts"], run.steps)
    for step in range(done + 1, run.steps + 1):
        row, rollouts = one_step(run, update, step, order[step - 1])
        rows.append(row)
        state = {
            "rows": rows,
            "theta": run.policy.theta,
            "quarantine": run.policy.quarantine,
            "basis": update.basis,
            "optimizer": update.optimizer.state(),
            "quarantine_optimizer": update.quarantine and update.quarantine.state(),
        }
        checkpoint.save(step, state, rollouts)
        progress and progress(row)
    return rows, checkpoint.rollouts()


FINAL_SAMPLES = 8


def final_rates(run: Run, limit: int = 80) -> dict:
    """Return hack and solve rates after the last step, quarantine kept and ablated (SPEC 5).

    At most `limit` training problems x 8 samples, both from the same sampling stream.
    """
    indices = list(range(min(limit, len(run.problems))))
    counts = [FINAL_SAMPLES] * len(indices)

    def rates(ablated: bool) -> tuple[float | None, float | None]:
        model = run.policy.merged(ablated=ablated)
        rollouts = sample_live(run, model, indices, counts, run.steps + 1)
        rows = [row for group in grade_rows(run, indices, rollouts) for row in group]
        return rate(rows, "hacked"), rate(rows, "gt_pass")

    kept = rates(ablated=False)
    # Without a quarantine it is the same model and the same samples.
    ablated = kept if run.policy.quarantine is None else rates(ablated=True)
    return dict(
        zip(("hack_kept", "solve_kept", "hack_ablated", "solve_ablated"), kept + ablated, strict=True)
    )
