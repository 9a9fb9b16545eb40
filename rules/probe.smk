# The distillation probe: replays of a teacher pool against a basis. Its pages are in src/projected_grpo/pages.


rule replay:
    input:
        base=lambda w: base_checkpoint(replay_model(w)),
        svd=lambda w: f"{RESULTS}/models/{replay_model(w)}/svd.safetensors",
        pool=lambda w: replay_pool(w)[0],  # stands for its folder
        rest_of_pool=lambda w: replay_pool(w)[1:],
        basis=lambda w: "{}/basis/{}/{}.safetensors".format(RESULTS, *replay_of(w.replay)),
        plan=planned("replay"),
    output:
        expand(f"{RESULTS}/{{file}}", file=beside.replay_files("{replay}", CONFIG)),
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


# What the R questions measure on finished runs and on bases.


rule drift:
    input:
        base=cell_base,
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
        use=lambda w: CELLS[w.cell].use.model_dump_json(),
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
        use=lambda w: CONFIG.knobs(basis_name(w.nll)).use.model_dump_json(),
        pairs=lambda w: pair_file(CONFIG.knobs(basis_name(w.nll)).pairs, w.model),
        pairs_digest=lambda w: pairs_digest(basis_name(w.nll)),
        machine=COMPUTE,
        code=code("r7_overlap.py"),
    script:
        "../workflow/scripts/r7_overlap.py"


rule basis_overlaps:
    input:
        base=base_files,
        svd=rules.svd.output[0],
        bases=lambda w: [f"{RESULTS}/basis/{w.model}/{name}.safetensors" for name in overlap_knobs(w)],
        generated=overlap_generated,
        plan=planned("basis_overlaps"),
    output:
        f"{RESULTS}/probe/overlaps/{{question}}/{{model}}.json",
    log:
        f"{RESULTS}/logs/probe/overlaps/{{question}}/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        settings=overlap_settings,
        machine=COMPUTE,
        code=code("overlaps.py"),
    script:
        "../workflow/scripts/overlaps.py"


# How well directions tell the hacks of a finished run (Q18).


rule detector:
    input:
        base=cell_base,
        svd=lambda w: f"{RESULTS}/models/{cell_model(w)}/svd.safetensors",
        problems=lambda w: problems_file(cell_model(w)),
        rollouts=f"{RESULTS}/grpo/{{cell}}/rollouts.parquet",
        deltas=f"{RESULTS}/grpo/{{cell}}/deltas.safetensors",
        basis=detector_basis,
        plan=planned("detector"),
    output:
        f"{RESULTS}/detector/{{cell}}.parquet",
    log:
        f"{RESULTS}/logs/detector/{{cell}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(cell_model(w)),
        cell=lambda w: CELLS[w.cell].params(),
        directions=detector_directions,
        random=CONFIG.detector.random,
        pool=CONFIG.pool.model_dump_json(),
        machine=COMPUTE,
        sources=own_arm,
        code=lambda w: code("detector.py", *own_arm(w)),
    script:
        "../workflow/scripts/detector.py"
