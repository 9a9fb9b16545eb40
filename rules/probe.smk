# The distillation probe: replays of a teacher pool against a basis, and the page with its acceptance tests.
from dataclasses import asdict

from projected_grpo.experiment import twins

PROBE = config["probe"]


def probe_steps():
    """How many problems of a pool have the probe's hint: the modes stand in rotation."""
    modes = config["pool"]["modes"]
    if PROBE["mode"] not in modes:
        raise SystemExit(
            f"error: config: probe.mode {PROBE['mode']!r} is no mode of the pool; allowed: {', '.join(modes)}"
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
    settings["training"] = {key: training[key] for key in ("betas", "weight_decay", "warmup", "clip")}
    settings["training"]["lr"] = training["lora_lr" if knobs["adapter"] == "lora" else "lr"]
    return json.dumps(settings, sort_keys=True)


def replay_files(folder):
    """All step files of a replay."""
    return [f"{RESULTS}/probe/{folder}/step_{step:03d}.jsonl.gz" for step in range(probe_steps())]


rule replay:
    input:
        base=lambda w: ([f"{RESULTS}/models/{replay_model(w)}/base/model.safetensors"] if SMALL else []),
        svd=lambda w: f"{RESULTS}/models/{replay_model(w)}/svd.safetensors",
        pool=lambda w: pool_files(replay_model(w)),
        basis=lambda w: "{}/basis/{}/{}.safetensors".format(RESULTS, *replay_of(w.replay)),
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
    others = {name: f"{model}/{cells.basis_file(config, name, seed)}/vanilla" for name in PROBE["compare"]}
    return own, others


rule uat:
    input:
        [path for folders in uat_folders() for folder in folders.values() for path in replay_files(folder)],
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
        controls=[name for name in PROBE["compare"] if cells.knobs(config, name)["control"] != "none"],
        code=code("uat.py"),
    script:
        "../workflow/scripts/uat.py"


# The R questions: tables like every other, with a verdict, replays and measurements of their own.


def question_inputs(name):
    """The steps and the record of every run of a question."""
    return expand(
        f"{RESULTS}/grpo/{{cell}}/{{file}}",
        cell=[cell.id for cell in QUESTIONS[name].cells],
        file=["steps.parquet", "run.json"],
    )


def twin_replays(name, knob):
    """The vanilla replays of all bases of a question that stand in twin rows."""
    folders = twins.replay_folders(QUESTIONS[name], config, knob)
    return [
        path for by_seed in folders.values() for folder in by_seed.values() for path in replay_files(folder)
    ]


def drifts(name):
    """The drift of every frozen basis with content of a question."""
    cells_with_basis = [cell for cell in QUESTIONS[name].cells if cell.basis and not cell.setting.refresh]
    real = [c for c in cells_with_basis if cells.knobs(config, c.setting.basis)["control"] == "none"]
    return [f"{RESULTS}/probe/drift/{cell.id}.json" for cell in real]


def overlap_files(name, knob):
    """Pair of bases -> seed -> file below the probe's folder, for the twin rows of a question."""
    found = {}
    for pair in twins.twins(QUESTIONS[name], config, knob):
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
        [asdict(question), {basis: cells.knobs(config, basis) for basis in bases}],
        sort_keys=True,
    )


rule drift:
    input:
        base=lambda w: cell_base(w),
        svd=lambda w: f"{RESULTS}/models/{cell_model(w)}/svd.safetensors",
        adapter=f"{RESULTS}/grpo/{{cell}}/adapter.safetensors",
        basis=lambda w: cell_basis(w)[0],
    output:
        f"{RESULTS}/probe/drift/{{cell}}.json",
    log:
        f"{RESULTS}/logs/probe/drift/{{cell}}.log",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(cell_model(w)),
        knobs=lambda w: json.dumps(
            cells.extraction_knobs(config, CELLS[w.cell].setting.basis), sort_keys=True
        ),
        use=lambda w: json.dumps(CELLS[w.cell].use, sort_keys=True),
        pairs=lambda w: pair_file(cells.knobs(config, CELLS[w.cell].setting.basis)["pairs"], cell_model(w)),
        digest=lambda w: pairs_digest(CELLS[w.cell].setting.basis),
        seed=lambda w: CELLS[w.cell].seed,
        machine=MACHINE,
        code=code("r6_drift.py"),
    script:
        "../workflow/scripts/r6_drift.py"


rule loss_overlap:
    input:
        base=base_files,
        svd=rules.svd.output[0],
        nll=f"{RESULTS}/basis/{{model}}/{{nll}}.safetensors",
        grpo=f"{RESULTS}/basis/{{model}}/{{grpo}}.safetensors",
    output:
        f"{RESULTS}/probe/{{model}}/{{nll}}-vs-{{grpo}}.json",
    log:
        f"{RESULTS}/logs/probe/{{model}}/{{nll}}-vs-{{grpo}}.log",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        knobs=lambda w: json.dumps(cells.extraction_knobs(config, basis_name(w.nll)), sort_keys=True),
        use=lambda w: json.dumps(
            {key: cells.knobs(config, basis_name(w.nll))[key] for key in cells.USE_KNOBS}
        ),
        pairs=lambda w: pair_file(cells.knobs(config, basis_name(w.nll))["pairs"], w.model),
        digest=lambda w: pairs_digest(basis_name(w.nll)),
        machine=MACHINE,
        code=code("r7_overlap.py"),
    script:
        "../workflow/scripts/r7_overlap.py"


rule r5:
    input:
        runs=lambda w: question_inputs("R5"),
    output:
        md=report(
            f"{RESULTS}/R5.md",
            caption="../workflow/report/probe_question.rst",
            category="Questions",
            labels={"question": "R5", "what": "table and verdict"},
        ),
        parquet=f"{RESULTS}/R5.parquet",
        figures=report(
            directory(f"{RESULTS}/figures/R5"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/probe_question.rst",
            category="Questions",
            labels={"question": "R5", "what": "{figure}"},
        ),
    log:
        f"{RESULTS}/logs/question/R5.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        name="R5",
        question=lambda w: probe_question_text("R5"),
        results=RESULTS,
        code=code("r5.py"),
    script:
        "../workflow/scripts/r5.py"


rule r6:
    input:
        runs=lambda w: question_inputs("R6"),
        replays=lambda w: twin_replays("R6", "adapter"),
        drifts=lambda w: drifts("R6"),
    output:
        md=report(
            f"{RESULTS}/R6.md",
            caption="../workflow/report/probe_question.rst",
            category="Questions",
            labels={"question": "R6", "what": "table and verdict"},
        ),
        parquet=f"{RESULTS}/R6.parquet",
        figures=report(
            directory(f"{RESULTS}/figures/R6"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/probe_question.rst",
            category="Questions",
            labels={"question": "R6", "what": "{figure}"},
        ),
    log:
        f"{RESULTS}/logs/question/R6.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        name="R6",
        question=lambda w: probe_question_text("R6"),
        results=RESULTS,
        code=code("r6.py"),
    script:
        "../workflow/scripts/r6.py"


rule r7:
    input:
        runs=lambda w: question_inputs("R7"),
        replays=lambda w: twin_replays("R7", "loss"),
        overlaps=lambda w: [
            f"{RESULTS}/probe/{path}"
            for by_seed in overlap_files("R7", "loss").values()
            for path in by_seed.values()
        ],
    output:
        md=report(
            f"{RESULTS}/R7.md",
            caption="../workflow/report/probe_question.rst",
            category="Questions",
            labels={"question": "R7", "what": "table and verdict"},
        ),
        parquet=f"{RESULTS}/R7.parquet",
        figures=report(
            directory(f"{RESULTS}/figures/R7"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/probe_question.rst",
            category="Questions",
            labels={"question": "R7", "what": "{figure}"},
        ),
    log:
        f"{RESULTS}/logs/question/R7.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        name="R7",
        question=lambda w: probe_question_text("R7"),
        overlaps=lambda w: overlap_files("R7", "loss"),
        results=RESULTS,
        code=code("r7.py"),
    script:
        "../workflow/scripts/r7.py"
