# The teacher's graded rollouts: on all loopholes, and on those that rows name.


rule teacher_pool:
    input:
        teacher=lambda w: teacher_checkpoint(pool_model(w)),
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
        teacher=lambda w: teacher_path(pool_model(w)),
        seed=lambda w: seed_of_model(pool_model(w)),
        pool=CONFIG.pool.model_dump_json(),
        modes=pool_modes,
        machine=MACHINE,
        portable=PORTABLE,
        verdicts=lambda w: verdicts_file(pool_model(w)),
        code=code("teacher_pool.py"),
    script:
        "../workflow/scripts/teacher_pool.py"


rule substrate_rates:
    input:
        base=base_files,
        teacher=lambda w: teacher_checkpoint(w.model),
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
