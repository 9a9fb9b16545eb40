"""The pipeline's jobs that need a model: train the uncalibrated critic; run the rounds.

`settings` is the `self_taught` block of the config: nothing else of the evaluator reads it.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

from projected_grpo import files
from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.devices import claim
from projected_grpo.evaluator.backends import Usage, endpoint
from projected_grpo.evaluator.cards import READ, Card
from projected_grpo.evaluator.critic import Critic, TrainedCritic
from projected_grpo.evaluator.critic_lora import train_lora
from projected_grpo.evaluator.examples import demonstrations
from projected_grpo.evaluator.local import LocalBackend
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.prompts import COMPACT, wording_of
from projected_grpo.evaluator.rounds import run_rounds
from projected_grpo.evaluator.traces import Trace, from_rollouts, split
from projected_grpo.model.given import find, read_by_others, read_model
from projected_grpo.model.given_adapter import read_adapter
from projected_grpo.parquet import write_parquet

log = logging.getLogger(__name__)
# Shares of the problems whose traces show the small critic the format, make cards, and measure.
SHARES = {"demonstrations": 1, "calibration": 2, "measured": 1}
# Also where the gate saw no card at all.
CARD_COLUMNS = ["model", "seed", "id", "status", "reason", *Card.model_fields, *READ]


def parts_of(rollouts: Sequence[Path], seed: int, alike: bool) -> dict[str, list[Trace]]:
    """Return the traces of some runs dealt out by problem.

    alike: the critic learns from those of the first run alone, and is measured on all of them as any other.
    """
    parts = split(from_rollouts(*rollouts), SHARES, seed)
    if alike:
        first = {trace.id for trace in from_rollouts(rollouts[0])}
        for name in ("demonstrations", "calibration"):
            parts[name] = [trace for trace in parts[name] if trace.id in first]
    return parts


def make_critic(
    rollouts: Sequence[Path], base: str, folder: Path, settings: SelfTaught, seed: int, alike: bool = False
) -> None:
    """Train the LoRA of the uncalibrated critic on a small base model and write it as a PEFT folder."""
    traces = parts_of(rollouts, seed, alike)["demonstrations"]
    examples = demonstrations(traces, COMPACT, seed)
    loss = train_lora(base, None, examples, settings.training, seed, folder)
    log.info("%d examples from %d traces, loss %.3f", len(examples), len(traces), loss)


def run_self_taught(
    rollouts: Sequence[Path],
    base: str,
    critic_folder: str | None,
    folder: Path,
    journal: Path,
    settings: SelfTaught,
    machine: dict,
    model: str,
    seed: int,
    alike: bool = False,
) -> Path:
    """Run the rounds and write `memory.jsonl`, `cards.parquet`, `evaluations.parquet` and `run.json` below
    `folder`; of a critic that was trained, its last weights, too, in the PEFT folder `calibrated`.

    While a server answers, the memory grows in `journal`: an interrupted job goes on from there. Return its file, which
    is to stay until the job's record stands.
    """
    parts = parts_of(rollouts, seed, alike)
    path = journal.with_name(f"{journal.name}-{_digest(rollouts, settings, model, seed)}.jsonl")
    if settings.critic != "server":
        path.unlink(missing_ok=True)  # a local run starts anew: it is cheap, and equal each time
    memory = Memory(path)
    critic = _critic(base, critic_folder, settings, machine, model, seed)
    usage = critic.backend.usage = Usage(**memory.usage)
    try:
        outcome = run_rounds(critic, memory, parts, settings, seed)
    finally:
        memory.note_usage(vars(usage))
    write_parquet(folder / "evaluations.parquet", outcome.evaluations)
    # Every card with the gate's decision on it, in the order of the decisions.
    cards = [
        {"model": model, "seed": seed, "id": id, **decision._asdict(), **memory.cards[id].model_dump()}
        | {name: getattr(memory.cards[id], name) for name in READ}
        for id, decision in memory.decisions.items()
    ]
    write_parquet(folder / "cards.parquet", cards, CARD_COLUMNS)
    with files.atomic(folder / "memory.jsonl") as temporary:
        shutil.copyfile(path, temporary)
    record = {
        "model": model,
        "seed": seed,
        "critic": critic.backend.name,
        "usage": {**vars(usage), "cost": _cost(usage, settings)},
        "traces": {name: len(part) for name, part in parts.items()},
        "pairs": len(memory.pairs()),
        "damaged_lines": memory.damaged,
        "unanswered_before": outcome.unanswered_before,
        "rounds": outcome.rounds,
        "settings": settings.model_dump(mode="json", exclude={"pairs", "grid"}),
    }
    files.write_json(folder / "run.json", record)
    if isinstance(critic, TrainedCritic):
        critic.save(folder / "calibrated")
    return path


def _critic(
    base: str, critic_folder: str | None, settings: SelfTaught, machine: dict, model: str, seed: int
) -> Critic:
    how = (wording_of(settings.critic), settings.cards_in_context, seed)
    if settings.critic == "server":
        from projected_grpo.evaluator.server import ServerBackend  # a second to import, for servers only

        return Critic(ServerBackend(settings.model, settings.server, settings.max_tokens), *how)
    machine = {"max_tokens": settings.max_tokens, **machine}
    if settings.critic == "local":
        return Critic(local_critic(settings.model or base, settings.adapter, machine), *how)
    backend = LocalBackend(base, critic_folder, name=f"trained:{model}", **machine)
    return TrainedCritic(backend, *how, base=base, adapter=critic_folder, recipe=settings.training)  # type: ignore[arg-type]


def local_critic(model: str, adapter: str | None, machine: dict) -> LocalBackend:
    """Return a given critic as transformers and PEFT have it, once it was read by way of the door.

    Raises UserError, one line, for what they would fill in or leave out, and for what is no checkpoint or adapter.
    """
    if machine["device"] == "cuda":
        claim()  # before a quantised model asks CUDA what it can do
    with read_by_others(model):
        folder = find(model, "config.json")
        read = read_model({"pretrained_model_name_or_path": str(folder)}, model, as_it_is=True)
        if adapter:
            above = find(adapter, "adapter_config.json")
            read, adapter = read_adapter(read, above, as_it_is=True), str(above)
        del read  # before the backend reads its own
        return LocalBackend(str(folder), adapter, name="local", **machine)


def _digest(rollouts: Sequence[Path], settings: SelfTaught, model: str, seed: int) -> str:
    """Names a journal by all that its answers depend on: not by how patiently the server is asked."""
    asked = settings.model_dump(mode="json", exclude={"server", "pairs", "grid"})
    who = endpoint(settings.model) if settings.critic == "server" else None
    said = json.dumps([asked, who, model, seed], sort_keys=True).encode()
    return hashlib.sha256(b"".join(path.read_bytes() for path in rollouts) + said).hexdigest()[:12]


def _cost(usage: Usage, settings: SelfTaught) -> float | None:
    """In whatever currency the prices of a million tokens are; null without them."""
    price_in, price_out = settings.server.price_in, settings.server.price_out
    if settings.critic != "server" or price_in is None or price_out is None:
        return None
    return (usage.tokens_in * price_in + usage.tokens_out * price_out) / 1e6
