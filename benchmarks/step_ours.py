"""Worker: this project's own training step (`training.step.one_step`) on a workload.

Everything runs as in training - merge, sampling, grading call, gradient split by source, projection on a basis,
AdamW - except that tokens and rewards are prescribed: tokens in the place of the uniforms that decide them, rewards
by a grader whose verdicts earn them.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import yaml
from workload import Workload, serve

from projected_grpo.arms import Given
from projected_grpo.cells.hyper import Training
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.environment.problems import Problem
from projected_grpo.environment.reward import COMPILES, PASSES
from projected_grpo.method.adapter import AntiPaSTO, decompose
from projected_grpo.method.basis import Basis
from projected_grpo.method.optimizer import AdamW
from projected_grpo.method.policy import Policy
from projected_grpo.model import decode, graphs, sampler
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.load import load_weights
from projected_grpo.training import rollouts, step
from projected_grpo.training.rollouts import Group
from projected_grpo.training.run import Run

ROOT = Path(__file__).resolve().parents[1]


class Words:
    """A tokenizer whose token i is the word `wi`."""

    def __init__(self, vocab: int, cut: bool):
        self.end = self.pad = -1 if cut else vocab - 1
        self.ends = {self.end}

    def encode_chat(self, messages) -> list[int]:
        return [int(word[1:]) for word in messages[-1]["content"].split() if word[1:].isdigit()]

    def decode(self, ids) -> str:
        return " ".join(f"w{i}" for i in ids)


class Prescribed:
    """A grader by whose verdicts the rows of a step earn their prescribed rewards, in order."""

    def __init__(self, rewards: list[list[float]]):
        self.rewards = [r for group in rewards for r in group]

    def grade(self, asked) -> list[dict]:
        compiles, passes = ("fmt_ok", "can_compile"), ("gt_pass", "channel", "hacked", "passed", "exploited")
        return [
            dict.fromkeys(compiles, r % PASSES == COMPILES) | dict.fromkeys(passes, r >= PASSES)
            for r in self.rewards
        ]


def prescribed(load: Workload) -> np.ndarray:
    """The rows' tokens, `[rows, max_new]`, in place of uniforms; what follows a row's end is never read."""
    tokens = np.zeros((len(load.rows), load.max_new))
    for row, (_, completion) in zip(tokens, load.rows, strict=True):
        row[: len(completion)] = completion
    return tokens


def draw(logits: torch.Tensor, u: torch.Tensor, source: torch.Tensor | None = None) -> tuple:
    """`decode.draw` with all its work, but for the token, which is `u`."""
    decode.draw(logits, u * 0 + 0.5, source)
    token = u.long()
    logprob = logits.log_softmax(-1)
    return token, (logprob if source is None else logprob[source]).gather(1, token[:, None])[:, 0]


def make_run(load: Workload, adapter: AntiPaSTO, model: Decoder, micro_batch_tokens: int) -> Run:
    """A run of arm `erase` with a random orthonormal basis, k = 5, on all Linears."""
    generator = torch.Generator().manual_seed(0)
    V = {n: torch.linalg.qr(torch.randn(r, 5, generator=generator))[0].T for n, r in adapter.sizes.items()}
    basis = Basis({n: v.to(model.device) for n, v in V.items()}, {n: torch.ones(5) for n in V}, {})
    problems = [
        Problem(
            p,
            ({"role": "user", "content": " ".join(f"w{t}" for t in ids) + " and should pass all tests"},),
            "f",
        )
        for p, ids in enumerate(load.prompts)
    ]
    setting = make_setting({"arm": "erase", "basis": "random", "mix": 0.0})
    training = Training(
        steps=load.repeats, prompts=len(problems), group=load.group, max_new=load.max_new, lr=1e-3, betas=(0.5, 0.9),
        weight_decay=0.0, clip=None, warmup=0.1, beta=0.0, micro_batch_tokens=micro_batch_tokens, teacher_steps=None,
    )  # fmt: skip
    cut = all(len(row) == load.max_new for _, row in load.rows)
    policy = Policy(model, Words(load.vocab, cut), adapter, adapter.zeros())

    def optimizer(parameters) -> AdamW:
        return AdamW(parameters, training.betas, training.weight_decay)

    arm = setting.defence(setting.knobs, Given(0, policy, optimizer, basis))
    return Run(
        seed=0, setting=setting, training=training, policy=policy, problems=problems, pool={},
        grader=Prescribed(load.rewards), arm=arm, optimizer=optimizer(policy.theta),
    )  # fmt: skip


def check(groups: list[Group], load: Workload) -> None:
    """Every row has the prescribed tokens."""
    got = [[row.tokens for row in group.live] for group in groups]
    assert got == load.completions, "the sampler did not keep to the prescribed tokens"


def check_earned(row: dict, made: dict[str, list[dict]], load: Workload) -> None:
    """Every row earned the prescribed reward, and every group whose rewards differ was trained on."""
    earned = sorted(one["reward"] for rows in made.values() for one in rows)
    assert earned == sorted(r for group in load.rewards for r in group), "rewards are not the prescribed ones"
    assert row["groups_used"] == sum(len(set(group)) > 1 for group in load.rewards), "groups were left out"


def stepper(load: Workload, run: Run, teacher: bool = False) -> Callable[[], dict]:
    """The function that does the run's next step and returns its row.

    `teacher`: the last row of each group counts as the teacher's, so that the gradient is split by source.
    """
    uniforms, group = rollouts.uniforms, step.make_groups

    def groups(*arguments) -> tuple[list[Group], dict[str, float]]:
        made, seconds = group(*arguments)
        check(made, load)
        if teacher:
            made = [Group(g.problem, g.prompt, g.live[:-1], g.live[-1:]) for g in made]
        return made, seconds

    numbers = iter(range(1, load.repeats + 1))

    def next_step() -> dict:
        rollouts.uniforms, step.make_groups = lambda *a: prescribed(load), groups
        sampler.draw = graphs.draw = draw
        try:
            row, made = step.one_step(run, next(numbers), list(range(len(load.prompts))))
            check_earned(row, made, load)
            return row
        finally:
            rollouts.uniforms, step.make_groups = uniforms, group
            sampler.draw = graphs.draw = decode.draw

    return next_step


def phases(row: dict) -> dict[str, float]:
    """Wall seconds by phase of a step's row."""
    return {key.removeprefix("seconds_"): value for key, value in row.items() if key.startswith("seconds_")}


def main(path: str, teacher: bool) -> None:
    torch.set_num_threads(1)
    load = Workload.load(path)
    model = load_weights(load.model)
    weights = {name: model.weights[f"{name}.weight"] for name in model.linears}
    svd = {name: decompose(W) for name, W in weights.items()}
    adapter = AntiPaSTO(weights, {name: (U, Vh) for name, (U, _, Vh) in svd.items()})
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    next_step = stepper(load, make_run(load, adapter, model, config["grpo"]["micro_batch_tokens"]), teacher)
    serve(lambda: phases(next_step()))


if __name__ == "__main__":
    main(sys.argv[1], "--teacher" in sys.argv)
