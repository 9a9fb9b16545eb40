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

import json
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from launch import starts_jobs
from snakemake import cli, script, workflow
from snakemake.exceptions import CliException

get_argument_parser = cli.get_argument_parser

TEMPORARY = Path(".snakemake", "tmp").absolute()
CONFIG = "config/config.yaml"  # what the Snakefile reads by itself
CONFIG_FILES = (".yaml", ".yml", ".json")
PAIRS = ("--groups", "--group-components")  # NAME=VALUE lists whose help does not say so
LISTS = ("?", "*", "+")
STOPPED = {
    code for number in (signal.SIGINT, signal.SIGTERM) for code in (-number, 128 + number)
}  # how jobs end


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


def add_logger(arguments: list[str], typed) -> list[str]:
    """Return `arguments` with the project's own lines on the terminal, unless they ask for Snakemake's words.

    typed: `arguments` as parsed.
    """
    asked = typed.logger or typed.quiet is not None or typed.verbose or typed.printshellcmds
    if asked or not (starts_jobs(arguments) or typed.dryrun) or str(typed.mode) != "default":
        return arguments
    return ["--logger", "terminal", *arguments]


def results_of(typed) -> str:
    """Return the results folder of a call: what `--config` says, else the last config file that names one."""
    from projected_grpo.strict_yaml import read_mapping

    said = dict(word.split("=", 1) for word in typed.config or () if "=" in word)
    files = [CONFIG, *(typed.configfile or ())]
    named = [found["results"] for file in files if "results" in (found := read_mapping(file))]
    return os.path.normpath(str(said.get("results", named[-1])))


def answers(targets: list[str], seconds: float) -> None:
    """Say what the pages that were asked for answer, where they lie, and how long it took."""
    from projected_grpo.errors import UserError
    from projected_grpo.pages import terminal

    for file in map(Path, targets):
        with suppress(UserError):
            if file.suffix == ".md":
                print("", *terminal.lines(file), sep="\n", file=sys.stderr)
        if file.exists():
            figures = file.parent / "figures" / file.stem
            print(f"{file}{f', figures in {figures}' if figures.is_dir() else ''}", file=sys.stderr)
    print(f"made in {timedelta(seconds=round(seconds))}", file=sys.stderr)


def quiet(execute):
    """Return Snakemake's `ScriptBase._execute_cmd` with what a job prints put at the end of its log.

    Libraries warn and draw bars on a job's standard error; people who wait for twenty jobs want none of it. What a
    failed job printed is shown, too; one that a signal ended has nothing to tell.
    """

    def executed(self, cmd, **more):
        handle, path = tempfile.mkstemp(dir=TEMPORARY)
        os.close(handle)
        try:
            # `exec`: a shell in between would die of a signal before the job that it waits for.
            return execute(self, f"exec {cmd} > {{printed:q}} 2>&1", printed=path, **more)
        except BaseException as error:
            if getattr(error, "returncode", None) not in STOPPED:
                print(Path(path).read_text(errors="replace"), end="", file=sys.stderr)
            raise
        finally:
            printed = Path(path).read_text(errors="replace")
            if printed and self.log:
                with suppress(OSError), open(self.log[0], "a") as log:
                    log.write(f"--- printed by the job ---\n{printed}")
            os.unlink(path)

    return executed


def find_configs(arguments: list[str], files: list, typed_in: str) -> list[str]:
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


def can_be_config(path: Path) -> bool:
    """Return whether a file holds keys of a config and no others, as the schema for editors has them."""
    from projected_grpo.errors import UserError
    from projected_grpo.strict_yaml import read_mapping

    known = json.loads(Path("workflow/schemas/config.schema.json").read_text())["properties"]
    with suppress(UserError):
        return read_mapping(path).keys() <= known.keys()
    return False


def check_yaml(files: list[str]) -> None:
    """End with one line where one of the config `files` is missing or no YAML of keys and values."""
    from projected_grpo.errors import UserError, nearest
    from projected_grpo.strict_yaml import read_mapping

    try:
        for file in files:
            if not os.path.exists(file):
                there = [str(path) for path in sorted(Path("config").glob("*.y*ml")) if can_be_config(path)]
                raise UserError(f"{file}: no such config file; {nearest(file, there)}")
            read_mapping(file)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


def interrupt_once(number, _frame) -> None:
    """Raise KeyboardInterrupt at the first SIGINT alone: a second one would break off Snakemake's clean-up."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def terse(*said, **how) -> None:
    """As `print`, without Snakemake's line on the profile that every call here has."""
    if not str(said[0]).endswith("for setting default command line arguments."):
        print(*said, **how)


def check_config(words: list[str]) -> None:
    """End with one line where a word of `--config` is none of KEY=VALUE, which Snakemake answers with a traceback."""
    for word in words:
        key, equals, value = word.partition("=")
        outer, *inner = key.split(".")
        if equals and inner and all(part.isidentifier() for part in (outer, *inner)):
            nested = "".join(f"{{{part}: " for part in inner) + value + "}" * len(inner)
            raise SystemExit(
                f"error: --config {word}: a key inside another, write --config '{outer}={nested}'"
            )
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]+", key):
            raise SystemExit(
                f"error: --config {word!a:.60}, allowed: KEY=VALUE, KEY of letters, digits and _"
            )


def unlimited(*args, **kwargs):
    """Return Snakemake's parser without its default limit of jobs a second."""
    parser = get_argument_parser(*args, **kwargs)
    parser.set_defaults(max_jobs_per_timespan=None)
    return parser


if __name__ == "__main__":
    if shlex.quote(sys.executable) != sys.executable:
        # Snakemake writes it unquoted into shell commands; .venv/bin comes first on PATH.
        sys.executable = "python"
    parser, typed = get_argument_parser(), None
    arguments = free_targets(sys.argv[1:], parser)
    with suppress(CliException):  # Snakemake's own start says what is wrong
        typed = parser.parse_args(arguments)
        arguments = find_configs(arguments, typed.configfile or [], os.environ.get("PGRPO_TYPED_IN", "."))
        typed = parser.parse_args(arguments)
        check_config(typed.config or [])
        arguments = fit_cores(arguments, typed, len(os.sched_getaffinity(0)))
        if "terminal" in (arguments := add_logger(arguments, typed)):
            script.ScriptBase._execute_cmd = quiet(script.ScriptBase._execute_cmd)
            cli.print = terse
        os.environ["PGRPO_TARGETS"] = json.dumps(
            list(typed.targets)
        )  # for the Snakefile, which knows what there is
        if files := [*([CONFIG] if os.path.isfile(CONFIG) else []), *(typed.configfile or [])]:
            check_yaml(files)
    sys.argv = ["snakemake", *arguments]
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    own = partial(tempfile.TemporaryDirectory, dir=TEMPORARY)
    workflow.tempfile = SimpleNamespace(**{**vars(tempfile), "TemporaryDirectory": own})
    cli.get_argument_parser = unlimited
    signal.signal(signal.SIGINT, interrupt_once)
    began = time.monotonic()
    try:
        cli.main()
    except SystemExit as end:
        if not end.code and starts_jobs(arguments) and typed is not None:
            answers(list(typed.targets) or [f"{results_of(typed)}/Q10.md"], time.monotonic() - began)
        raise
