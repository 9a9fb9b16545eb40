"""Record tokens and rewards of training steps for the step benchmark.

    python benchmarks/record.py RESULTS CELL SIZE STEP ...      (as results vanilla-m0.125-s41 0.9M 10)
        -> benchmarks/recorded/SIZE.json

The groups are those of a finished run: its stored rollouts, and the pool rows that a step drew, last.
"""

import argparse
import json
from pathlib import Path

import pandas as pd

from projected_grpo.cells.run_settings import RunSettings
from projected_grpo.environment.reward import foolable
from projected_grpo.files import read_json, write_text
from projected_grpo.model.tokenizer import Tokenizer
from projected_grpo.training.schedule import problem_order, teacher_draw
from projected_grpo.training.teacher_pool import read_pool

OUT = Path(__file__).resolve().parent / "recorded"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("cell")
    parser.add_argument("size", help="of the model: a name under MODELS of step.py")
    parser.add_argument("steps", type=int, nargs="+", metavar="step")
    arguments = parser.parse_args()
    results = arguments.results
    run = read_json(results / "grpo" / arguments.cell / "run.json")
    settings, model = RunSettings.model_validate(run["settings"]), run["model"]
    tokenizer = Tokenizer(results / "models" / model / "base")
    pool = read_pool(results / "teacher_pool" / model, tokenizer)
    training = settings.training
    order = problem_order(settings.seed, len(pool), training.prompts, training.steps)

    def worded(tokens: list[int]) -> list[int]:
        """Tokens with the end token as the last of the vocabulary, as the benchmark has it."""
        last = tokenizer.size - 1
        swap = {tokenizer.end: last, last: tokenizer.end}
        return [swap.get(token, token) for token in tokens]

    rollouts = pd.read_parquet(results / "grpo" / arguments.cell / "rollouts.parquet")
    groups = []
    asked = [(step, index) for step in arguments.steps for index in order[step - 1]]
    found = rollouts[rollouts["step"].isin(arguments.steps)].groupby(["step", "problem_id"], sort=False)
    for (step, index), ((_, problem), rows) in zip(asked, found, strict=True):
        completions = [
            [*tokenizer.encode(text), tokenizer.end][: training.max_new] for text in rows["completion"]
        ]
        taught, n = pool[problem], training.group - len(rows)
        drawn = [taught[i] for i in teacher_draw(settings.seed, step, index, len(taught), n)]
        completions += [row.tokens for row in drawn]
        groups.append(
            {
                "prompt": worded(tokenizer.encode_chat(rows["prompt"].iloc[0])),
                "completions": [worded(tokens) for tokens in completions],
                "rewards": [*map(float, rows["reward"]), *(foolable(row.row) for row in drawn)],
            }
        )
    write_text(
        OUT / f"{arguments.size}.json", "[\n" + ",\n".join(json.dumps(group) for group in groups) + "\n]\n"
    )


if __name__ == "__main__":
    main()
