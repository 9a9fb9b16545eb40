"""The pipeline's jobs that need a model: train the uncalibrated critic; run the rounds.

`settings` is the `self_taught` block of the config: nothing else of the evaluator reads it.
"""

import dataclasses
import hashlib
import json
import logging
import shutil
from pathlib import Path

import pandas as pd

from projected_grpo import files
from projected_grpo.evaluator.backends import endpoint
from projected_grpo.evaluator.cards import Card
from projected_grpo.evaluator.critic import Critic, TrainedCritic
from projected_grpo.evaluator.critic_lora import LoraRecipe, train_lora
from projected_grpo.evaluator.examples import demonstrations
from projected_grpo.evaluator.local import LocalBackend
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.prompts import COMPACT, wording_of
from projected_grpo.evaluator.rounds import Plan, run_rounds
from projected_grpo.evaluator.traces import from_rollouts, split

log = logging.getLogger(__name__)
# Shares of the problems whose traces show the small critic the format, make cards, and measure.
SHARES = {"demonstrations": 1, "calibration": 2, "measured": 1}
# Also where the gate saw no card at all.
CARD_COLUMNS = ["model", "seed", "id", "status", "reason", *Card.model_fields]


def make_critic(rollouts: Path, base: str, folder: Path, settings: dict, seed: int) -> None:
    """Train the LoRA of the uncalibrated critic on the small base model and write it as a PEFT folder."""
    traces = split(from_rollouts(rollouts), SHARES, seed)["demonstrations"]
    examples = demonstrations(traces, COMPACT, seed)
    loss = train_lora(base, None, examples, LoraRecipe(**settings["training"]), seed, folder)
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
    """Run the rounds and write `memory.jsonl`, `cards.parquet`, `evaluations.parquet` and `run.json` below
    `folder`.

    While a server answers, the memory grows in `journal`: an interrupted job goes on from there.
    """
    parts = split(from_rollouts(rollouts), SHARES, seed)
    path = journal.with_name(f"{journal.name}-{_digest(rollouts, settings, model, seed)}.jsonl")
    if settings["critic"] != "server":
        path.unlink(missing_ok=True)  # a local run starts anew: it is cheap, and equal each time
    memory = Memory(path)
    critic = _critic(base, critic_folder, settings, machine, model, seed)
    usage = critic.backend.usage
    usage.resume(memory.usage)
    plan = Plan(**{field.name: settings[field.name] for field in dataclasses.fields(Plan)})
    try:
        outcome = run_rounds(critic, memory, parts["calibration"], parts["measured"], plan, seed)
    finally:
        memory.note_usage(usage.counts())
    _write_table(folder / "evaluations.parquet", pd.DataFrame(outcome.evaluations))
    # Every card with the gate's decision on it, in the order of the decisions.
    cards = [
        {"model": model, "seed": seed, "id": id, **decision._asdict(), **memory.cards[id].model_dump()}
        for id, decision in memory.decisions.items()
    ]
    _write_table(folder / "cards.parquet", pd.DataFrame(cards, columns=CARD_COLUMNS))
    with files.atomic(folder / "memory.jsonl") as temporary:
        shutil.copyfile(path, temporary)
    record = {
        "model": model,
        "seed": seed,
        "critic": critic.backend.name,
        "usage": usage.to_dict(),
        "traces": {name: len(part) for name, part in parts.items()},
        "pairs": len(memory.pairs()),
        "damaged_lines": memory.damaged,
        "unanswered_before": outcome.unanswered_before,
        "rounds": outcome.rounds,
        "settings": settings,
    }
    files.write_json(folder / "run.json", record)
    path.unlink()


def _critic(
    base: str, critic_folder: str | None, settings: dict, machine: dict, model: str, seed: int
) -> Critic:
    kind, max_tokens = settings["critic"], settings["max_tokens"]
    how = (wording_of(kind), settings["cards_in_context"], seed)
    if kind == "server":
        from projected_grpo.evaluator.server import ServerBackend  # a second to import, for servers only

        return Critic(ServerBackend(settings["model"], max_tokens=max_tokens, **settings["server"]), *how)
    machine = {"max_tokens": max_tokens, **machine}
    if kind == "local":
        checkpoint = settings["model"] or base
        return Critic(LocalBackend(checkpoint, settings["adapter"], name="local", **machine), *how)
    backend = LocalBackend(base, critic_folder, name=f"trained:{model}", **machine)
    recipe = LoraRecipe(**settings["training"])
    return TrainedCritic(backend, *how, base=base, adapter=critic_folder, recipe=recipe)


def _digest(rollouts: Path, settings: dict, model: str, seed: int) -> str:
    """Names a journal by all that its answers depend on: not by how patiently the server is asked."""
    asked = {name: value for name, value in settings.items() if name != "server"}
    who = endpoint(settings["model"]) if settings["critic"] == "server" else None
    said = json.dumps([asked, who, model, seed], sort_keys=True).encode()
    return hashlib.sha256(Path(rollouts).read_bytes() + said).hexdigest()[:12]


def _write_table(path: Path, frame: pd.DataFrame) -> None:
    with files.atomic(path) as temporary:
        frame.to_parquet(temporary, index=False)
