"""`projected-grpo canonical SOURCE OUT`: a given model as the folder that this project reads."""

import argparse
from pathlib import Path

from projected_grpo.commands.help import add_command
from projected_grpo.errors import UserError
from projected_grpo.model import offered

EXAMPLE = """\
example:
  projected-grpo canonical Qwen/Qwen2.5-Coder-0.5B-Instruct my-base
  projected-grpo canonical my-adapter my-teacher --base my-base

The pipeline does the same with model.base and model.teacher of its config
(docs/models.md).
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `canonical`."""
    about = (
        "Read a model by transformers, or an adapter by PEFT, write it as a canonical folder and compare the "
        "log-probabilities of eight texts."
    )
    words = "write a given model or adapter as a canonical folder"
    parser = add_command(subparsers, canonical, "canonical", words, about, EXAMPLE)
    parser.add_argument("source", metavar="SOURCE", help="folder, hub id (owner/name@revision) or .gguf file")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write; must not exist")
    parser.add_argument("--base", type=Path, help="SOURCE is a PEFT adapter on this canonical folder")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="of the weights written"
    )
    parser.add_argument(
        "--full", action="store_true", help="compare all layers of a model above a billion parameters"
    )


def canonical(args: argparse.Namespace) -> None:
    """Write the folder. Raises UserError on what the door refuses, or where OUT exists."""
    if args.out.exists():
        raise UserError(f"{args.out}: exists already, allowed: a new folder")
    if problem := offered.problem(args.source, offered.ADAPTER if args.base else offered.BASE):
        raise UserError(f"{args.source}: {problem}")
    from projected_grpo.model.door import bring_base, bring_teacher  # seconds to import

    if args.base:
        found = bring_teacher(args.source, args.base, args.out, args.dtype, args.full)
    else:
        found = bring_base(args.source, args.out, args.dtype, args.full)
    print(f"{args.out}: log-probabilities differ by at most {found.largest:.2g}, allowed {found.bound:.2g}")
