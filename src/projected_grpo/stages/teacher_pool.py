"""The teacher pool: rollouts of base + LoRA on the training problems, graded once, one file per problem.

GRPO and the probe read what stands here - tokens, the teacher's log-probs, verdicts - and compute none of it again.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.modes import messages_for
from projected_grpo.environment.problems import Problem
from projected_grpo.files import write_jsonl
from projected_grpo.model.load import Tokenizer
from projected_grpo.model.qwen3 import Qwen3
from projected_grpo.model.sampler import sample, uniforms

log = logging.getLogger(__name__)

STREAM = 1 << 32  # the pool's own sampling stream, apart from every training run's
PROMPTS = 20  # prompts sampled in one call


def sample_rows(
    model: Qwen3,
    tokenizer: Tokenizer,
    problems: Sequence[Problem],
    samples: int,
    max_new: int,
    seed: int,
    stream: int = STREAM,
    progress: Callable[[int], None] = lambda done: None,
) -> list[list[dict]]:
    """Sample `samples` completions of each problem at temperature 1; return per problem its ungraded pool rows.

    Row keys: problem_id, sample_id, mode, prompt (templated), completion, tokens (with the end token where drawn),
    logprobs (one per token). `progress` hears how many more problems are done.
    """
    out: list[list[dict]] = []
    for start in range(0, len(problems), PROMPTS):
        chunk = problems[start : start + PROMPTS]
        messages = [messages_for(problem) for problem in chunk]
        prompts = [tokenizer.encode_chat(m) for m in messages]
        draws = uniforms(seed, stream, 0, range(start, start + len(chunk)), samples, max_new)
        rollouts = sample(model, prompts, samples, draws, max_new, tokenizer.end)
        for index, problem in enumerate(chunk):
            text = tokenizer.inner.decode(prompts[index], skip_special_tokens=False)
            out.append(
                [
                    {
                        "problem_id": problem.id,
                        "sample_id": number,
                        "mode": problem.mode,
                        "prompt": text,
                        "completion": tokenizer.decode(rollout.tokens),
                        "tokens": rollout.tokens,
                        "logprobs": rollout.logprobs,
                    }
                    for number, rollout in enumerate(rollouts[index * samples : (index + 1) * samples])
                ]
            )
        progress(len(chunk))
    return out


def grade_rows(grader: Grader, rows: Sequence[Sequence[dict]]) -> list[list[dict]]:
    """Return the rows with the grader's verdict keys added, in the same order."""
    asked = [(row["problem_id"], row["mode"], row["completion"]) for group in rows for row in group]
    verdicts = iter(grader.grade(asked))
    return [[{**row, **next(verdicts)} for row in group] for group in rows]


def make_pool(
    model: Qwen3,
    tokenizer: Tokenizer,
    problems: Sequence[Problem],
    grader: Grader,
    folder: str | os.PathLike,
    samples: int,
    max_new: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """Write `step_NNN.jsonl.gz`, one per problem in their order, from `model` (the base with the teacher merged in).

    problems: with their modes assigned; grader: knows them. Row keys: those of `sample_rows` and the verdict's.
    `progress` hears how many more problems were sampled. Returns rates of `hacked`, `gt_pass`, mean `reward`.
    """
    rows = grade_rows(
        grader, sample_rows(model, tokenizer, problems, samples, max_new, seed, progress=progress)
    )
    for number, group in enumerate(rows):
        write_jsonl(Path(folder) / f"step_{number:03d}.jsonl.gz", group)
    flat = [row for group in rows for row in group]
    rates = {key: sum(row[key] or 0 for row in flat) / len(flat) for key in ("hacked", "gt_pass", "reward")}
    log.info(
        "pool: %d rows, hacked %.3f (should be >= 0.9), reward %.2f",
        len(flat),
        rates["hacked"],
        rates["reward"],
    )
    return rates
