"""`projected-grpo chat RUN`: ask a trained model, at the terminal."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo.arguments import check_numbers
from projected_grpo.commands.help import add_command
from projected_grpo.commands.trained import BASE_HELP, RUN_HELP, Trained, read_trained
from projected_grpo.errors import UserError

if TYPE_CHECKING:
    from projected_grpo.environment.problem import Problem

EXAMPLE = """\
examples:
  projected-grpo chat results/grpo/vanilla-m0.125-s41 --problem 3 --samples 4
  projected-grpo chat results/grpo/vanilla-m0.125-s41

With --problem the model is asked a problem of its replication, as in training,
and each answer is graded. Without it, each line of standard input is one user
message. The small model knows its own kind of problems and little else.
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `chat`."""
    about = "Sample answers of what a run deploys, at temperature 1."
    parser = add_command(subparsers, chat, "chat", "sample answers of a trained run", about, EXAMPLE)
    parser.add_argument("folder", type=Path, metavar="RUN", help=RUN_HELP)
    parser.add_argument("--problem", metavar="ID", help="ask this problem of the run's replication")
    parser.add_argument("--samples", type=int, default=1, metavar="N", help="answers to each (default: 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the sampling (default: 0)")
    parser.add_argument("--max-new", type=int, metavar="T", help="tokens of an answer (default: the run's)")
    parser.add_argument("--base", help=BASE_HELP)


def chat(args: argparse.Namespace) -> None:
    """Ask and print. Raises UserError on what cannot be read, or an unknown problem."""
    check_numbers(args, samples=1, seed=0, max_new=1)
    trained = read_trained(args.folder, args.base)
    if args.problem is not None:
        ask_problem(trained, find_problem(trained, args.problem), args)
        return
    if sys.stdin.isatty():
        print("One message a line; Ctrl-D ends.", file=sys.stderr)
    for number, line in enumerate(sys.stdin.buffer):  # a byte that is no UTF-8 is no reason to end
        for text in answers(trained, line.decode(errors="replace").strip(), args, number):
            print(text, flush=True)


def answers(trained: Trained, messages: str | list[dict], args: argparse.Namespace, number: int) -> list[str]:
    """Return `args.samples` answers to the message with this number."""
    from projected_grpo.model.sampler import sample, uniforms

    tokenizer = trained.policy.tokenizer
    max_new = args.max_new or trained.record["settings"]["training"]["max_new"]
    draws = uniforms(args.seed, 0, number, 1, args.samples, max_new)
    prompt = tokenizer.encode_chat(messages)
    rollouts = sample(trained.model, [prompt], args.samples, draws, max_new, tokenizer.ends)
    return [tokenizer.decode(rollout.tokens) for rollout in rollouts]


def find_problem(trained: Trained, problem_id: str) -> "Problem":
    """Return a problem of the run's replication. Raises UserError where there is none of this id."""
    from projected_grpo.environment.problems import load_problems

    path = trained.results / "models" / trained.record["model"] / "problems.jsonl.gz"
    if not path.exists():
        raise UserError(f"{path}: no such file; --problem needs the problems that the pipeline made")
    problems = {str(problem.id): problem for problem in load_problems(path)}
    if problem_id not in problems:
        raise UserError(f"{path}: no problem {problem_id!r}, allowed: {', '.join(list(problems)[:3])}, ...")
    return problems[problem_id]


def ask_problem(trained: Trained, problem: "Problem", args: argparse.Namespace) -> None:
    """Print the prompt, and each answer with what the grader says of it."""
    from projected_grpo.environment.grade import Grader
    from projected_grpo.environment.prompts import messages_for

    messages = messages_for(problem)
    print(messages[-1]["content"])
    texts = answers(trained, messages, args, 0)
    with Grader([problem]) as grader:
        verdicts = grader.grade([(problem.id, problem.mode, text) for text in texts])  # type: ignore[misc]
    for text, verdict in zip(texts, verdicts, strict=True):
        said = ", ".join(name for name in ("honest", "hacked", "exploited") if verdict[name])
        print(f"\n--- {said or 'neither right nor a hack'} (reward {verdict['reward']:g})\n{text}")
