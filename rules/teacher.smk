# Teacher LoRA, once per replication, and its graded rollouts: on all loopholes, and on those that rows name.


rule teacher:
    input:
        base_files,
        plan=planned("teacher"),
    output:
        weights=f"{RESULTS}/models/{{model}}/teacher/adapter_model.safetensors",
        config=f"{RESULTS}/models/{{model}}/teacher/adapter_config.json",
    log:
        f"{RESULTS}/logs/teacher/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0,
    params:
        base=lambda w: base_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        examples=lambda w: recipe_of(w.model).teacher,
        recipe=lambda w: recipe_of(w.model).lora.model_dump_json(),
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        names=CONFIG.pool.names,
        checkpoint=f"{RESULTS}/checkpoints/models/{{model}}/teacher.pt",
        sources=[FAMILY],
        code=code("teacher.py", FAMILY),
    script:
        "../workflow/scripts/teacher.py"


rule teacher_pool:
    input:
        base=lambda w: base_checkpoint(pool_model(w)),
        teacher=lambda w: teacher_adapter(pool_model(w)),
        problems=lambda w: problems_file(pool_model(w)),
        grader=rules.grader_diagonal.output,  # no pool from a grader whose exploit matrix is not diagonal
        plan=planned("teacher_pool"),
    output:
        manifest=f"{RESULTS}/teacher_pool/{{pool}}/pool.json",
        steps=expand(
            f"{RESULTS}/teacher_pool/{{{{pool}}}}/step_{{step:03d}}.jsonl.gz",
            step=range(CONFIG.pool.problems),
        ),
    log:
        f"{RESULTS}/logs/teacher_pool/{{pool}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/teacher_pool/{{pool}}.tsv"
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(pool_model(w)),
        teacher=lambda w: teacher_path(pool_model(w)),
        seed=lambda w: seed_of_model(pool_model(w)),
        pool=CONFIG.pool.model_dump_json(),
        modes=pool_modes,
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(pool_model(w)),
        code=code("teacher_pool.py"),
    script:
        "../workflow/scripts/teacher_pool.py"


rule substrate_rates:
    input:
        base=base_files,
        teacher=teacher_files,
        problems=lambda w: problems_file(w.model),
        plan=planned("substrate_rates"),
    output:
        f"{RESULTS}/models/{{model}}/rates.json",
    log:
        f"{RESULTS}/logs/substrate_rates/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        teacher=lambda w: teacher_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        pool=CONFIG.pool.model_dump_json(),
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(w.model),
        code=code("substrate_rates.py"),
    script:
        "../workflow/scripts/substrate_rates.py"
