"""The teacher pool: rollouts of base + merged teacher, graded once, one file per problem.

GRPO and the replay probe read these files and nothing else of the teacher: tokens, log-probs and verdicts are stored,
so no later job tokenises or grades a teacher rollout again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.modes import messages_for
from projected_grpo.environment.problems import Problem
from projected_grpo.files import write_jsonl
from projected_grpo.model.load import Tokenizer
from projected_grpo.model.qwen3 import Qwen3
from projected_grpo.model.sampler import sample, uniforms

STREAM = 1_000_003  # of the pool's uniforms: no run's stream draws the same numbers
PROMPTS_AT_ONCE = 16


def pool_file(folder: Path, index: int) -> Path:
    """Return the path of a problem's rollouts."""
    return Path(folder) / f"step_{index:03d}.jsonl.gz"


def make_pool(
    teacher: Qwen3,
    tokenizer: Tokenizer,
    problems: Sequence[Problem],
    grader: Grader,
    folder: Path,
    samples: int,
    max_new: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Sample and grade `samples` completions of every problem and write `step_NNN.jsonl.gz` in their order.

    Rows have the keys of the published pool (problem_id, sample_id, prompt, completion, hacked, gt_pass, fmt_ok,
    reward) plus mode, tokens, logprobs (one a token) and the grader's other verdicts.
    """
    for start in range(0, len(problems), PROMPTS_AT_ONCE):
        chunk = problems[start : start + PROMPTS_AT_ONCE]
        prompts = [tokenizer.encode_chat(messages_for(problem)) for problem in chunk]
        draws = uniforms(seed, STREAM, 0, range(start, start + len(chunk)), samples, max_new)
        rollouts = sample(teacher, prompts, samples, draws, max_new, tokenizer.end)
        texts = [tokenizer.decode(rollout.tokens) for rollout in rollouts]
        asked = [(p.id, p.mode, texts[i * samples + s]) for i, p in enumerate(chunk) for s in range(samples)]
        verdicts = grader.grade(asked)
        for i, (problem, prompt) in enumerate(zip(chunk, prompts, strict=True)):
            rows = [
                {"problem_id": problem.id, "sample_id": s, "mode": problem.mode, "prompt": tokenizer.decode(prompt)}
                | {"completion": texts[i * samples + s]}
                | verdicts[i * samples + s]
                | {"tokens": rollouts[i * samples + s].tokens, "logprobs": rollouts[i * samples + s].logprobs}
                for s in range(samples)
            ]
            write_jsonl(pool_file(folder, start + i), rows)
        progress(len(chunk))
