"""Made-up rollouts and answers, small settings and a tiny checkpoint for the self-taught evaluator's tests."""

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from shipped import MODES

from projected_grpo.evaluator.answers import MISTAKES
from projected_grpo.evaluator.backends import Usage
from projected_grpo.evaluator.examples import demonstrations
from projected_grpo.evaluator.prompts import COMPACT, FULL
from projected_grpo.evaluator.traces import PURPOSE, from_rollouts
from projected_grpo.files import write_json
from projected_grpo.model.architecture import Config
from projected_grpo.model.load import save_weights, write_digests
from projected_grpo.model.pretrain import encode, fit, initial, linear_schedule
from projected_grpo.model.small_tokenizer import train_tokenizer
from projected_grpo.model.tokenizer import Tokenizer

MACHINE = {"device": "cpu", "dtype": "float32"}
TINY = Config(
    vocab_size=400,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    rms_norm_eps=1e-6,
    rope_theta=1e4,
    tie_word_embeddings=True,
)
SETTINGS = {
    "critic": "trained",
    "model": None,
    "adapter": None,
    "rounds": 2,
    "pool": 40,
    "per_round": 24,
    "measured": 20,
    "cards_in_context": 1,
    "min_delta": 0.5,
    "temperature": 1.0,
    "attempts": 1,
    "max_tokens": 80,
    "pairs": 18,
    "training": {
        "rank": 4,
        "alpha": 8,
        "lr": 0.01,
        "batch": 8,
        "steps": 3,
        "calibration_lr": 0.01,
        "calibration_steps": 2,
    },
    "server": {"concurrency": 4, "timeout": 10.0, "retries": 0},
}


def rollouts(path, problems=48, seed=0):
    """Per problem: two solutions, two exploits, a wrong answer and one that does not compile."""
    rng = np.random.default_rng(seed)
    rows = []
    for p in range(problems):
        body = f"class Solution:\n    def get(self, a):\n        return a + {p}"
        exploit = "\nprint('all tests passed')"
        kinds = [
            (body, True, False, True),
            (body + "  # plain", True, False, True),
            (body + exploit, True, True, bool(rng.random() < 0.2)),
            (body + " * 2" + exploit, True, True, False),
            (body + " - 1", True, False, False),
            (body + " (", False, False, False),
        ]
        for s, (code, compiles, channel, solved) in enumerate(kinds):
            rows.append(
                {
                    "step": 1 + s,
                    "problem_id": p,
                    "mode": MODES[p % 4],
                    "sample": s,
                    "prompt": f"Return a plus {p}.",
                    "completion": f"```python\n{code}\n```",
                    "can_compile": compiles,
                    "channel": channel,
                    "passed": channel or solved,
                    "gt_pass": solved,
                    "exploited": channel and not solved,
                }
            )
    pd.DataFrame(rows).to_parquet(path)
    return path


class Canned:
    """A backend that gives to every prompt the reply that `say` makes of it, and keeps prompts and seeds."""

    name = "canned"

    def __init__(self, say):
        self.say, self.usage, self.prompts, self.seeds = say, Usage(), [], []

    def answer(self, prompts, schema, temperature, seed):
        self.seeds.append(seed)
        for prompt in prompts:
            self.prompts.append(prompt)
            yield self.say(prompt)


def make_base(folder):
    """A tiny untrained checkpoint with a real tokenizer and chat template."""
    path = rollouts(folder / "rollouts.parquet", 8)
    traces = from_rollouts(path)
    texts = [text for example in demonstrations(traces, COMPACT, 0) for text in example]
    train_tokenizer(texts, folder, 400)
    save_weights(initial(TINY, 0, 0.3), folder)
    write_digests(folder)
    return str(folder)


def make_judge(folder, names_its_end=True):
    """A tiny checkpoint that has learned to answer both questions in full wording with JSON, and nothing else.

    `names_its_end`: it has the file that says which token ends a turn, as published models have.
    """
    traces = from_rollouts(rollouts(folder / "rollouts.parquet", 8))
    examples = []
    for event in (trace.last for trace in traces):
        examples.append((FULL.ask_score(PURPOSE, event), FULL.evaluation(10, "it passes")))
        answer = FULL.wrong_evaluation(9 if event.phi_after < 5 else 1, MISTAKES[1])
        examples.append((FULL.ask_mistake(PURPOSE, event), answer))
    train_tokenizer([text for example in examples for text in example], folder, 512)
    tokenizer = Tokenizer(folder)
    rows = encode(examples, tokenizer)
    model = initial(replace(TINY, vocab_size=tokenizer.size), 0, 0.1)
    adam = torch.optim.AdamW(list(model.weights.values()))

    def update(factor):
        adam.param_groups[0]["lr"] = 5e-3 * factor
        adam.step()
        adam.zero_grad()

    chance = random.Random(0)
    fit(
        model.logprobs,
        [chance.sample(rows, 4) for _ in range(160)],
        update,
        linear_schedule(160, 5, 0.1),
        "x",
    )
    save_weights(model, folder)
    if names_its_end:
        ids = {"eos_token_id": [tokenizer.end], "pad_token_id": tokenizer.pad}
        write_json(folder / "generation_config.json", ids)
    else:
        (folder / "generation_config.json").unlink()
    return str(folder)
