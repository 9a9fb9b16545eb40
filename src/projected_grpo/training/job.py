"""From files to a finished run folder: load what earlier rules made, train, write the results."""

import importlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from projected_grpo.arms import Given
from projected_grpo.cells.deployed import Deployed
from projected_grpo.cells.run_settings import RunSettings
from projected_grpo.digests import file_digest
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import Problem, split_problems
from projected_grpo.environment.prompts import messages_for
from projected_grpo.hub import checkpoint_digest
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.basis import Basis
from projected_grpo.method.concept import make_concept
from projected_grpo.method.extraction import extract_basis, select_pairs
from projected_grpo.method.optimizer import AdamW
from projected_grpo.method.pairs import load_pairs
from projected_grpo.method.policy import Policy, load_policy
from projected_grpo.model.batch import Batch
from projected_grpo.model.load import Tokenizer
from projected_grpo.training.checkpoint import Checkpoint
from projected_grpo.training.deployed import final_rates
from projected_grpo.training.graded import Graded
from projected_grpo.training.loop import train
from projected_grpo.training.panels import deployed_rows, make_panels
from projected_grpo.training.results import write_run
from projected_grpo.training.run import Run
from projected_grpo.training.teacher_pool import read_pool
from projected_grpo.training.tracker import write_events

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CriticFiles:
    """The critic that is the monitor: a PEFT folder on the base, and the tokens of an answer."""

    adapter: Path
    max_tokens: int


@dataclass(frozen=True)
class Sources:
    """The files a run reads; `base` is a folder or hub id, `pairs` is for those that refresh or hold a direction."""

    base: str
    svd: Path | None
    problems: Path
    pool: Path
    basis: Path | None = None
    pairs: Path | None = None
    critic: CriticFiles | None = None


@dataclass(frozen=True)
class Machine:
    """Where a run computes."""

    device: str = "cpu"
    dtype: str = "float32"
    threads: int = 1
    allow_weak_sandbox: bool = False
    verdicts: Path | None = None  # file of verdicts that all runs on one set of problems share


def step_line(row: dict, steps: int) -> str:
    """Return the log line of a step, with what it should look like where that is known."""

    def shown(name: str) -> str:
        return f"{name} {row[name]:.3f}" if row.get(name) is not None else f"{name} -"

    rates = " ".join(shown(name) for name in ("exploit_s", "solve_s", "reward", "loss"))
    line = f"step {row['step']}/{steps} {shown('hack_s')} (vanilla: should rise) {rates}"
    line += f" {shown('hack_t')} (as in the pool: about 0.9)" if row["hack_t"] is not None else ""
    line += f" {shown('grad_norm')} (never 0)"
    if row["cin"] is not None:
        line += f" {shown('cin')} (random V: {row['cin_null']:.3f})"
        line += f" {shown('cout')} (one-sided erase: 0) {shown('cout_update')}"
    return line


def run_cell(
    params: str,
    sources: Sources,
    machine: Machine,
    pool_config: dict,
    deployed: Deployed,
    folder: Path,
    checkpoint: Path,
    record: dict,
    events: Path | None = None,
) -> None:
    """Train one cell and write its folder; see `results.write_run` for the files.

    params: `Cell.params()`; record: what `run.json` shall say beside the settings (cell id, code fingerprint, log,
    ...); events: folder for TensorBoard events, if wanted; checkpoint: folder, removed when all is written.
    """
    cell = RunSettings.model_validate_json(params)
    setting = cell.setting
    log.info("%s: seed %d, code %s", record["cell"], cell.seed, record["code"])
    log.info("settings %s", params)
    policy = load_policy(setting.adapter, sources.base, sources.svd, machine.dtype, machine.device)
    names = pool_config["names"]
    problems, held_out = split_problems(
        sources.problems,
        pool_config["problems"],
        setting.modes,  # type: ignore[arg-type]
        pool_config["modes"],
        names,
    )
    panels = make_panels(held_out, setting.modes, deployed, names)  # type: ignore[arg-type]
    digests = {
        "pool": file_digest(sources.pool),
        "problems": file_digest(sources.problems),
        "basis": file_digest(sources.basis) if sources.basis else None,
        # Pairs of other arms are in the basis.
        "pairs": load_pairs(sources.pairs).digest if cell.direction else None,  # type: ignore[arg-type]
        "base": checkpoint_digest(sources.base),
        "svd": file_digest(sources.svd) if sources.svd else None,
        "critic": file_digest(sources.critic.adapter / "adapter_model.safetensors")
        if sources.critic
        else None,
    }
    with Grader(
        [*problems, *held_out], machine.threads, machine.verdicts, machine.allow_weak_sandbox
    ) as grader:
        optimizer = partial(AdamW, betas=cell.training.betas, weight_decay=cell.training.weight_decay)
        rows: Any = read_pool(sources.pool, policy.tokenizer)
        given = given_to_arm(cell, sources, policy, optimizer, problems, rows)
        run = Run(
            seed=cell.seed,
            setting=setting,
            training=cell.training,
            policy=policy,
            problems=problems,
            pool=rows,
            grader=grader,
            arm=setting.defence(setting.knobs, given),
            optimizer=optimizer(policy.theta),
            critic=load_critic(sources, machine) if sources.critic else None,
        )
        log.info("sandbox level %s, %d problems, %d held out", grader.level, len(problems), len(held_out))
        key = json.dumps([params, record["code"], digests, machine.dtype, machine.device], sort_keys=True)
        saved = Checkpoint(checkpoint, key)

        def report(row: dict) -> None:
            log.info("%s", step_line(row, cell.training.steps))

        rows = train(run, saved, report)
        final = final_rates(run) if setting.final_eval else None
        model, max_new = policy.merged(run.arm.deployed(policy.theta)), cell.training.max_new
        judged = deployed_rows(model, policy.tokenizer, panels, grader, deployed.samples, max_new, cell.seed)
    more: dict[str, Any] = {"deployed": Counter(row["panel"] for row in judged)}
    more |= {"seed": cell.seed, "settings": cell.model_dump(mode="json"), "final": final}
    more |= {"sandbox": grader.level, "inputs": digests, "device": machine.device, "dtype": machine.dtype}
    write_run(folder, policy, run.arm, rows, saved, judged, {**record, **more})
    if events:
        write_events(events, rows)
    saved.remove()


def load_critic(sources: Sources, machine: Machine) -> Callable[[Sequence[tuple[str, Mapping]]], list[bool]]:
    """Load the self-taught critic as a monitor."""
    # By name, as arms are: the evaluator's code counts in the code hash of the cells that it judges alone.
    module = importlib.import_module(f"{__package__.partition('.')[0]}.evaluator.monitor")
    own: CriticFiles = sources.critic  # type: ignore[assignment]
    where = {"device": machine.device, "dtype": machine.dtype}
    return module.CriticMonitor(sources.base, own.adapter, max_tokens=own.max_tokens, **where)


def given_to_arm(
    cell: RunSettings,
    sources: Sources,
    policy: Policy,
    optimizer: Callable[[Parameters], AdamW],
    problems: Sequence[Problem],
    pool: Mapping[str, Sequence[Graded]],
) -> Given:
    """Load what the arm of a cell needs; problems, pool: what a direction's scores are standardised on."""
    if cell.direction:
        knobs, batches = cell.direction.model_dump(), pool_batches(policy.tokenizer, problems, pool)
        control = knobs["control"]
        if cell.setting.needs.fitted:  # on the pairs of a random direction, too
            knobs["control"] = "none"
        if cell.direction.is_generated:  # written by the pipeline: as many as it found
            knobs["n_pairs"] = min(knobs["n_pairs"], len(load_pairs(sources.pairs)))  # type: ignore[arg-type]
        pairs = select_pairs(sources.pairs, knobs)  # type: ignore[arg-type]
        concept = make_concept(policy, pairs, batches, cell.setting.knob("layer"), control, cell.seed)
        return Given(cell.seed, policy, optimizer, concept=concept)
    if not sources.basis:
        return Given(cell.seed, policy, optimizer)
    stored = Basis.load(sources.basis, str(policy.base.device))
    use = cell.use.model_dump()  # type: ignore[union-attr]

    def extract(policy: Policy, step: int) -> Basis:
        # By the knobs of its basis: a generated set may have fewer pairs than asked for.
        knobs = json.loads(stored.metadata["knobs"])
        return extract_basis(policy, select_pairs(sources.pairs, knobs), knobs, cell.seed, step).used(**use)  # type: ignore[arg-type]

    return Given(cell.seed, policy, optimizer, stored.used(**use), extract=extract)


def pool_batches(
    tokenizer: Tokenizer, problems: Sequence[Problem], pool: Mapping[str, Sequence[Graded]]
) -> list[Batch]:
    """Return a batch of each problem's teacher rows under its plain prompt."""
    asked = [(messages_for(problem), pool.get(str(problem.id), ())) for problem in problems]
    prompts = [(tokenizer.encode_chat(messages), rows) for messages, rows in asked if rows]
    return [Batch([(prompt, row.tokens) for row in rows]) for prompt, rows in prompts]
