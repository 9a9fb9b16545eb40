"""A tiny checkpoint that transformers loads, and TRL's GRPO on it with prescribed completions and rewards."""

import torch
from tiny import CONFIG, tiny_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM, TrainerCallback

from projected_grpo.model.load import save_weights

END = CONFIG.vocab_size - 1
TEMPLATE = "{% for message in messages %}w1 {{ message['content'] }} {% endfor %}w2"
PROMPTS = ["w3 w4 w5", "w6 w7"]  # two groups of four rows
ROWS = [[8, 9, END], [10, END], [11, 12, 13, 14, 15], [8, 16, END]]
ROWS += [[17, 18, 19, END], [20, END], [9, 9, 21, END], [22, 23, 24, 25, END]]
REWARDS = [3.5, 0.5, 0.0, 3.0, 0.5, 3.5, 0.5, 1.0]
MAX_NEW = 5
PAIRS = [
    {"prompt": f"w{3 + i}", "hack": f"w{8 + i} w{9 + i} w{20 - i}", "clean": f"w{14 + i} w{11 + i}"}
    for i in range(5)
]


def tokenizer():
    core = Tokenizer(models.WordLevel({f"w{i}": i for i in range(CONFIG.vocab_size)}, unk_token="w0"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=f"w{END}", pad_token="w0")
    made.chat_template = TEMPLATE
    return made


def write_checkpoint(folder):
    save_weights(tiny_model(), folder)
    tokenizer().save_pretrained(folder)
    return folder


def load(folder, **how):
    return Qwen3ForCausalLM.from_pretrained(folder, **how)


class Recorder(TrainerCallback):
    """Keeps what the optimizer is about to step on, by parameter."""

    def __init__(self):
        self.gradients = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        model = getattr(model, "module", model)
        self.gradients.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})


def prescribe(model):
    """Let `model.generate` return ROWS, of each prompt one after the other."""
    by_prompt = {}
    for number, row in enumerate(ROWS):
        by_prompt.setdefault(PROMPTS[number // 4].split()[0], []).append(row)

    def generate(input_ids, **kwargs):
        drawn = {first: iter(rows) for first, rows in by_prompt.items()}
        out = torch.zeros(len(input_ids), MAX_NEW, dtype=torch.long)
        for number, prompt in enumerate(input_ids.tolist()):
            first = next(f"w{t}" for t in prompt if f"w{t}" in drawn)
            row = next(drawn[first])
            out[number, : len(row)] = torch.tensor(row)
        return torch.cat([input_ids, out], 1)

    model.generate = generate


def earned(completion_ids, **kwargs):
    return [REWARDS[ROWS.index(list(ids))] for ids in completion_ids]


def make_trainer(model, folder, callbacks=(), rows=8, **options):
    """Return TRL's trainer; `rows` of each process and backward. SGD, so that a step is its gradient."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    prescribe(model)
    settings = {
        "max_steps": 1, "num_generations": 4, "max_completion_length": MAX_NEW, "temperature": 1.0, "top_k": 0,
        "beta": 0.0, "loss_type": "dr_grpo", "scale_rewards": "none", "learning_rate": 0.1, "optim": "sgd",
        "max_grad_norm": 0.0, "gradient_checkpointing": False, "bf16": False, "use_cpu": True,
        "shuffle_dataset": False, "report_to": "none", "save_strategy": "no", "logging_steps": 1,
        "disable_tqdm": True, "lr_scheduler_type": "constant", "per_device_train_batch_size": rows,
    }  # fmt: skip
    return GRPOTrainer(
        model=model,
        reward_funcs=earned,
        args=GRPOConfig(output_dir=str(folder), **settings | options),
        train_dataset=Dataset.from_dict({"prompt": PROMPTS}),
        processing_class=tokenizer(),
        callbacks=list(callbacks),
    )
