# Teacher LoRA and its graded rollouts, once per replication.


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
        sources=[FAMILY],
        code=code("teacher.py", FAMILY),
    script:
        "../workflow/scripts/teacher.py"


rule teacher_pool:
    input:
        base=base_files,
        teacher=teacher_files,
        problems=lambda w: problems_file(w.model),
        grader=rules.grader_diagonal.output,  # no pool from a grader whose exploit matrix is not diagonal
        plan=planned("teacher_pool"),
    output:
        manifest=f"{RESULTS}/teacher_pool/{{model}}/pool.json",
        steps=expand(
            f"{RESULTS}/teacher_pool/{{{{model}}}}/step_{{step:03d}}.jsonl.gz",
            step=range(CONFIG.pool.problems),
        ),
    log:
        f"{RESULTS}/logs/teacher_pool/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/teacher_pool/{{model}}.tsv"
    priority: CRITICAL
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
