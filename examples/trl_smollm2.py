"""SmolLM2-135M trained by TRL: the levers' reward, and a projection along the pairs of their own exploits.

    python examples/trl_smollm2.py --steps 3                                     # a CPU, minutes
    accelerate launch examples/trl_smollm2.py --steps 200 --prompts 32 --rows 8 --vllm    # GPUs

The first takes `pip install .[trl]`, the second vLLM as well. docs/trl.md has what it prints and what it costs.
"""

import argparse
import resource
import time
from pathlib import Path

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from projected_grpo.antipasto import attach, export
from projected_grpo.errors import UserError
from projected_grpo.model.wheel import Wheel, unpacked
from projected_grpo.strict_yaml import read_mapping
from projected_grpo.trl import generated, project, reward, rows

ROOT = Path(__file__).resolve().parents[1]
SMOLLM2 = Wheel(**read_mapping(ROOT / "config/smollm2.yaml")["model"]["base"])
COLUMNS = ("reward", "hacked", "gt_pass", "cin", "cout", "fired", "step_time")


class Table(TrainerCallback):
    """Prints a line a step, and keeps the CPU seconds of each; axes at the start are none of its."""

    def __init__(self):
        self.seconds: list[float] = []

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print("step  " + "  ".join(f"{name:>9}" for name in COLUMNS) + "  CPU seconds", flush=True)

    def on_step_begin(self, args, state, control, **kwargs):
        self.seconds.append(-time.process_time())

    def on_step_end(self, args, state, control, **kwargs):
        self.seconds[-1] += time.process_time()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if not state.is_world_process_zero or "loss" not in logs:
            return
        cells = (f"{logs[name]:9.3f}" if name in logs else f"{'-':>9}" for name in COLUMNS)
        print(f"{state.global_step:4}  " + "  ".join(cells) + f"  {self.seconds[-1]:11.1f}", flush=True)


def plain_smollm2(folder: Path) -> Path:
    """Write the wheel's GGUF as a folder that transformers, PEFT and vLLM load, where it is not there; return it."""
    if not (folder / "config.json").is_file():
        with unpacked(SMOLLM2) as file:
            where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
            read = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
            # Its weights are dequantised, but transformers takes it for a quantised model.
            model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(**where))
            model.load_state_dict(read.state_dict())
            AutoTokenizer.from_pretrained(**where).save_pretrained(folder)
            model.save_pretrained(folder)
    return folder


def main(args: argparse.Namespace) -> None:
    name = args.model or plain_smollm2(args.out.parent / "smollm2")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)
    if args.adapter == "antipasto":
        attach(model)
    else:
        model = get_peft_model(
            model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
        )
    problems = generated(args.problems, args.seed)
    callbacks = []
    if args.pairs:
        # A fresh LoRA has B = 0, where A has no gradient: axes that are renewed see both factors.
        callbacks.append(project(pairs=args.pairs, k=5, refresh=args.refresh))
    gpu = torch.cuda.is_available()
    config = GRPOConfig(
        output_dir=str(args.out), seed=args.seed, max_steps=args.steps,
        num_generations=args.rows,
        per_device_train_batch_size=args.per_device,
        gradient_accumulation_steps=args.prompts * args.rows // args.per_device,
        max_completion_length=args.max_new, temperature=1.0,
        loss_type="dr_grpo", scale_rewards="none", beta=0.0,
        learning_rate={"lora": 1e-4, "antipasto": 1e-3}[args.adapter], warmup_steps=1,
        bf16=gpu, use_cpu=not gpu, gradient_checkpointing=False,
        use_vllm=args.vllm, vllm_mode="colocate",
        logging_steps=1, save_strategy="no", report_to=args.report_to, disable_tqdm=True,
    )  # fmt: skip
    pay = reward(problems)
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=pay,
        train_dataset=Dataset.from_list(rows(problems)),
        args=config,
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(table := Table())
    before = time.process_time()
    trainer.train()
    steps, whole = sum(table.seconds), time.process_time() - before
    pay.close()
    if not trainer.accelerator.is_main_process:
        return
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    tokens = trainer.state.num_input_tokens_seen / len(table.seconds)
    print(f"{args.prompts * args.rows} rows and {tokens:.0f} tokens a step")
    print(f"CPU seconds: {steps / len(table.seconds):.1f} a step, {whole - steps:.1f} beside the steps")
    print(f"peak memory {peak:.1f} GB")
    if args.adapter == "antipasto":
        export(model, args.out / "adapter")
    else:
        model.save_pretrained(args.out / "adapter")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="folder or hub id (default: the wheel's SmolLM2-135M-Instruct)")
    parser.add_argument("--adapter", choices=("lora", "antipasto"), default="lora")
    parser.add_argument("--pairs", default=ROOT / "config" / "pairs" / "own_mode.yaml", type=Path)
    parser.add_argument("--plain", dest="pairs", action="store_const", const=None, help="no projection")
    parser.add_argument("--refresh", type=int, default=0, help="axes anew every N steps (0: never)")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=2, help="prompts a step and process")
    parser.add_argument("--rows", type=int, default=4, help="completions of a prompt")
    parser.add_argument("--per-device", type=int, default=4, help="rows of one forward and backward")
    parser.add_argument("--max-new", type=int, default=96, help="tokens of a completion")
    parser.add_argument("--problems", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vllm", action="store_true", help="sample by vLLM; LoRA alone")
    parser.add_argument("--report-to", default="none", help="wandb, trackio, tensorboard, ...")
    parser.add_argument("--out", type=Path, default=Path("build/trl-smollm2"))
    given = parser.parse_args()
    if given.prompts * given.rows % given.per_device:
        parser.error("--prompts times --rows: allowed are multiples of --per-device")
    try:
        main(given)
    except (UserError, OSError) as error:  # of a model that is not there
        parser.exit(2, f"error: {' '.join(str(error).split())}\n")
