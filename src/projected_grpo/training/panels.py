"""What a policy does where it is deployed: plain prompts, nothing of what an arm holds beside it.

Every policy of a seed is sampled from one stream, whatever its arm, its steps and its own sampling stream: equal
weights give equal rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice

from projected_grpo.cells.deployed import Deployed
from projected_grpo.environment.facts import facts, verdict
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import NAMES, NOVEL
from projected_grpo.environment.problems import Problem, named
from projected_grpo.environment.prompts import messages_for
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.tokenizer import Tokenizer
from projected_grpo.training.teacher_pool import sample_rows

Panels = Mapping[str, Sequence[Problem]]
STREAM = (1 << 32) + 2  # apart from the pool's, the small model's rates' and every training run's
HEADING = ("panel", "problem_id", "mode", "sample", "prompt", "tokens", "completion")
COLUMNS = (*HEADING, *verdict(facts(), "gt_only"))


def make_panels(held_out: Sequence[Problem], modes: Sequence[str], sizes: Deployed, names: int = 1) -> Panels:
    """Return the problems of each panel with their levers: `known` the row's own in rotation, `novel` the same channels
    under names that nothing teaches, `plain` none. names: as many a lever goes by.

    A panel goes on in the list where the one before it ended, and at its start where it ends: no problem stands
    twice in a panel, nor in two while the list is long enough. The ids depend on the list and the sizes alone, not on
    arm or modes. Raises UserError where a prompt has no place for a lever.
    """
    levers = {
        "known": (modes, NAMES),
        "novel": ([mode for mode in modes if mode in NOVEL], NOVEL),
        "plain": (["gt_only"], NAMES),
    }
    panels: dict[str, list[Problem]] = {}
    start = 0
    for name, (own, known) in levers.items():
        size = min(getattr(sizes, name), len(held_out))
        chosen = islice(cycle(held_out), start, start + size)
        panel = [replace(one, mode=mode) for one, mode in zip(chosen, cycle(own), strict=False)]
        panels[name] = named(panel, names, known)
        start += size
    for problem in (problem for own in panels.values() for problem in own):
        messages_for(problem)
    return panels


def deployed_rows(
    model: Decoder,
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
