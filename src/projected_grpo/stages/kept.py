"""What a finished run keeps of its trained weights: delta_S after every step, and what is deployed after the last."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file

from projected_grpo.errors import UserError
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.policy import Policy


def read_adapter(path: Path, policy: Policy) -> Parameters:
    """Read a run's trained parameters, quarantine left out. Raises UserError on a file of another adapter."""
    return _read(path, policy, slice(None), "no adapter of this model")


def weights(path: Path, policy: Policy, step: int) -> Parameters:
    """Return the delta_S that sampled a step's rollouts, from a run's `deltas.safetensors`.

    Raises UserError where the file is none of this adapter.
    """
    if step == 1:
        return policy.adapter.zeros()
    return _read(path, policy, step - 2, f"has no delta_S of this model after step {step - 1}")


def _read(path: Path, policy: Policy, part: int | slice, problem: str) -> Parameters:
    try:
        tensors = load_file(path, device=str(policy.base.device))
        return {name: tensors[f"{name}.delta_S"][part] for name in policy.adapter.names}
    except (SafetensorError, OSError, KeyError, IndexError) as error:
        raise UserError(f"{path}: {problem} ({error})") from error
