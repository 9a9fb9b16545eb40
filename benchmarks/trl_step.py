"""Worker, with the packages of `make optional`: one `GRPOTrainer` step on a workload.

Full weights are trained (TRL has no delta_S; an adapter would only add to its forward), or with `--lora` TRL's own
adapter on the Linears that ours has, of rank 1, the nearest to delta_S in size. No reference model, Dr.GRPO loss,
temperature 1 over the full vocabulary. Tokens are prescribed by a logits processor, rewards by a lookup. `--gpu`: on
a GPU, in the checkpoint's own dtype.
"""

import sys
import tempfile
import time

import torch
from datasets import Dataset
from peft import LoraConfig
from reference_loop import Prescribed
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LogitsProcessorList, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from workload import Clock, Workload

LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Stepwise(TrainerCallback):
    """Lets the trainer wait for a command before each step and answer after it."""

    def __init__(self):
        self.clock = None
        self.generated = 0.0

    def on_step_begin(self, args, state, control, **kwargs):
        self.clock = self.clock or Clock()
        self.generated = 0.0
        if not self.clock.wait():
            sys.exit()

    def on_step_end(self, args, state, control, **kwargs):
        more = {}
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
            more["peak_gb"] = torch.cuda.max_memory_allocated() / 2**30
        self.clock.answer({"generate": self.generated}, **more)


def tokenizer(vocab: int) -> PreTrainedTokenizerFast:
    core = Tokenizer(models.WordLevel({f"w{i}": i for i in range(vocab)}, unk_token="w0"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=f"w{vocab - 1}", pad_token=f"w{vocab - 1}"
    )


def main(path: str, lora: bool, gpu: bool) -> None:
    torch.set_num_threads(1)
    load = Workload.load(path)
    model = AutoModelForCausalLM.from_pretrained(load.model)
    stepwise = Stepwise()
    completions = [row for _, row in load.rows]
    rewards = [r for group in load.rewards for r in group]
    generate = model.generate

    def forced(input_ids, **kwargs):
        processor = LogitsProcessorList([Prescribed(completions, input_ids.shape[1], load.vocab - 1)])
        start = time.perf_counter()
        out = generate(input_ids=input_ids, logits_processor=processor, **kwargs)
        stepwise.generated += time.perf_counter() - start
        check(out[:, input_ids.shape[1] :], load)
        return out

    model.generate = forced
    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder, max_steps=load.repeats, per_device_train_batch_size=len(load.rows),
            num_generations=load.group, max_completion_length=load.max_new, temperature=1.0, top_k=0, top_p=1.0,
            beta=0.0, loss_type="dr_grpo", scale_rewards="none", learning_rate=1e-5, adam_beta1=0.5,
            adam_beta2=0.9, weight_decay=0.0, max_grad_norm=0.0, gradient_checkpointing=False, bf16=False,
            use_cpu=not gpu, shuffle_dataset=False, report_to="none", save_strategy="no", logging_strategy="no",
            disable_tqdm=True, dataloader_num_workers=0,
        )  # fmt: skip
        prompts = [" ".join(f"w{t}" for t in ids) for ids in load.prompts]
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=lambda prompts, completions, **kwargs: rewards,
            args=arguments,
            train_dataset=Dataset.from_dict({"prompt": prompts}),
            processing_class=tokenizer(load.vocab),
            callbacks=[stepwise],
            peft_config=LoraConfig(r=1, target_modules=list(LINEARS)) if lora else None,
        )
        trainer.train()


def check(completions: torch.Tensor, load: Workload) -> None:
    """Every row has the prescribed tokens."""
    got = [row[: len(wanted)] for row, (_, wanted) in zip(completions.tolist(), load.rows, strict=True)]
    assert got == [wanted for _, wanted in load.rows], "tokens are not the prescribed ones"


if __name__ == "__main__":
    main(sys.argv[1], "--lora" in sys.argv, "--gpu" in sys.argv)
