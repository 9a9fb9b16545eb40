"""Prompt -> rollouts -> facts: the groups of one step, live samples beside the teacher's cached rollouts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from projected_grpo.environment.levers import KIND
from projected_grpo.environment.problems import Problem
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.sampler import Rollout, sample, uniforms
from projected_grpo.training.graded import Graded
from projected_grpo.training.run import Run
from projected_grpo.training.schedule import teacher_draw


@dataclass(frozen=True)
class Group:
    """All rows of one prompt in one step; `live` were sampled now, `teacher` come from the pool.

    prompt: the tokens that the gradient is taken under.
    """

    problem: Problem
    prompt: list[int]
    live: list[Graded]
    teacher: list[Graded]

    @property
    def rows(self) -> list[Graded]:
        return [*self.live, *self.teacher]


def sample_live(
    run: Run,
    model: Decoder,
    indices: list[int],
    counts: list[int],
    step: int,
    prompts: Mapping[str, list[int]],
) -> list[list[Rollout]]:
    """Sample `counts[i]` completions of problem `indices[i]` for each i, from the run's sampling stream.

    prompts: by problem id.
    """
    stream, max_new = run.setting.stream, run.training.max_new
    ends = run.policy.tokenizer.ends
    rollouts: dict[int, list[Rollout]] = {i: [] for i in indices}
    longest = max(map(len, prompts.values()))
    for n in sorted(set(counts) - {0}):  # one call for all prompts with equally many rows
        chosen = [i for i, count in zip(indices, counts, strict=True) if count == n]
        asked = [prompts[str(run.problems[i].id)] for i in chosen]
        draws = uniforms(run.seed, stream, step, chosen, n, max_new)
        drawn = sample(model, asked, n, draws, max_new, ends, longest)
        rollouts |= dict(zip(chosen, _split(drawn, [n] * len(chosen)), strict=True))
    return [rollouts[i] for i in indices]


def _split(items: Sequence, counts: Sequence[int]) -> list[list]:
    rest = iter(items)
    return [list(islice(rest, n)) for n in counts]


def grade_rows(run: Run, indices: list[int], rollouts: list[list[Rollout]]) -> list[list[Graded]]:
    """Turn sampled rollouts of problems `indices` into graded rows, which keep the completion's text."""
    decode = run.policy.tokenizer.decode
    texts = [[decode(rollout.tokens) for rollout in group] for group in rollouts]
    asked = [
        (run.problems[i].id, run.problems[i].mode, text)
        for i, group in zip(indices, texts, strict=True)
        for text in group
    ]
    verdicts = _split(run.grader.grade(asked), [len(group) for group in rollouts])  # type: ignore[arg-type]
    return [
        [
            Graded(rollout.tokens, rollout.logprobs, {**verdict, "completion": text})
            for rollout, text, verdict in zip(*group, strict=True)
        ]
        for group in zip(rollouts, texts, verdicts, strict=True)
    ]


def teacher_rows(run: Run, problem: Problem, step: int) -> int:
    """Return G_t, the pool rows of a problem's group at a step; a held-out mode has none."""
    held_out = KIND.get(problem.mode) == run.setting.held_out_mode
    return 0 if held_out else run.training.teacher_rows(run.setting.mix, step)


def make_groups(
    run: Run, model: Decoder, indices: list[int], step: int
) -> tuple[list[Group], dict[str, float]]:
    """Return the groups of a step, G_t pool rows and G - G_t live samples per prompt, and the seconds of each phase."""
    start = time.perf_counter()
    from_pool = [teacher_rows(run, run.problems[i], step) for i in indices]
    counts = [run.training.group - n for n in from_pool]
    rollouts = sample_live(run, model, indices, counts, step, run.prompts)
    sampled = time.perf_counter()
    live = grade_rows(run, indices, rollouts)
    seconds = {"generate": sampled - start, "grade": time.perf_counter() - sampled}
    groups = []
    for index, n, rows in zip(indices, from_pool, live, strict=True):
        problem = run.problems[index]
        pool = run.pool.get(str(problem.id), []) if n else []
        drawn = [pool[i] for i in teacher_draw(run.seed, step, index, len(pool), n)] if n else []
        groups.append(Group(problem, run.train_prompts[str(problem.id)], rows, drawn))
    return groups, seconds
