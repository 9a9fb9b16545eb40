"""Worker: a GRPO step of the published structure, as a reader of the paper would write it with transformers.

Generation prompt by prompt with `generate`; the adapter in the forward, on hooks: y = W x + U (delta_S * (Vh x));
log-softmax over the whole sequence; one backward for the student's rows of a group and one for the teacher's;
projection, AdamW. Groups of equal rewards are skipped, as in our own step.
"""

import sys
import time

import torch
from transformers import AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList
from workload import Workload, serve


class Prescribed(LogitsProcessor):
    """Leaves row i nothing but the next token of `completions[i]`."""

    def __init__(self, completions: list[list[int]], prompt: int, end: int):
        longest = max(map(len, completions))
        self.tokens = torch.tensor([row + [end] * (longest - len(row)) for row in completions])
        self.prompt = prompt

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        token = self.tokens[:, ids.shape[1] - self.prompt, None].to(scores.device)
        return torch.full_like(scores, -torch.inf).scatter_(1, token, 0.0)


class Adapted:
    """A transformers model with a trainable delta_S on every Linear of attention and MLP."""

    def __init__(self, folder: str):
        self.model = AutoModelForCausalLM.from_pretrained(folder).eval().requires_grad_(False)
        self.delta: dict[str, torch.nn.Parameter] = {}
        for name, module in self.model.named_modules():
            if isinstance(module, torch.nn.Linear) and name != "lm_head":
                U, _, Vh = torch.linalg.svd(module.weight, full_matrices=False)
                self.delta[name] = torch.nn.Parameter(torch.zeros(len(Vh)))
                module.register_forward_hook(self.hook(U, Vh, self.delta[name]))

    @staticmethod
    def hook(U: torch.Tensor, Vh: torch.Tensor, delta: torch.Tensor):
        return lambda module, x, y: y + ((x[0] @ Vh.T) * delta) @ U.T


def main(path: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    load = Workload.load(path)
    policy = Adapted(load.model)
    end, group = load.vocab - 1, load.group
    V = {name: torch.linalg.qr(torch.randn(len(p), 5))[0].T for name, p in policy.delta.items()}
    optimizer = torch.optim.AdamW(policy.delta.values(), lr=1e-3, betas=(0.5, 0.9), weight_decay=0.0)
    parameters = list(policy.delta.values())

    def generate(prompt: list[int], completions: list[list[int]]) -> torch.Tensor:
        ids = torch.tensor([prompt] * group)
        processor = Prescribed(completions, len(prompt), end)
        return policy.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            max_new_tokens=max(map(len, completions)), eos_token_id=end, pad_token_id=end,
            logits_processor=LogitsProcessorList([processor]),
        )  # fmt: skip

    def step() -> dict[str, float]:
        start = time.perf_counter()
        rows = [generate(*each) for each in zip(load.prompts, load.completions, strict=True)]
        generated = time.perf_counter()
        total = [[torch.zeros_like(p) for p in parameters] for _ in range(2)]
        scale = group * load.max_new * len(load.prompts)
        lengths_of = [[len(row) for row in group] for group in load.completions]
        for prompt, ids, lengths, rewards in zip(load.prompts, rows, lengths_of, load.rewards, strict=True):
            A = torch.tensor(rewards) - torch.tensor(rewards).mean()
            if len(set(rewards)) == 1:
                continue
            logits = policy.model(ids).logits[:, :-1].float()
            logp = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
            position = torch.arange(ids.shape[1] - 1) - (len(prompt) - 1)
            mask = (position >= 0) & (position < torch.tensor(lengths)[:, None])
            ratio = (logp - logp.detach()).exp()
            surrogate = torch.minimum(ratio * A[:, None], ratio.clamp(0.8, 1.2) * A[:, None]) * mask
            sources = (slice(0, group - 1), slice(group - 1, group))
            for grads, source in zip(total, sources, strict=True):
                loss = -surrogate[source].sum() / scale
                for g, new in zip(
                    grads, torch.autograd.grad(loss, parameters, retain_graph=True), strict=True
                ):
                    g += new
        backward = time.perf_counter()
        for name, p, s, t in zip(policy.delta, parameters, *total, strict=True):
            g = s + t
            c = (V[name] @ g).relu()
            p.grad = g - c @ V[name]
        optimizer.step()
        return {
            "generate": generated - start,
            "backward": backward - generated,
            "project": time.perf_counter() - backward,
        }

    serve(step)


if __name__ == "__main__":
    main(sys.argv[1])
