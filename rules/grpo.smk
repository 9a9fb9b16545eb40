# One training run per cell. Its settings are params; the pair set reaches it through its basis alone.
# And the base before any of them, on the panels that each is judged on.


rule grpo:
    input:
        base=cell_base,
        svd=lambda w: f"{RESULTS}/models/{cell_model(w)}/svd.safetensors",
        problems=lambda w: problems_file(cell_model(w)),
        pool=lambda w: pool_manifest(CELLS[w.cell].pool),
        basis=cell_basis,
        generated=own_generated_pairs,
        critic=own_critic,
        plan=planned("grpo"),
    output:
        steps=f"{RESULTS}/grpo/{{cell}}/steps.parquet",
        rollouts=f"{RESULTS}/grpo/{{cell}}/rollouts.parquet",
        teacher=f"{RESULTS}/grpo/{{cell}}/teacher.parquet",
        deployed=f"{RESULTS}/grpo/{{cell}}/deployed.parquet",
        deltas=f"{RESULTS}/grpo/{{cell}}/deltas.safetensors",
        adapter=f"{RESULTS}/grpo/{{cell}}/adapter.safetensors",
        run=f"{RESULTS}/grpo/{{cell}}/run.json",
    log:
        f"{RESULTS}/logs/grpo/{{cell}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/grpo/{{cell}}.tsv"
    priority: run_priority
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        cell=lambda w: CELLS[w.cell].params(),
        model=cell_model,
        base=lambda w: base_path(cell_model(w)),
        pairs=own_pairs,
        pairs_digest=own_pairs_digest,
        pool=CONFIG.pool.model_dump_json(),
        deployed=CONFIG.deployed.model_dump_json(),
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(cell_model(w)),
        checkpoint=f"{RESULTS}/checkpoints/{{cell}}",
        critic_tokens=own_critic_tokens,
        sources=lambda w: [*own_files(w)],
        code=lambda w: code("grpo.py", *own_files(w)),
    script:
        "../workflow/scripts/grpo.py"


rule clean_run:
    input:
        base=base_files,
        svd=f"{RESULTS}/models/{{model}}/svd.safetensors",
        problems=clean_problems_file,
        plan=planned("clean_run"),
    output:
        axes=f"{RESULTS}/clean/{{model}}/axes.safetensors",
        steps=f"{RESULTS}/clean/{{model}}/steps.parquet",
    log:
        f"{RESULTS}/logs/clean_run/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        training=lambda w: CONFIG.clean_training().model_dump_json(),
        first=clean_problems_start,
        problems=CONFIG.pool.problems,
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(w.model),
        code=code("clean_run.py"),
    script:
        "../workflow/scripts/clean_run.py"


rule base_deployed:
    input:
        base=base_files,
        problems=lambda w: problems_file(w.model),
        plan=planned("base_deployed"),
    output:
        f"{RESULTS}/base/{{model}}/deployed.parquet",
    log:
        f"{RESULTS}/logs/base_deployed/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        pool=CONFIG.pool.model_dump_json(),
        deployed=CONFIG.deployed.model_dump_json(),
        max_new=CONFIG.grpo.max_new,
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(w.model),
        code=code("base_deployed.py"),
    script:
        "../workflow/scripts/base_deployed.py"


# What plain training deploys where it ends earlier: points of the frontier of training less.
rule stopped:
    input:
        base=cell_base,
        svd=lambda w: f"{RESULTS}/models/{cell_model(w)}/svd.safetensors",
        problems=lambda w: problems_file(cell_model(w)),
        deltas=f"{RESULTS}/grpo/{{cell}}/deltas.safetensors",
        plan=planned("stopped"),
    output:
        f"{RESULTS}/stopped/{{cell}}.parquet",
    log:
        f"{RESULTS}/logs/stopped/{{cell}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(cell_model(w)),
        cell=lambda w: CELLS[w.cell].params(),
        pool=CONFIG.pool.model_dump_json(),
        deployed=CONFIG.deployed.model_dump_json(),
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(cell_model(w)),
        sources=own_arm,
        code=lambda w: code("stopped.py", *own_arm(w)),
    script:
        "../workflow/scripts/stopped.py"
