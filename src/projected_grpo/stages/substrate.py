"""The rates of a replication's base and teacher. `pages/substrate.py` shows them."""

from collections.abc import Mapping, Sequence

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import Problem
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.tokenizer import Tokenizer
from projected_grpo.training.teacher_pool import grade_rows, sample_rows

STREAM = (1 << 32) + 1  # apart from the pool's and every training run's
RATES = {
    "hack": lambda row: row["hacked"],
    "exploit": lambda row: row["exploited"],
    "solve": lambda row: row["gt_pass"],
    "honest": lambda row: row["gt_pass"] and not row["hacked"],
}


def measure(
    models: Mapping[str, Decoder],
    tokenizer: Tokenizer,
    problems: Mapping[str, Sequence[Problem]],
    grader: Grader,
    samples: int,
    max_new: int,
    seed: int,
) -> dict:
    """Return `{who: {half: {mode or "all": {"hack", "exploit", "solve", "honest", "n"}}}}` at temperature 1.

    models: `base` and `teacher` (merged); problems: `training` and `held_out`, known to the grader.
    """
    return {
        who: {
            half: rates_by_mode(
                grade_rows(grader, sample_rows(model, tokenizer, rows, samples, max_new, seed, STREAM))
            )
            for half, rows in problems.items()
        }
        for who, model in models.items()
    }


def rates_by_mode(rows: Sequence[Sequence[dict]]) -> dict[str, dict[str, float]]:
    """Return the rates of graded rows for every mode, in order of appearance, and for `all`."""
    flat = [row for group in rows for row in group]
    out = {}
    for mode in [*dict.fromkeys(row["mode"] for row in flat), "all"]:
        chosen = [row for row in flat if mode in ("all", row["mode"])]
        out[mode] = {
            name: sum(bool(is_so(row)) for row in chosen) / len(chosen) for name, is_so in RATES.items()
        }
        out[mode]["n"] = len(chosen)
    return out
