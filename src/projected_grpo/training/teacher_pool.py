"""The teacher pool: rollouts of base + LoRA on the training problems, graded once, one file per problem.

GRPO and the probe read what stands here - tokens, the teacher's log-probs, facts - and compute none of it again.
Which files a pool has is asked while planning, so torch is imported where rollouts are sampled.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo.digests import file_digest
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import Problem
from projected_grpo.environment.prompts import messages_for
from projected_grpo.environment.reward import recorded_facts
from projected_grpo.errors import UserError
from projected_grpo.files import read_json, read_jsonl, write_jsonl

if TYPE_CHECKING:
    from projected_grpo.model.decoder import Decoder
    from projected_grpo.model.tokenizer import Tokenizer
    from projected_grpo.training.graded import Graded

log = logging.getLogger(__name__)

STREAM = 1 << 32  # the pool's own sampling stream, apart from every training run's
PROMPTS = 20  # prompts sampled in one call


def found_files(folder: str | Path) -> list[Path]:
    """Return the JSON-lines files of `folder` in order; none where there is no such folder."""
    return sorted(Path(folder).glob("[!.]*.jsonl*"))


def pool_files(folder: Path) -> list[Path]:
    """Return a pool's files in order: those that its `pool.json` names, intact, or all where it has none.

    Raises UserError where there is none, or one is not as `pool.json` has it.
    """
    manifest = folder / "pool.json"
    if not manifest.exists():
        paths = found_files(folder)
        if not paths:
            raise UserError(f"{folder}: no step_NNN.jsonl.gz in this teacher pool")
        return paths
    digests = read_json(manifest)
    for name, digest in digests.items():
        path = folder / name
        if not path.exists() or file_digest(path) != digest:
            why = "not the file that was made" if path.exists() else "no such file"
            raise UserError(f"{path}: {why}; delete {manifest} to make the pool anew")
    return [folder / name for name in sorted(digests)]


def read_pool(folder: Path, tokenizer: "Tokenizer") -> "dict[str, list[Graded]]":
    """Read a pool folder (`step_NNN.jsonl.gz`, or any JSON-lines files of such rows) into problem id (as text) -> rows.

    Pools recorded elsewhere hold no `tokens`: their completions are tokenised here, and have no log-probs unless
    given. Raises UserError when the folder holds no step file, a file is not the one that the folder's `pool.json`
    names, or a row lacks a key.
    """
    paths = pool_files(Path(folder))
    from projected_grpo.training.graded import Graded

    pool: dict[str, list[Graded]] = {}
    for path in paths:
        for number, row in enumerate(read_jsonl(path), 1):
            try:
                tokens = row.get("tokens") or [*tokenizer.encode(row["completion"]), tokenizer.end]
                made = Graded(tokens, row.get("logprobs"), {**row, **recorded_facts(row)})
                pool.setdefault(str(row["problem_id"]), []).append(made)
            except KeyError as error:
                raise UserError(f"{path}:{number}: no key {error} in this pool row") from error
    return pool


def sample_rows(
    model: "Decoder",
    tokenizer: "Tokenizer",
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
    from projected_grpo.model.sampler import sample, uniforms

    out: list[list[dict]] = []
    for start in range(0, len(problems), PROMPTS):
        chunk = problems[start : start + PROMPTS]
        messages = [messages_for(problem) for problem in chunk]
        prompts = [tokenizer.encode_chat(m) for m in messages]
        draws = uniforms(seed, stream, 0, range(start, start + len(chunk)), samples, max_new)
        rollouts = sample(model, prompts, samples, draws, max_new, tokenizer.ends)
        for index, problem in enumerate(chunk):
            text = tokenizer.decode(prompts[index], special=True)
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
    model: "Decoder",
    tokenizer: "Tokenizer",
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
