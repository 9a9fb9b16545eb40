"""Worker: the arithmetic floor of a step - its matrix products on this machine, and nothing else.

On distinct prefixes alone: prefill of the prompts, one product per Linear and decode step on what is live then,
forward, input gradient and weight gradient of the training tokens (groups with a gradient), the head where something
is predicted. No attention, no norms, no sampling, no Python worth mentioning.
"""

import sys
import time

import torch
import torch.nn.functional as F
from workload import Workload, serve

from projected_grpo.model.load import load_weights


def main(path: str) -> None:
    torch.set_num_threads(1)
    load = Workload.load(path)
    model = load_weights(load.model)
    linears = [model.weights[f"{name}.weight"] for name in model.linears]
    tokens, decoded = load.tokens, load.decoded
    trained, predicting = tokens["trained"], tokens["predicting"]
    widest = max(max(W.shape) for W in [*linears, model.head])
    x = torch.randn(max(trained, tokens["prompt"], *decoded), widest)

    def operand(rows: int, width: int) -> torch.Tensor:
        return x.view(-1)[: rows * width].view(rows, width)

    @torch.no_grad()
    def step() -> dict[str, float]:
        start = time.perf_counter()
        for W in linears:
            F.linear(operand(tokens["prompt"], W.shape[1]), W)
        F.linear(operand(len(load.prompts), model.head.shape[1]), model.head)
        for rows in decoded:
            for W in [*linears, model.head]:
                F.linear(operand(rows, W.shape[1]), W)
        generated = time.perf_counter()
        for W in linears:
            a, g = operand(trained, W.shape[1]), operand(trained, W.shape[0])
            F.linear(a, W)
            torch.mm(g, W)
            torch.mm(g.T, a)
        F.linear(operand(predicting, model.head.shape[1]), model.head)
        torch.mm(operand(predicting, len(model.head)), model.head)
        return {"generate": generated - start, "backward": time.perf_counter() - generated}

    serve(step)


if __name__ == "__main__":
    main(sys.argv[1])
