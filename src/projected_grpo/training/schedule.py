"""What is random in a run and not sampled from the model: problem order and teacher draws, by seed alone."""

import numpy as np

ORDER, TEACHER = 1, 2


def generator(seed: int, purpose: int, *counters: int) -> np.random.Generator:
    """Return a counter-based generator: equal arguments give equal draws, whatever was drawn before."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, purpose, *counters])))


def problem_order(seed: int, problems: int, per_step: int, steps: int) -> list[list[int]]:
    """Return the problem indices of every step: without replacement until all are used, then shuffled anew.

    A step never holds a problem twice; where `per_step` exceeds `problems` a step holds them all.
    """
    per_step = min(per_step, problems)
    order: list[list[int]] = []
    left: list[int]
    epoch, left = 0, []
    for _ in range(steps):
        chosen = left[:per_step]
        left = left[per_step:]
        if len(chosen) < per_step:
            fresh = [int(i) for i in generator(seed, ORDER, epoch).permutation(problems)]
            epoch += 1
            missing = [i for i in fresh if i not in chosen][: per_step - len(chosen)]
            left = [i for i in fresh if i not in missing]
            chosen = chosen + missing
        order.append(chosen)
    return order


def teacher_draw(seed: int, step: int, problem: int, available: int, wanted: int) -> list[int]:
    """Return `wanted` distinct indices of a problem's pool rows (with replacement only if there are too few)."""
    draws = generator(seed, TEACHER, step, problem)
    return [int(i) for i in draws.choice(available, size=wanted, replace=available < wanted)]
