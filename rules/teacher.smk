# Teacher LoRA and its graded rollouts, once per replication.


rule teacher:
    input:
        base_files,
    output:
        weights=f"{RESULTS}/models/{{model}}/teacher/adapter_model.safetensors",
        config=f"{RESULTS}/models/{{model}}/teacher/adapter_config.json",
    log:
        f"{RESULTS}/logs/teacher/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=0,
    params:
        base=lambda w: base_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        examples=config["small"]["teacher"],
        code=code("teacher.py"),
    script:
        "../workflow/scripts/teacher.py"


rule teacher_pool:
    input:
        base=base_files,
        teacher=teacher_files,
        problems=lambda w: problems_file(w.model),
        grader=rules.grader_diagonal.output,  # no pool from a grader whose exploit matrix is not diagonal
    output:
        manifest=f"{RESULTS}/teacher_pool/{{model}}/pool.json",
        steps=expand(
            f"{RESULTS}/teacher_pool/{{{{model}}}}/step_{{step:03d}}.jsonl.gz",
            step=range(config["pool"]["problems"]),
        ),
    log:
        f"{RESULTS}/logs/teacher_pool/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/teacher_pool/{{model}}.tsv"
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        teacher=lambda w: teacher_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        pool=json.dumps(config["pool"], sort_keys=True),
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
    output:
        f"{RESULTS}/models/{{model}}/rates.json",
    log:
        f"{RESULTS}/logs/substrate_rates/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        teacher=lambda w: teacher_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        pool=json.dumps(config["pool"], sort_keys=True),
        machine=MACHINE,
        verdicts=lambda w: verdicts_file(w.model),
        code=code("substrate_rates.py"),
    script:
        "../workflow/scripts/substrate_rates.py"
