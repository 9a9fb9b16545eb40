"""A worker of two gloo processes: one step, its parameters written by the first; `python two_processes.py KIND ...`."""

import sys
from types import SimpleNamespace

import optional_packages  # noqa: F401
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from trl_step import load, make_trainer, tokenizer

from projected_grpo.antipasto import attach
from projected_grpo.integrations.adapted import adapted
from projected_grpo.trl import project


def under_ddp(folder, basis, out):
    """TRL under DDP, half of the rows each."""
    model = attach(load(folder))
    trainer = make_trainer(model, out + ".run", [project(basis)], rows=4, ddp_backend="gloo")
    assert trainer.accelerator.num_processes == 2
    trainer.train()
    if trainer.accelerator.is_main_process:
        found = adapted(model)
        torch.save({"theta": found.flat(found.trained), "log": trainer.state.log_history[0]}, out)


def under_fsdp2(folder, basis, out):
    """The callback on a model that FSDP2 shards, gradients of a language-model loss."""
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    model = attach(load(folder))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    callback = project(basis)
    step(model, callback, SimpleNamespace(optim="sgd", output_dir=out, deepspeed=None))
    gradient = callback.adapted.flat(p.grad for p in callback.adapted.trained)
    if dist.get_rank() == 0:
        torch.save({"gradient": gradient, "seen": callback._seen}, out)
    dist.destroy_process_group()


def step(model, callback, args):
    """Take the gradient of a fixed text, and let the callback project it."""
    state = SimpleNamespace(global_step=0)
    callback.on_train_begin(args, state, None, model=model, processing_class=tokenizer(), optimizer=None)
    ids = torch.tensor([[1, 3, 4, 2, 8, 9, 10]])
    model(input_ids=ids, labels=ids).loss.backward()
    callback.on_pre_optimizer_step(args, state, None, model=model, processing_class=tokenizer())


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"ddp": under_ddp, "fsdp2": under_fsdp2}[sys.argv[1]](*sys.argv[2:])
