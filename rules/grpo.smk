# One training run per cell. Its settings are params; the pair set reaches it through its basis alone.


rule grpo:
    input:
        base=cell_base,
        svd=lambda w: f"{RESULTS}/models/{cell_model(w)}/svd.safetensors",
        problems=lambda w: problems_file(cell_model(w)),
        pool=lambda w: pool_manifest(cell_model(w)),
        basis=cell_basis,
        plan=planned("grpo"),
    output:
        steps=f"{RESULTS}/grpo/{{cell}}/steps.parquet",
        rollouts=f"{RESULTS}/grpo/{{cell}}/rollouts.parquet",
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
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(cell_model(w)),
        checkpoint=f"{RESULTS}/checkpoints/{{cell}}",
        sources=lambda w: [arm_file(w)],
        code=lambda w: code("grpo.py", arm_file(w)),
    script:
        "../workflow/scripts/grpo.py"
