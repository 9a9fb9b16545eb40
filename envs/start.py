"""Snakemake's own entry, after putting targets where its parser finds them and fitting `--cores` to the machine.

Options that take a list swallow what follows: `--resources gpu=1 results/Q10.md` fails in plain
Snakemake, which reads the target as one more resource. Here a word that such an option cannot mean (no
`=` for NAME=VALUE, none of the choices, no config file's suffix) is a target again: targets move to the
end, after `--`.

A config file that is no YAML ends here, with its name and line, of which Snakemake's own message says neither.

Jobs here compute without pause, so more of them than cores only push each other out of the caches: with
`--cores 8` on two cores eight training runs take a third longer than the same eight two by two.

Snakemake's default limit of 100 jobs a second makes its scheduler look at all ready jobs again a second after
every look, besides after every finished job; so looks multiply, and after a hundred jobs they fill a core. The
limit is off unless it is typed.

Snakemake's temporary folder lies in `.snakemake/tmp`, where the next start finds and removes what a killed one left.
"""

import os
import shlex
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from snakemake import cli, workflow
from snakemake.exceptions import CliException

get_argument_parser = cli.get_argument_parser

TEMPORARY = Path(".snakemake", "tmp").absolute()
CONFIG = "config/config.yaml"  # what the Snakefile reads by itself
CONFIG_FILES = (".yaml", ".yml", ".json")
PAIRS = ("--groups", "--group-components")  # NAME=VALUE lists whose help does not say so
LISTS = ("?", "*", "+")


def takes(action, word: str) -> bool:
    """Return whether the list option `action` can mean `word`."""
    if action.choices:
        return word in action.choices
    if "--configfile" in action.option_strings:
        return word.endswith(CONFIG_FILES)
    if "=" in (action.metavar or "") or any(name in PAIRS for name in action.option_strings):
        return "=" in word
    return True


def find(word: str, parser):
    """Return (the option that `word` is, whether its value is part of the word), None for an unknown one."""
    options = parser._option_string_actions
    name, equals, _ = word.partition("=")
    if name in options:
        return options[name], bool(equals)
    if not word.startswith("--"):
        return options.get(word[:2]), True  # -c8, or several flags in one word
    matches = {id(options[option]): options[option] for option in options if option.startswith(name)}
    return (*matches.values(), None)[0] if len(matches) == 1 else None, bool(equals)


def free_targets(arguments: list[str], parser) -> list[str]:
    """Return `arguments` with all targets at the end; unchanged where there is none, or an unknown option."""
    options, targets = [], []
    action, wanted = None, 0.0  # the open option, and how many words it still takes
    for place, word in enumerate(arguments):
        if word == "--":
            targets += arguments[place + 1 :]
            break
        if word.startswith("-") and len(word) > 1:
            action, complete = find(word, parser)
            if action is None:
                return arguments
            words = {None: 1, "?": 1, "*": float("inf"), "+": float("inf")}.get(action.nargs, action.nargs)
            wanted = 0 if complete else words
            options.append(word)
        elif wanted and (action.nargs not in LISTS or takes(action, word)):
            wanted -= 1
            options.append(word)
        else:
            wanted = 0
            targets.append(word)
    return [*options, "--", *targets] if targets else arguments


def fit_cores(arguments: list[str], typed, cores: int) -> list[str]:
    """Return `arguments` with one more, last `--cores` where they ask this machine for more than `cores`; say so.

    typed: `arguments` as parsed.
    """
    elsewhere = typed.executor or typed.profile or typed.workflow_profile  # there it is what a cluster lends
    if elsewhere or not isinstance(typed.cores, int) or typed.cores <= cores:
        return arguments
    print(f"snakemake: --cores {typed.cores} on a machine with {cores}: using {cores}", file=sys.stderr)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:end], "--cores", str(cores), *arguments[end:]]


def check_yaml(files: list[str]) -> None:
    """End with one line where one of the config `files` is no YAML of keys and values."""
    from projected_grpo.errors import UserError
    from projected_grpo.strict_yaml import read_mapping

    try:
        for file in files:
            read_mapping(file)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


def unlimited(*args, **kwargs):
    """Return Snakemake's parser without its default limit of jobs a second."""
    parser = get_argument_parser(*args, **kwargs)
    parser.set_defaults(max_jobs_per_timespan=None)
    return parser


if __name__ == "__main__":
    if shlex.quote(sys.executable) != sys.executable:
        # Snakemake writes it unquoted into shell commands; .venv/bin comes first on PATH.
        sys.executable = "python"
    parser = get_argument_parser()
    arguments = free_targets(sys.argv[1:], parser)
    with suppress(CliException):  # Snakemake's own start says what is wrong
        typed = parser.parse_args(arguments)
        arguments = fit_cores(arguments, typed, len(os.sched_getaffinity(0)))
        files = [CONFIG, *(typed.configfile or [])]
        if found := [file for file in files if os.path.isfile(file)]:
            check_yaml(found)
    sys.argv = ["snakemake", *arguments]
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    own = partial(tempfile.TemporaryDirectory, dir=TEMPORARY)
    workflow.tempfile = SimpleNamespace(**{**vars(tempfile), "TemporaryDirectory": own})
    cli.get_argument_parser = unlimited
    cli.main()
