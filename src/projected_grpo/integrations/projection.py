"""A callback that takes the hack-ward part out of the gradient before the optimizer's step (docs/trl.md).

A trainer of transformers calls it after gradients are accumulated, averaged over processes, unscaled and clipped, so
what is projected is the clipped gradient, and nothing clips it again. The pipeline has the same order.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformers import TrainerCallback

from projected_grpo.errors import UserError, nearest
from projected_grpo.integrations.adapted import Adapted, adapted
from projected_grpo.integrations.pair_basis import extract_basis
from projected_grpo.method.basis import Basis, Knobs
from projected_grpo.method.pairs import PairSet, load_pairs
from projected_grpo.method.projection import GATES, Intervention, fired, mean_alignment, split

STORED = "projection.safetensors"  # the axes in use, in each checkpoint of the trainer
# Optimizers whose step is not taken from the gradients seen here.
ELSEWHERE = ("8bit", "4bit", "layerwise", "lomo")


class Projection(TrainerCallback):
    """Projects gradients of LoRA (PEFT) and AntiPaSTO parameters; logs `cin`, `cout` and `fired` (docs/method.md)."""

    def __init__(
        self,
        basis: str | Path | Basis | None = None,
        *,
        pairs: str | Path | PairSet | None = None,
        refresh: int = 0,
        gate: str = "one_sided",
        overshoot: float = 1.0,
        preserve_magnitude: bool = False,
        k: int | None = None,
        drop_bottom_frac: float = 0.0,
        knobs: Knobs | None = None,
    ):
        """Take what is projected: the gradient of each module that `basis` has axes for.

        basis: a file of `projected-grpo basis` or of the pipeline's AntiPaSTO; None: extracted from `pairs` when
        training begins. pairs: a YAML pair set; refresh: axes are extracted from it anew before the update of steps
        N, 2N, ... (0: never). gate: one_sided, no_gate, reverse; overshoot: share of the part that is taken out;
        preserve_magnitude: what is kept gets the length of the whole; k: axes used (None: all that are stored);
        drop_bottom_frac: noise floor over the stored axes of all modules; knobs: of the extraction. Raises UserError on
        anything else.
        """
        if basis is None and pairs is None:
            raise UserError("project: neither basis nor pairs, allowed: a basis file, a pair set, or both")
        if gate not in GATES:
            raise UserError(f"project: unknown gate {gate!r}; {nearest(gate, GATES)}")
        if not 0 < overshoot <= 1000:
            raise UserError(f"project: overshoot {overshoot}, allowed: above 0, up to 1000")
        if refresh < 0 or (refresh and pairs is None):
            raise UserError(
                f"project: refresh {refresh} without pairs, allowed: 0, or a step count and `pairs`"
            )
        if k is not None and k < 1:
            raise UserError(f"project: k {k}, allowed: 1 or more axes")
        if not 0 <= drop_bottom_frac < 1:
            raise UserError(f"project: drop_bottom_frac {drop_bottom_frac}, allowed: 0 up to below 1")
        if isinstance(basis, str | Path):
            basis = Basis.load(Path(basis))
        if isinstance(pairs, str | Path):
            pairs = load_pairs(pairs)
        self.basis, self.pairs, self.refresh = basis, pairs, refresh
        self.how = Intervention(gate, overshoot, preserve_magnitude)
        self.k, self.drop_bottom_frac, self.knobs = k or sys.maxsize, drop_bottom_frac, knobs or Knobs()
        self.adapted: Adapted = None  # type: ignore[assignment]  # once training has begun
        self.axes: dict[str, Tensor] = {}
        self._seen: list[dict[str, float]] = []  # of the steps since the last log

    # --- in the order in which a trainer calls them ---

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # What this callback adds to a log must be there before a tracker reads it, and trackers stand before what
        # their user passes; the handler that calls is the only one who knows the order, and is handed to nobody.
        handler = sys._getframe(1).f_locals.get("self")
        order = getattr(handler, "callbacks", [])
        if self in order:
            order.remove(self)
            order.insert(0, self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Find the adapters and their axes. Raises UserError where the run or the basis is not one to project."""
        model, tokenizer = kwargs["model"], kwargs["processing_class"]
        refuse(args, kwargs.get("optimizer"), model)
        self.adapted = found = adapted(model)
        if getattr(args, "use_vllm", False) and found.kind == "antipasto":
            raise UserError(
                "use_vllm: vLLM would sample without the AntiPaSTO adapter, allowed: LoRA, or false"
            )
        stored = Path(args.output_dir, f"checkpoint-{state.global_step}", STORED)
        if state.global_step and stored.is_file():
            self._use(Basis.load(stored))
            return
        if state.global_step and (self.refresh or self.basis is None):
            raise UserError(f"{stored}: not there, so the run cannot go on along the axes that it had")
        if self.basis is None:
            self._extract(model, tokenizer)
        else:
            check(self.basis, found, started=state.global_step > 0)
            self._use(self.basis.used(self.k, self.drop_bottom_frac))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        step, found = state.global_step + 1, self.adapted
        if self.refresh and step % self.refresh == 0:
            self._extract(kwargs["model"], kwargs["processing_class"], step)
        if all(p.grad is None for p in found.trained):
            raise UserError(
                "no adapter has a gradient before the optimizer's step: what trains here keeps its own"
            )
        gradient = found.flat(p.grad for p in found.trained)
        own = {name: gradient[name] for name in self.axes}
        if not all(bool(g.isfinite().all()) for g in own.values()):
            return  # a step that loss scaling skips
        kept, _ = split(own, self.axes, self.how)
        found.set_gradient(kept)
        if any(bool(g.any()) for g in own.values()):  # else nothing points anywhere
            seen = {"cin": mean_alignment(own, self.axes), "cout": mean_alignment(kept, self.axes)}
            self._seen.append(seen | {"fired": fired(own, self.axes)})

    def on_log(self, args: Any, state: Any, control: Any, logs: dict | None = None, **kwargs: Any) -> None:
        if not self._seen or logs is None or "loss" not in logs:
            return  # an evaluation's log, or the summary
        means = {key: sum(seen[key] for seen in self._seen) / len(self._seen) for key in self._seen[0]}
        logs |= means
        if state.log_history:
            state.log_history[-1] |= means
        self._seen = []

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
        if state.is_world_process_zero and folder.is_dir():
            ones = {name: torch.ones(len(V)) for name, V in self.axes.items()}
            Basis(self.axes, ones, {"modules": json.dumps(list(self.axes))}).save(folder / STORED)

    def _extract(self, model: nn.Module, tokenizer: Any, draw: int = 0) -> None:
        """Take the axes of the pairs at the model's weights; draw: of random ones."""
        basis = extract_basis(model, tokenizer, self.pairs, replace(self.knobs, draw=draw))  # type: ignore[arg-type]
        self._use(basis.used(self.k, self.drop_bottom_frac))

    def _use(self, basis: Basis) -> None:
        device = self.adapted.trained[0].device
        self.axes = {name: V.float().to(device).contiguous() for name, V in basis.V.items()}
        if dist.is_initialized():  # processors differ in the last digits of an SVD
            for V in self.axes.values():
                dist.broadcast(V, 0)


project = Projection  # as an argument: `callbacks=[project(basis)]`


def refuse(args: Any, optimizer: Any, model: nn.Module) -> None:
    """Raise UserError where the gradients that a callback sees are not those that the optimizer steps on."""
    if getattr(args, "deepspeed", None) or getattr(args, "deepspeed_plugin", None):
        raise UserError(
            "deepspeed: steps within its backward on partitioned gradients, allowed: DDP or FSDP2"
        )
    optim = str(getattr(args.optim, "value", args.optim))
    kind = type(getattr(optimizer, "optimizer", optimizer))
    for word in ELSEWHERE:
        if word in optim.replace("_", "") or word in kind.__name__.lower():
            raise UserError(
                f"optim {optim} ({kind.__name__}): does not step on the gradients that a callback sees"
            )
    if any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()):
        raise UserError("fsdp: version 1 keeps gradients as flat shards, allowed: fsdp_version 2")


def check(basis: Basis, found: Adapted, started: bool = False) -> None:
    """Raise UserError where a basis is of another model, adapter or rank; started: factors have moved since."""
    facts = basis.metadata
    kind = facts.get("adapter") or json.loads(facts.get("knobs", "{}")).get("adapter", "antipasto")
    if kind != found.kind:
        raise UserError(f"basis: made for the adapter {kind}, the model has {found.kind}")
    if not basis.V:
        raise UserError("basis: it has no axes, allowed: axes of at least one module")
    missing = [name for name in basis.V if name not in found.parameters]
    if missing:
        raise UserError(f"basis: {len(missing)} of its modules are not adapted here, first {missing[0]}")
    for name, V in basis.V.items():
        if V.shape[1] != found.sizes[name]:
            raise UserError(
                f"basis: {name} has {V.shape[1]} parameters in it and {found.sizes[name]} at rank "
                f"{found.ranks[name]} here: made for another model or rank"
            )
    if facts.get("model_hash") != found.model_hash():
        raise UserError(
            f"basis: made on weights {facts.get('model_hash')}, the model's are others: another model or dtype"
        )
    if kind == "lora" and not started and facts.get("factors_hash") != found.factors_hash():
        raise UserError(
            "basis: made at other LoRA factors, whose axes mean nothing here; start from the adapter folder that "
            "`projected-grpo basis` wrote, or pass `pairs` in place of the basis"
        )
