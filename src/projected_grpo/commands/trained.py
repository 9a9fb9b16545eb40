"""A finished run as it is deployed: its record, its base, and the policy with what it trained."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo import arms
from projected_grpo.digests import file_digest
from projected_grpo.errors import UserError
from projected_grpo.hub import checkpoint_digest
from projected_grpo.linked import check_read, tree_of
from projected_grpo.records import read_sealed

if TYPE_CHECKING:
    from projected_grpo.method.policy import Policy
    from projected_grpo.model.decoder import Decoder

RUN_HELP = "folder of a finished run, results/grpo/CELL"
BASE_HELP = "canonical folder of the base (default: the run's replication in the same results)"


@dataclass(frozen=True)
class Trained:
    """results: the tree it stands in; record: `run.json`; policy: its `theta` is what is deployed, no quarantine."""

    results: Path
    record: dict
    base: str
    policy: "Policy"

    @cached_property
    def model(self) -> "Decoder":
        """The model that is deployed, adapter merged in."""
        return self.policy.merged()


def read_record(folder: Path) -> dict:
    """Return a run's `run.json`. Raises UserError where there is none of this pipeline."""
    path = folder / "run.json"
    if not path.exists():
        raise UserError(f"{path}: no such file; RUN is a folder results/grpo/CELL")
    check_read(path)
    record = read_sealed(path)
    try:
        record["settings"]["setting"]["adapter"], record["model"]  # what is read here
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: no record of a run of this pipeline ({error})") from error
    arms.look_in(record.get("arms", []))
    return record


def read_trained(folder: Path, base: str | None) -> Trained:
    """Load a run on the CPU, in the dtype that it was trained in; base: None for that of its replication.

    Raises UserError on no run, a damaged one, or a base that it was not trained on.
    """
    record = read_record(folder)
    results = tree_of(folder)
    model = results / "models" / record["model"]
    given = base or str(model / "base")
    if not base and not Path(given).is_dir():
        raise UserError(f"{given}: no such folder, allowed: the run's base by --base (a canonical folder)")
    kind, svd = record["settings"]["setting"]["adapter"], model / "svd.safetensors"
    read = [folder / "adapter.safetensors", *Path(given).glob("config.json")]
    check_read(*read, *([svd] if kind == "antipasto" and svd.exists() else []))
    used = record.get("inputs") or {}
    if used.get("base") not in (None, checkpoint_digest(given)):
        raise UserError(f"{given}: another base than {folder} was trained on")
    if kind == "antipasto" and svd.exists() and used.get("svd") not in (None, file_digest(svd)):
        raise UserError(f"{svd}: another SVD than {folder} was trained with")
    # Imported here, not above: torch takes seconds.
    from projected_grpo.method.policy import load_policy
    from projected_grpo.stages.kept import read_adapter

    policy = load_policy(kind, given, svd, record.get("dtype", "float32"), "cpu")
    policy.theta = read_adapter(folder / "adapter.safetensors", policy)
    if {name: len(change) for name, change in policy.theta.items()} != policy.adapter.sizes:
        raise UserError(f"{folder}: trained on a base of other sizes than {given}")
    return Trained(results, record, given, policy)
