"""Snakemake's command line as people type it, put so that its parser reads what was meant.

Options that take a list swallow what follows: `--resources gpu=1 results/Q10.md` fails in plain Snakemake, which reads
the target as one more resource. Here a word that such an option cannot mean (no `=` for NAME=VALUE, none of the
choices, no config file's suffix) is a target again: targets move to the end, after `--`.

Jobs here compute without pause, so more of them than cores only push each other out of the caches: with `--cores 8` on
two cores eight training runs take a third longer than the same eight two by two.
"""

import os
import re
import sys
from argparse import Action, ArgumentParser, Namespace
from itertools import takewhile
from pathlib import Path
from typing import Any

from projected_grpo.config_files import check_there
from projected_grpo.errors import UserError, nearest
from projected_grpo.strict_yaml import read_mapping
from projected_grpo.wrapper.run import starts_jobs

CONFIG = "config/config.yaml"  # what the Snakefile reads by itself
CONFIG_FILES = (".yaml", ".yml", ".json")
PAIRS = ("--groups", "--group-components")  # NAME=VALUE lists whose help does not say so
LISTS: dict[Any, float] = {"?": 1, "*": float("inf"), "+": float("inf")}  # and the most words that they take


def free_targets(arguments: list[str], parser: ArgumentParser) -> list[str]:
    """Return `arguments` with all targets at the end; unchanged where there is none, or an unknown option."""
    options, targets = [], []
    action: Any
    action, wanted = None, 0.0  # the open option, and how many words it still takes
    for place, word in enumerate(arguments):
        if word == "--":
            targets += arguments[place + 1 :]
            break
        if word.startswith("-") and len(word) > 1:
            action, complete = find(word, parser)
            if action is None:
                return arguments
            wanted = 0 if complete else LISTS.get(action.nargs, 1 if action.nargs is None else action.nargs)
            options.append(word)
        elif wanted and (action.nargs not in LISTS or takes(action, word) or wants(action, options[-1])):
            wanted -= 1
            options.append(word)
        else:
            wanted = 0
            targets.append(word)
    return [*options, "--", *targets] if targets else arguments


def find(word: str, parser: ArgumentParser) -> tuple[Action | None, bool]:
    """Return (the option that `word` is, whether its value is part of the word), None for an unknown one."""
    options = parser._option_string_actions
    name, equals, _ = word.partition("=")
    if name in options:
        return options[name], bool(equals)
    if not word.startswith("--"):
        return options.get(word[:2]), True  # -c8, or several flags in one word
    meant = {id(action): action for option, action in options.items() if option.startswith(name)}
    return next(iter(meant.values())) if len(meant) == 1 else None, bool(equals)


def takes(action: Action, word: str) -> bool:
    """Return whether the list option `action` can mean `word`."""
    if action.choices:
        return word in action.choices
    if "--configfile" in action.option_strings:
        return word.endswith(CONFIG_FILES)
    if "=" in (action.metavar or "") or any(name in PAIRS for name in action.option_strings):
        return "=" in word
    return True


def wants(action: Action, word: str) -> bool:
    """Return whether `word` is the option `action` itself, whose value comes next even where that is wrong."""
    named = bool(action.choices) or "--configfile" in action.option_strings
    return named and action.nargs == "+" and word.startswith("-")


def check_options(words: list[str], parser: ArgumentParser) -> None:
    """Check the names of long options: of an unknown one Snakemake prints its whole usage. Raises UserError."""
    known = [option for option in parser._option_string_actions if option.startswith("--")]
    for name in (word.partition("=")[0] for word in takewhile("--".__ne__, words) if " " not in word):
        if name.startswith("--") and not any(option.startswith(name) for option in known):
            raise UserError(f"{name}: no such option; {nearest(name, known)}")


def check_profile(folder: str | None) -> None:
    """Check the place of a workflow profile, which Snakemake goes without where it is not there. Raises UserError."""
    if folder not in (None, "none") and not any(Path(place, folder).exists() for place in (".", "profiles")):
        there = [str(path) for path in sorted(Path("profiles").glob("*"))]
        raise UserError(f"--workflow-profile {folder}: no such profile; {nearest(folder, there)}")


def find_configs(arguments: list[str], files: list[str], typed_in: str) -> list[str]:
    """Return `arguments` with each config file that lies not here but where the call was typed under its path there."""
    for file in files:
        there = os.path.relpath(os.path.join(typed_in, file))
        if not os.path.exists(file) and os.path.exists(there):
            arguments = [_with_path(word, Path(file), there) for word in arguments]
    return arguments


def _with_path(word: str, file: Path, there: str) -> str:
    option, equals, value = word.partition("=")
    if equals and option.startswith("--conf") and Path(value) == file:
        return f"{option}={there}"
    return there if Path(word) == file else word


def fit_cores(arguments: list[str], typed: Namespace, cores: int) -> list[str]:
    """Return `arguments` with one more, last `--cores` where they ask this machine for more than `cores`; say so.

    typed: `arguments` as parsed.
    """
    elsewhere = typed.executor or typed.profile or typed.workflow_profile  # there it is what a cluster lends
    if elsewhere or not isinstance(typed.cores, int) or typed.cores <= cores:
        return arguments
    print(f"snakemake: --cores {typed.cores} on a machine with {cores}: using {cores}", file=sys.stderr)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:end], "--cores", str(cores), *arguments[end:]]


def add_logger(arguments: list[str], typed: Namespace) -> list[str]:
    """Return `arguments` with the project's own lines on the terminal, unless they ask for Snakemake's words.

    typed: `arguments` as parsed.
    """
    asked = typed.logger or typed.quiet is not None or typed.verbose or typed.printshellcmds
    if asked or not (starts_jobs(arguments) or typed.dryrun) or str(typed.mode) != "default":
        return arguments
    return ["--logger", "terminal", *arguments]


def tell_seeds(words: list[str]) -> None:
    """Say how many seeds a number in `--config` means where it looks like a seed."""
    for word in (word for word in words if re.fullmatch("seeds=[0-9]{1,3}", word)):
        from projected_grpo.cells.config import FIRST_SEED  # half a second to import

        if (number := int(word.partition("=")[2])) >= FIRST_SEED:
            last = FIRST_SEED + number - 1
            alone = f"seed {number} alone is --config 'seeds=[{number}]'"
            print(
                f"snakemake: {word}: {number} replications, {FIRST_SEED} to {last}; {alone}", file=sys.stderr
            )


def check_config(words: list[str]) -> None:
    """Check words of `--config`, of which Snakemake answers any but KEY=VALUE with a traceback. Raises UserError."""
    for word in words:
        key, equals, value = word.partition("=")
        outer, *inner = key.split(".")
        if equals and inner and all(part.isidentifier() for part in (outer, *inner)):
            nested = "".join(f"{{{part}: " for part in inner) + value + "}" * len(inner)
            raise UserError(f"--config {word}: a key inside another, write --config '{outer}={nested}'")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]+", key):
            raise UserError(f"--config {word!a:.60}, allowed: KEY=VALUE, KEY of letters, digits and _")


def check_files(files: list[str]) -> None:
    """Check config files, of which Snakemake says neither name nor line. Raises UserError where one is no YAML."""
    for file in files:
        check_there(file)
        read_mapping(file)
