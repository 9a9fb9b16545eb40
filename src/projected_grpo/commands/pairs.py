"""`projected-grpo pairs import FILE` and `projected-grpo pairs check FILE`."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from projected_grpo.arguments import output_file, refuse_inputs
from projected_grpo.commands.help import add_command
from projected_grpo.environment import families
from projected_grpo.errors import UserError
from projected_grpo.method.pairs import PairSet, load_pairs, write_pairs
from projected_grpo.method.pairs_import import import_pairs

FOLDER = Path("config/pairs")
NORMAL = 18  # pairs of the sets that are shipped
LONGER, DIFFERS = 1.16, 0.3  # ratio of lengths, difference of shares: beyond what the shipped sets have
WORD = re.compile(r"[A-Za-z]{3,}")
FORMATS = {
    "a code fence": lambda text: "```" in text,
    "more than one line": lambda text: "\n" in text.strip(),
    "a list": lambda text: bool(re.search(r"^\s*[-*] ", text, re.M)),
    "an end of sentence": lambda text: text.rstrip().endswith((".", "!", "?")),
}
SCHEMA = Path("workflow/schemas/pairs.schema.json")


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `pairs`."""
    pairs = subparsers.add_parser("pairs", help="import and check pair sets")
    commands = pairs.add_subparsers(metavar="COMMAND", required=True)

    importer = add_command(commands, _import, "import", "turn a published pair set (.json, .md) into YAML")
    importer.add_argument("file", type=Path, metavar="FILE")
    importer.add_argument(
        "--out",
        type=output_file,
        metavar="YAML",
        help=f"file to write (default: {FOLDER}/NAME.yaml, never overwritten)",
    )

    checker = add_command(commands, _check, "check", "check a YAML pair set and describe it")
    checker.add_argument("file", type=Path, metavar="FILE")


def _import(args: argparse.Namespace) -> None:
    pairs = import_pairs(args.file)
    out = args.out or FOLDER / f"{pairs.name}.yaml"
    refuse_inputs("--out", out, args.file)
    if args.out is None and out.exists():
        raise UserError(f"{out}: exists already, allowed: another name by --out")
    # In a checkout editors find the schema by this line.
    line = f"yaml-language-server: $schema={os.path.relpath(SCHEMA, out.parent)}\n" if SCHEMA.exists() else ""
    write_pairs(out, pairs.pairs, comment=f"{line}Imported from {args.file.name}.")
    print(f"{out}: {describe(load_pairs(out))}")


def _check(args: argparse.Namespace) -> None:
    pairs = load_pairs(args.file)
    print(f"{args.file}: {describe(pairs)}")
    if len(pairs) > NORMAL:
        name = args.file.stem
        line = f"{name}: {{ pairs: {name}, n_pairs: {len(pairs)} }}"
        print(
            f"the first {NORMAL} of {len(pairs)} pairs are used; for all put `{line}` below `bases` in the config"
        )
    for warning in warnings(pairs):
        print(f"warning: {warning}", file=sys.stderr)


def warnings(pairs: PairSet) -> Iterator[str]:
    """Yield what may make a basis be about something else than the contrast that is meant."""
    if len(pairs) < NORMAL:
        yield f"{len(pairs)} pairs; the sets that it stands beside have {NORMAL}, so size differs along with content"
    sides = {side: [getattr(pair, side) for pair in pairs.pairs] for side in ("hack", "clean")}
    ratio = sum(map(len, sides["hack"])) / sum(map(len, sides["clean"]))
    if not 1 / LONGER < ratio < LONGER:
        yield f"hack sides are {ratio:.2f} times as long as clean ones: the basis may be about length"
    for name, has in FORMATS.items():
        shares = [sum(map(has, texts)) / len(texts) for texts in sides.values()]
        if abs(shares[0] - shares[1]) > DIFFERS:
            yield f"{name}: {shares[0]:.0%} of the hack sides, {shares[1]:.0%} of the clean ones"
    words = {side: set(WORD.findall("\n".join(texts))) for side, texts in sides.items()}
    corpus = corpus_words()
    own = {side: words[side] - words[other] for side, other in (("hack", "clean"), ("clean", "hack"))}
    known = {side: own[side] & corpus for side in own}
    shares = [len(known[side]) / max(1, len(own[side])) for side in own]
    if abs(shares[0] - shares[1]) > DIFFERS:
        said = [
            f"{len(known[side])} of {len(own[side])} {side} ({', '.join(sorted(known[side])[:6]) or 'none'})"
            for side in own
        ]
        yield f"of words on one side alone the small model's corpus has {' and '.join(said)}: it may be about those"


def corpus_words() -> set[str]:
    """Return the words that a small model's base is trained on, of every family, by one replication."""
    known = map(families.load, families.names())
    examples = (example for family in known for example in family.base_examples(41, 3000, family.Mixture()))
    return {word for example in examples for word in WORD.findall("".join(example))}


def describe(pairs: PairSet) -> str:
    """One line: number of pairs, digest, mean lengths of both sides in characters, tags."""
    hack, clean = (mean(len(getattr(pair, side)) for pair in pairs.pairs) for side in ("hack", "clean"))
    lengths = f"mean length hack {hack:.0f} / clean {clean:.0f}"
    tags = ", ".join(pairs.tags) if len(pairs.tags) <= 12 else f"{len(pairs.tags)} different ones"
    return f"{len(pairs)} pairs, digest {pairs.digest}, {lengths}, tags: {tags or 'none'}"
