"""`projected-grpo pairs import FILE` and `projected-grpo pairs check FILE`."""

import argparse
import os
from pathlib import Path
from statistics import mean

from projected_grpo.arguments import output_file
from projected_grpo.errors import UserError
from projected_grpo.method.pairs import PairSet, load_pairs, write_pairs
from projected_grpo.method.pairs_import import import_pairs

FOLDER = Path("config/pairs")
SCHEMA = Path("workflow/schemas/pairs.schema.json")


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `pairs`; the parsed arguments carry `run`, called with them."""
    pairs = subparsers.add_parser("pairs", help="import and check pair sets")
    commands = pairs.add_subparsers(metavar="COMMAND", required=True)

    importer = commands.add_parser("import", help="turn a published pair set (.json, .md) into YAML")
    importer.add_argument("file", type=Path, metavar="FILE")
    importer.add_argument(
        "--out",
        type=output_file,
        metavar="YAML",
        help=f"file to write (default: {FOLDER}/NAME.yaml, never overwritten)",
    )
    importer.set_defaults(run=_import)

    checker = commands.add_parser("check", help="check a YAML pair set and describe it")
    checker.add_argument("file", type=Path, metavar="FILE")
    checker.set_defaults(run=_check)


def _import(args: argparse.Namespace) -> None:
    pairs = import_pairs(args.file)
    out = args.out or FOLDER / f"{pairs.name}.yaml"
    if args.out is None and out.exists():
        raise UserError(f"{out}: exists already, allowed: another name by --out")
    write_pairs(out, pairs.pairs, comment=f"{_editor_line(out)}Imported from {args.file.name}.")
    print(f"{out}: {describe(load_pairs(out))}")


def _check(args: argparse.Namespace) -> None:
    print(f"{args.file}: {describe(load_pairs(args.file))}")


def _editor_line(out: Path) -> str:
    """The line by which editors find the schema, where the file lies in a checkout."""
    if not SCHEMA.exists():
        return ""
    return f"yaml-language-server: $schema={os.path.relpath(SCHEMA, out.parent)}\n"


def describe(pairs: PairSet) -> str:
    """One line: number of pairs, digest, mean lengths of both sides in characters, tags."""
    hack, clean = (mean(len(getattr(pair, side)) for pair in pairs.pairs) for side in ("hack", "clean"))
    lengths = f"mean length hack {hack:.0f} / clean {clean:.0f}"
    tags = ", ".join(pairs.tags) if len(pairs.tags) <= 12 else f"{len(pairs.tags)} different ones"
    return f"{len(pairs)} pairs, digest {pairs.digest}, {lengths}, tags: {tags or 'none'}"
