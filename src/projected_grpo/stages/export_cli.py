"""`projected-grpo adapter export RUN OUT`: a trained LoRA run as a plain PEFT adapter."""

import argparse
from pathlib import Path

from projected_grpo.errors import UserError
from projected_grpo.records import check_read, read_sealed


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `adapter`; the parsed arguments carry `run`, called with them."""
    adapter = subparsers.add_parser("adapter", help="export what a run trained")
    commands = adapter.add_subparsers(metavar="COMMAND", required=True)
    exporter = commands.add_parser(
        "export",
        help="write a LoRA run as a PEFT adapter folder",
        description="Write a run with `adapter: lora` as a PEFT adapter folder; a quarantine is left out.",
    )
    exporter.add_argument("folder", type=Path, metavar="RUN", help="results/grpo/CELL")
    exporter.add_argument("out", type=Path, metavar="OUT", help="folder to write")
    exporter.add_argument(
        "--base", help="folder or hub id of the base (default: the run's replication in the same results)"
    )
    exporter.set_defaults(run=export)


def export(args: argparse.Namespace) -> None:
    """Write the adapter folder. Raises UserError on no run, a run of another adapter, or another base."""
    record = read_record(args.folder)
    kind = record["settings"]["setting"]["adapter"]
    if kind != "lora":
        raise UserError(f"{args.folder}: a run with adapter {kind!r}, allowed: lora (PEFT has no other)")
    base = args.base or str(args.folder.resolve().parents[1] / "models" / record["model"] / "base")
    if not args.base and not Path(base).is_dir():
        raise UserError(f"{base}: no such folder, allowed: the run's base by --base (a folder or hub id)")
    check_read(args.folder / "adapter.safetensors", *Path(base).glob("config.json"))
    # Imported here, not above: the other commands need no torch.
    from projected_grpo.method.lora_export import save_peft
    from projected_grpo.method.policy import load_policy
    from projected_grpo.stages.contrast import read_adapter

    policy = load_policy("lora", base, None, "float32", "cpu")
    theta = read_adapter(args.folder / "adapter.safetensors", policy)
    if {name: len(change) for name, change in theta.items()} != policy.adapter.sizes:
        raise UserError(f"{args.folder}: trained on a base of other sizes than {base}")
    save_peft(policy.adapter, theta, base, args.out)
    print(f"{args.out}: PEFT adapter of rank {2 * policy.adapter.rank} on {base}")


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
    return record
