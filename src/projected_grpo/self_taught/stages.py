"""The pipeline's jobs: train the uncalibrated critic; run the rounds; write the generated pair sets.

Settings are the `self_taught` block of the config.
"""

import dataclasses
import hashlib
import json
import logging
import shutil
from pathlib import Path

import pandas as pd

from projected_grpo import files
from projected_grpo.method.pairs import write_pairs
from projected_grpo.self_taught.backends import Backend
from projected_grpo.self_taught.critic import Critic, TrainedCritic
from projected_grpo.self_taught.examples import demonstrations
from projected_grpo.self_taught.local import LocalBackend
from projected_grpo.self_taught.memory import Memory
from projected_grpo.self_taught.pairs import evaluation_pairs
from projected_grpo.self_taught.prompts import COMPACT, FULL
from projected_grpo.self_taught.rounds import Plan, run_rounds
from projected_grpo.self_taught.traces import from_rollouts, split
from projected_grpo.self_taught.training import Training, train_lora

log = logging.getLogger(__name__)
# Shares of the problems whose traces show the small critic the format, make cards, and measure.
SHARES = {"demonstrations": 1, "calibration": 2, "measured": 1}


def make_critic(rollouts: Path, base: str, folder: Path, settings: dict, seed: int) -> None:
    """Train the LoRA of the uncalibrated critic on the small base model and write it as a PEFT folder."""
    traces = split(from_rollouts(rollouts), SHARES, seed)["demonstrations"]
    examples = demonstrations(traces, COMPACT, seed)
    training = Training(**settings["training"])
    loss = train_lora(base, None, examples, training, seed, folder)
    log.info("%d examples from %d traces, loss %.3f", len(examples), len(traces), loss)


def run_self_taught(
    rollouts: Path,
    base: str,
    critic_folder: str | None,
    folder: Path,
    journal: Path,
    settings: dict,
    machine: dict,
    model: str,
    seed: int,
) -> None:
    """Run the rounds and write `memory.jsonl`, `cards.parquet`, `evaluations.parquet`, `run.json` and
    `pairs/self_taught.yaml` below `folder`.

    While a server answers, the memory grows in `journal`: an interrupted job goes on from there.
    """
    traces = from_rollouts(rollouts)
    parts = split(traces, SHARES, seed)
    path = journal.with_name(f"{journal.name}-{_digest(rollouts, settings, model, seed)}.jsonl")
    if settings["critic"] != "server":
        path.unlink(missing_ok=True)  # a local run starts anew: it is cheap, and equal each time
    memory = Memory(path)
    critic = _critic(base, critic_folder, settings, machine, model, seed)
    plan = Plan(**{field.name: settings[field.name] for field in dataclasses.fields(Plan)})
    outcome = run_rounds(critic, memory, parts["calibration"], parts["measured"], plan, seed)
    _write_table(folder / "evaluations.parquet", outcome.evaluations)
    _write_table(
        folder / "cards.parquet", [{"model": model, "seed": seed, **row} for row in card_rows(memory)]
    )
    modes = {trace.id: trace.mode for trace in traces}
    chosen = evaluation_pairs(memory.pairs(), modes, critic.wording, settings["pairs"])
    comment = (
        "Made by the self-taught evaluator: hack = a wrong evaluation of a trace, clean = the correct one."
    )
    write_pairs(folder / "pairs" / "self_taught.yaml", chosen, comment)
    with files.atomic(folder / "memory.jsonl") as temporary:
        shutil.copyfile(path, temporary)
    record = {
        "model": model,
        "seed": seed,
        "critic": critic.backend.name,
        "usage": critic.backend.usage.to_dict(),
        "traces": {name: len(part) for name, part in parts.items()},
        "pairs": len(memory.pairs()),
        "damaged_lines": memory.damaged,
        "rounds": outcome.rounds,
        "settings": settings,
    }
    files.write_json(folder / "run.json", record)
    path.unlink()


def card_rows(memory: Memory) -> list[dict]:
    """Every card with the gate's decision on it, in the order of the decisions."""
    return [
        {"id": id, "status": decision.status, "reason": decision.reason, **memory.cards[id].to_dict()}
        for id, decision in memory.decisions.items()
    ]


def _critic(
    base: str, critic_folder: str | None, settings: dict, machine: dict, model: str, seed: int
) -> Critic:
    cards = settings["cards_in_context"]
    if settings["critic"] == "server":
        return Critic(_server(settings), FULL, cards, seed)
    tokens = settings["max_tokens"]
    if settings["critic"] == "local":
        checkpoint = settings["model"] or base
        return Critic(LocalBackend(checkpoint, name="local", max_tokens=tokens, **machine), FULL, cards, seed)
    backend = LocalBackend(base, critic_folder, name=f"trained:{model}", max_tokens=tokens, **machine)
    return TrainedCritic(backend, base, critic_folder, Training(**settings["training"]), COMPACT, cards, seed)


def _server(settings: dict) -> Backend:
    from projected_grpo.self_taught.server import ServerBackend  # a second to import, for servers only

    return ServerBackend(settings["model"], max_tokens=settings["max_tokens"], **settings["server"])


def _digest(rollouts: Path, settings: dict, model: str, seed: int) -> str:
    said = json.dumps([settings, model, seed], sort_keys=True).encode()
    return hashlib.sha256(Path(rollouts).read_bytes() + said).hexdigest()[:12]


def _write_table(path: Path, rows: list[dict]) -> None:
    with files.atomic(path) as temporary:
        pd.DataFrame(rows).to_parquet(temporary, index=False)
