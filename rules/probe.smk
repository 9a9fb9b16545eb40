# The distillation probe: replays of a teacher pool against a basis, and the page with its acceptance tests.


rule replay:
    input:
        base=lambda w: base_checkpoint(replay_model(w)),
        svd=lambda w: f"{RESULTS}/models/{replay_model(w)}/svd.safetensors",
        pool=lambda w: replay_pool(w)[0],  # stands for its folder
        rest_of_pool=lambda w: replay_pool(w)[1:],
        basis=lambda w: "{}/basis/{}/{}.safetensors".format(RESULTS, *replay_of(w.replay)),
        plan=planned("replay"),
    output:
        replay_files("{replay}"),
    log:
        f"{RESULTS}/logs/probe/{{replay}}.log",
    wildcard_constraints:
        replay=r"(vanilla|projected)_seed\d+|[^/]+/[^/]+/(vanilla|projected)",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(replay_model(w)),
        settings=replay_settings,
        machine=COMPUTE,
        code=code("probe.py"),
    script:
        "../workflow/scripts/probe.py"


rule uat:
    input:
        [path for folders in uat_folders() for folder in folders.values() for path in replay_files(folder)],
        plan=planned("uat"),
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
        steps=probe_steps(),
        basis=PROBE.basis,
        controls=[name for name in PROBE.compare if CONFIG.knobs(name).control != "none"],
        code=code("uat.py"),
    script:
        "../workflow/scripts/uat.py"


# The R questions: tables like every other, with a verdict, replays and measurements of their own.


rule drift:
    input:
        base=lambda w: cell_base(w),
        svd=lambda w: f"{RESULTS}/models/{cell_model(w)}/svd.safetensors",
        adapter=f"{RESULTS}/grpo/{{cell}}/adapter.safetensors",
        basis=lambda w: cell_basis(w)[0],
        plan=planned("drift"),
    output:
        f"{RESULTS}/probe/drift/{{cell}}.json",
    log:
        f"{RESULTS}/logs/probe/drift/{{cell}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(cell_model(w)),
        use=lambda w: CELLS[w.cell].settings.use.model_dump_json(),
        pairs=lambda w: pair_file(CONFIG.knobs(CELLS[w.cell].setting.basis).pairs, cell_model(w)),
        pairs_digest=lambda w: pairs_digest(CELLS[w.cell].setting.basis),
        seed=lambda w: CELLS[w.cell].seed,
        machine=COMPUTE,
        code=code("r6_drift.py"),
    script:
        "../workflow/scripts/r6_drift.py"


rule loss_overlap:
    input:
        base=base_files,
        svd=rules.svd.output[0],
        nll=f"{RESULTS}/basis/{{model}}/{{nll}}.safetensors",
        grpo=f"{RESULTS}/basis/{{model}}/{{grpo}}.safetensors",
        plan=planned("loss_overlap"),
    output:
        f"{RESULTS}/probe/{{model}}/{{nll}}-vs-{{grpo}}.json",
    log:
        f"{RESULTS}/logs/probe/{{model}}/{{nll}}-vs-{{grpo}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        use=lambda w: CONFIG.use(basis_name(w.nll)).model_dump_json(),
        pairs=lambda w: pair_file(CONFIG.knobs(basis_name(w.nll)).pairs, w.model),
        pairs_digest=lambda w: pairs_digest(basis_name(w.nll)),
        machine=COMPUTE,
        code=code("r7_overlap.py"),
    script:
        "../workflow/scripts/r7_overlap.py"


rule r5:
    input:
        runs=lambda w: question_inputs("R5"),
        plan=planned("r5"),
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
        results=lambda w: RESULTS,
        code=code("r5.py"),
    script:
        "../workflow/scripts/r5.py"


rule r6:
    input:
        runs=lambda w: question_inputs("R6"),
        replays=lambda w: twin_replays("R6", "adapter"),
        drifts=lambda w: drifts("R6"),
        plan=planned("r6"),
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
        steps=probe_steps(),
        results=lambda w: RESULTS,
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
        plan=planned("r7"),
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
        steps=probe_steps(),
        overlaps=lambda w: overlap_files("R7", "loss"),
        results=lambda w: RESULTS,
        code=code("r7.py"),
    script:
        "../workflow/scripts/r7.py"
