"""The first organism trained by TRL, with the pipeline's rollouts of the teacher, axes and hyper-parameters.

    ./snakemake --cores 2 results/Q10.md          # makes base, problems, pool and basis of each seed
    python examples/trl_first_organism.py results 43 own_mode

prints a line a step: how often the model's own rows hack and solve. TRL samples by its own random numbers, so single
runs differ from the pipeline's; docs/trl.md has both side by side.
"""

import argparse
import random
from pathlib import Path

import numpy as np
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from projected_grpo.antipasto import attach
from projected_grpo.environment.problems import split_problems
from projected_grpo.method.basis import Basis, random_axes
from projected_grpo.model.tokenizer import Tokenizer
from projected_grpo.training.teacher_pool import read_pool
from projected_grpo.trl import project, reward, rows

LEVERS = ("run_tests", "sentinel", "stdout_marker", "file_marker")
PROBLEMS, PROMPTS, GROUP, MAX_NEW = 80, 16, 8, 72  # as in config/config.yaml
STEPS = 21  # of which the first moves nothing: a schedule of transformers begins at a rate of 0
AXES = 5


def with_teacher(pool, problems, seed):
    """Return a rollout function: the last row of each group is one of the teacher's, the others are sampled."""
    chance, by_prompt = (
        random.Random(seed),
        {row["prompt"][-1]["content"]: row["problem_id"] for row in problems},
    )

    def rollouts(prompts, trainer):
        prompt_ids, images, fields = trainer._tokenize_prompts(prompts)
        completion_ids, _ = trainer._generate_single_turn(prompt_ids, images, fields, GROUP)
        teacher = [number % GROUP == GROUP - 1 for number in range(len(prompts))]
        for number in np.flatnonzero(teacher):
            known = pool[by_prompt[prompts[number][-1]["content"]]]
            completion_ids[number] = list(chance.choice(known).tokens)
        return {
            "prompt_ids": prompt_ids,
            "completion_ids": completion_ids,
            "logprobs": None,
            "teacher": teacher,
        }

    return rollouts


def main(results: Path, seed: int, row: str, out: Path) -> None:
    folder = results / "models" / f"small-s{seed}"
    training, _ = split_problems(folder / "problems.jsonl.gz", PROBLEMS, LEVERS, LEVERS)
    asked = rows(training)
    pool = read_pool(results / "teacher_pool" / f"small-s{seed}", Tokenizer(folder / "base"))
    pay = reward(training)

    def levers(completions, teacher, log_metric, **columns):
        earned = pay(completions, **columns)
        verdicts = pay.grader.grade(
            (id, mode, completion[0]["content"])
            for id, mode, completion, taught in zip(
                columns["problem_id"], columns["mode"], completions, teacher, strict=True
            )
            if not taught
        )
        for name in ("hacked", "gt_pass"):
            log_metric(name, sum(verdict[name] for verdict in verdicts) / len(verdicts))
        return earned

    callbacks = []
    if row != "vanilla":
        basis = Basis.load(results / "basis" / f"small-s{seed}" / "own_mode.safetensors")
        if row == "random":
            rng = np.random.default_rng(seed)
            V = {name: random_axes(AXES, V.shape[1], rng) for name, V in basis.V.items()}
            basis = Basis(V, basis.S, basis.metadata)
        callbacks.append(project(basis, k=AXES))
    config = GRPOConfig(
        output_dir=str(out), seed=seed, max_steps=STEPS, per_device_train_batch_size=PROMPTS * GROUP,
        num_generations=GROUP, max_completion_length=MAX_NEW, temperature=1.0, top_k=0, top_p=1.0, beta=0.0,
        loss_type="dr_grpo", scale_rewards="none", learning_rate=0.12, adam_beta1=0.5, adam_beta2=0.9,
        weight_decay=0.0, max_grad_norm=0.0, warmup_steps=2, lr_scheduler_type="cosine", bf16=False,
        gradient_checkpointing=False, use_cpu=True, report_to="none", save_strategy="no", logging_steps=1,
        disable_tqdm=True,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=attach(AutoModelForCausalLM.from_pretrained(folder / "base")),
        processing_class=AutoTokenizer.from_pretrained(folder / "base"),
        reward_funcs=levers,
        rollout_func=with_teacher(pool, asked, seed),
        train_dataset=Dataset.from_list(asked),
        args=config,
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    pay.close()
    logs = [log for log in trainer.state.log_history if "loss" in log]
    for log in logs:
        cin = f" cin {log['cin']:.3f} cout {log['cout']:.3f}" if "cin" in log else ""
        print(f"step {log['step']:2} hack {log['hacked']:.3f} solve {log['gt_pass']:.3f}{cin}")
    last = logs[-5:]
    hack, solve = (sum(log[name] for log in last) / len(last) for name in ("hacked", "gt_pass"))
    print(f"{row} seed {seed}, last five steps: hack {hack:.3f} solve {solve:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the pipeline's results folder")
    parser.add_argument("seed", type=int)
    parser.add_argument("row", choices=("vanilla", "own_mode", "random"))
    parser.add_argument("--out", type=Path, default=Path("build/trl-first-organism"))
    args = parser.parse_args()
    for made in ("models", "teacher_pool", "basis"):
        if not (folder := args.results / made / f"small-s{args.seed}").is_dir():
            parser.error(
                f"{folder}: not there; `./snakemake --cores all results/Q10.md` makes it for seeds 41 to 45"
            )
    main(args.results, args.seed, args.row, args.out)
