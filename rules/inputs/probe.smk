# What a replay depends on.
from projected_grpo.measures import beside
from projected_grpo.training.teacher_pool import found_files

PROBE = CONFIG.probe
POOLS = PROBE.pools


def replay_of(folder):
    """Model, basis file and arm of a replay's folder: `{arm}_seed{n}` is the probe's own basis."""
    if "/" in folder:
        name, basis, arm = folder.split("/")
        if name not in POOLS and name not in MODELS:
            raise SystemExit(
                f"error: probe/{folder}: {name!r} is no replication and no pool of probe.pools; "
                f"allowed: {', '.join([*MODELS, *POOLS])}"
            )
        return POOLS[name].model if name in POOLS else name, basis, arm
    arm, seed = folder.split("_seed")
    if int(seed) not in SEEDS:
        raise SystemExit(
            f"error: probe/{folder}: {seed} is no seed of the config; allowed: {', '.join(map(str, SEEDS))}"
        )
    return CONFIG.model_name(int(seed)), CONFIG.basis_file(PROBE.basis, int(seed)), arm


def replay_model(wildcards):
    """The replication whose student a replay trains."""
    return replay_of(wildcards.replay)[0]


def given_pool(wildcards):
    """The pool of `probe.pools` that a replay reads; None where it is the replication's own."""
    return POOLS.get(wildcards.replay.split("/")[0])


def replay_pool(wildcards):
    """The files of a replay's pool, all in one folder; the manifest stands for those of a replication's own."""
    given = given_pool(wildcards)
    if given is None:
        return [pool_manifest(replay_model(wildcards))]
    return [ancient(str(path)) for path in found_files(given.folder)]


def replay_settings(wildcards):
    """What decides a replay's numbers beside its files, as stable text."""
    _, basis, arm = replay_of(wildcards.replay)
    knobs, training = CONFIG.knobs(basis_name(basis)), CONFIG.grpo
    settings = {"mode": PROBE.mode, "problems": PROBE.problems}
    if given_pool(wildcards):
        # As many as from the own pool, however many it holds.
        settings["problems"] = beside.n_steps(CONFIG)
    settings |= {"arm": arm, "adapter": knobs.adapter}
    settings["use"] = knobs.use.model_dump()
    settings["training"] = training.model_dump(include={"betas", "weight_decay", "warmup", "clip"})
    settings["training"]["lr"] = training.lora_lr if knobs.adapter == "lora" else training.lr
    return json.dumps(settings, sort_keys=True)


def detector_directions(wildcards):
    """Pair sets and bases that rank rollouts, with what is used of them, as stable text."""
    said = []
    for name in CONFIG.detector.names:
        knobs = CONFIG.knobs(name)
        own = {"name": name, "pairs": pair_file(knobs.pairs, None), "digest": pairs_digest(name)}
        said.append(own | {"knobs": knobs.extraction(), "use": knobs.use.model_dump()})
    return json.dumps(said, sort_keys=True)


def detector_basis(wildcards):
    """The basis of the pair set that is asked about, on a cell's replication."""
    cell = CELLS[wildcards.cell]
    name = CONFIG.basis_file(CONFIG.detector.pairs, cell.seed)
    return f"{RESULTS}/basis/{cell.model}/{name}.safetensors"


def overlap_uses(wildcards):
    """Basis and use of each that a question's rows act along on a model."""
    return beside.uses(QUESTIONS[wildcards.question], wildcards.model, CONFIG)


def overlap_knobs(wildcards):
    """Basis -> its knobs, the reference first."""
    names = [beside.REFERENCE, *(basis for basis, _ in overlap_uses(wildcards))]
    return {name: CONFIG.knobs(name) for name in names}


def overlap_generated(wildcards):
    """The pair sets among theirs that the pipeline writes."""
    knobs = overlap_knobs(wildcards).values()
    return [pair_file(own.pairs, wildcards.model) for own in knobs if own.is_generated]


def overlap_settings(wildcards):
    """What decides the overlaps beside files, as stable text: uses, and of each basis the file and digest of its pairs."""
    uses = [{"basis": basis, "use": use.model_dump()} for basis, use in overlap_uses(wildcards)]
    knobs = overlap_knobs(wildcards).items()
    pairs = {name: (pair_file(own.pairs, wildcards.model), pairs_digest(name)) for name, own in knobs}
    return json.dumps({"uses": uses, "pairs": pairs}, sort_keys=True)
