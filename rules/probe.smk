# The distillation probe: replays of a teacher pool against a basis, and the page with its acceptance tests.

PROBE = config["probe"]


def probe_steps():
    """How many problems of a pool have the probe's hint: the modes stand in rotation."""
    modes = config["pool"]["modes"]
    if PROBE["mode"] not in modes:
        raise UserError(
            f"config: probe.mode {PROBE['mode']!r} is no mode of the pool; allowed: {', '.join(modes)}"
        )
    problems = range(modes.index(PROBE["mode"]), config["pool"]["problems"], len(modes))
    return min(len(problems), PROBE["problems"])


def replay_of(folder):
    """Model, basis file and arm of a replay's folder: `{arm}_seed{n}` is the probe's own basis."""
    if "/" in folder:
        return folder.split("/")
    arm, seed = folder.split("_seed")
    return (
        cells.model_name(config, int(seed)),
        cells.basis_file(config, PROBE["basis"], int(seed)),
        arm,
    )


def replay_model(wildcards):
    """The replication whose student and pool a replay uses."""
    return replay_of(wildcards.replay)[0]


def replay_knobs(wildcards):
    """All knobs of a replay's basis: extraction space and how many axes are used."""
    return cells.knobs(config, basis_name(replay_of(wildcards.replay)[1]))


def replay_settings(wildcards):
    """What decides a replay's numbers beside its files, as stable text."""
    knobs, training = replay_knobs(wildcards), config["grpo"]
    settings = {key: PROBE[key] for key in ("mode", "problems")}
    settings |= {"arm": replay_of(wildcards.replay)[2], "adapter": knobs["adapter"]}
    settings["use"] = {key: knobs[key] for key in cells.USE_KNOBS}
    settings["training"] = {
        key: training[key] for key in ("betas", "weight_decay", "warmup", "clip")
    }
    settings["training"]["lr"] = training["lora_lr" if knobs["adapter"] == "lora" else "lr"]
    return json.dumps(settings, sort_keys=True)


def replay_files(folder):
    """All step files of a replay."""
    return [
        f"{RESULTS}/probe/{folder}/step_{step:03d}.jsonl.gz"
        for step in range(probe_steps())
    ]


rule replay:
    input:
        base=lambda w: (
            [f"{RESULTS}/models/{replay_model(w)}/base/model.safetensors"]
            if SMALL
            else []
        ),
        svd=lambda w: f"{RESULTS}/models/{replay_model(w)}/svd.safetensors",
        pool=lambda w: pool_files(replay_model(w)),
        basis=lambda w: "{}/basis/{}/{}.safetensors".format(
            RESULTS, *replay_of(w.replay)
        ),
    output:
        replay_files("{replay}"),
    log:
        f"{RESULTS}/logs/probe/{{replay}}.log",
    wildcard_constraints:
        replay=r"(vanilla|projected)_seed\d+|[^/]+/[^/]+/(vanilla|projected)",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(replay_model(w)),
        settings=replay_settings,
        machine=MACHINE,
        code=code("probe.py"),
    script:
        "../workflow/scripts/probe.py"


def uat_folders():
    """Folders of the replays on the acceptance page: the probe's own two, then the bases beside it."""
    seed = SEEDS[0]
    own = {"vanilla": f"vanilla_seed{seed}", "projected": f"projected_seed{seed}"}
    model = cells.model_name(config, seed)
    others = {
        name: f"{model}/{cells.basis_file(config, name, seed)}/vanilla"
        for name in PROBE["compare"]
    }
    return own, others


rule uat:
    input:
        [
            path
            for folders in uat_folders()
            for folder in folders.values()
            for path in replay_files(folder)
        ],
    output:
        md=report(
            f"{RESULTS}/probe/uat.md",
            caption="../workflow/report/uat.rst",
            category="Probe",
        ),
        trajectory=report(
            f"{RESULTS}/probe/trajectory.svg",
            caption="../workflow/report/uat.rst",
            category="Probe",
        ),
        distributions=report(
            f"{RESULTS}/probe/distributions.svg",
            caption="../workflow/report/uat.rst",
            category="Probe",
        ),
    log:
        f"{RESULTS}/logs/probe/uat.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        folders=uat_folders(),
        basis=PROBE["basis"],
        controls=[
            name
            for name in PROBE["compare"]
            if cells.knobs(config, name)["control"] != "none"
        ],
        code=code("uat.py"),
    script:
        "../workflow/scripts/uat.py"
