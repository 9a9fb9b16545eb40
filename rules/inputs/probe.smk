# Which replays, bases and runs the probe's pages need.
from projected_grpo.verdicts import twins
from projected_grpo.training.teacher_pool import found_files

PROBE = CONFIG.probe
POOLS = PROBE.pools


def probe_steps():
    """How many problems of a pool have the probe's hint: the modes stand in rotation."""
    modes = CONFIG.pool.modes
    problems = range(modes.index(PROBE.mode), CONFIG.pool.problems, len(modes))
    return min(len(problems), PROBE.problems)


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
    return (
        CONFIG.model_name(int(seed)),
        CONFIG.basis_file(PROBE.basis, int(seed)),
        arm,
    )


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


def replay_knobs(wildcards):
    """All knobs of a replay's basis: extraction space and how many axes are used."""
    return CONFIG.knobs(basis_name(replay_of(wildcards.replay)[1]))


def replay_settings(wildcards):
    """What decides a replay's numbers beside its files, as stable text."""
    knobs, training = replay_knobs(wildcards), CONFIG.grpo
    settings = {"mode": PROBE.mode, "problems": PROBE.problems}
    if given_pool(wildcards):
        settings["problems"] = probe_steps()  # as many as from the own pool, however many it holds
    settings |= {"arm": replay_of(wildcards.replay)[2], "adapter": knobs.adapter}
    settings["use"] = knobs.use.model_dump()
    settings["training"] = training.model_dump(include={"betas", "weight_decay", "warmup", "clip"})
    settings["training"]["lr"] = training.lora_lr if knobs.adapter == "lora" else training.lr
    return json.dumps(settings, sort_keys=True)


def replay_files(folder):
    """All step files of a replay."""
    return [f"{RESULTS}/probe/{folder}/step_{step:03d}.jsonl.gz" for step in range(probe_steps())]


def uat_folders():
    """Folders of the replays on the acceptance page: the probe's own two, then the bases beside it."""
    seed = SEEDS[0]
    own = {"vanilla": f"vanilla_seed{seed}", "projected": f"projected_seed{seed}"}
    model = CONFIG.model_name(seed)
    others = {name: f"{model}/{CONFIG.basis_file(name, seed)}/vanilla" for name in PROBE.compare}
    return own, others


def question_inputs(name):
    """The steps and the record of every run of a question."""
    return expand(
        f"{RESULTS}/grpo/{{cell}}/{{file}}",
        cell=[cell.id for cell in QUESTIONS[name].cells],
        file=["steps.parquet", "run.json"],
    )


def twin_replays(name, knob):
    """The vanilla replays of all bases of a question that stand in twin rows."""
    folders = twins.replay_folders(QUESTIONS[name], CONFIG, knob)
    return [
        path for by_seed in folders.values() for folder in by_seed.values() for path in replay_files(folder)
    ]


def drifts(name):
    """The drift of every frozen basis with content of a question."""
    cells_with_basis = [
        cell for cell in QUESTIONS[name].cells if cell.basis and not cell.setting.knob("refresh")
    ]
    real = [c for c in cells_with_basis if CONFIG.knobs(c.setting.basis).control == "none"]
    return [f"{RESULTS}/probe/drift/{cell.id}.json" for cell in real]


def overlap_files(name, knob):
    """Pair of bases -> seed -> file below the probe's folder, for the twin rows of a question."""
    found = {}
    for pair in twins.twins(QUESTIONS[name], CONFIG, knob):
        title = f"{pair.reference.setting.basis} and {pair.other.setting.basis}"
        both = zip(pair.reference.cells, pair.other.cells)
        paths = {f"{a.model}/{a.basis}-vs-{b.basis}.json": str(a.seed) for a, b in both}
        found[title] = {seed: path for path, seed in paths.items()}
    return found


def probe_question_text(name):
    """Everything that an R question says, and the knobs of its bases, as stable text."""
    question = QUESTIONS[name]
    bases = sorted({row.setting.basis for row in question.rows if row.setting.basis})
    return json.dumps(
        [question.text(), {basis: CONFIG.knobs(basis).model_dump() for basis in bases}],
        sort_keys=True,
    )
