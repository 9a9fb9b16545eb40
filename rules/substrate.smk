# The problems of a replication, of the family that the config names.


rule problems:
    input:
        plan=planned("problems"),
    output:
        f"{RESULTS}/models/{{model}}/problems.jsonl.gz",
    log:
        f"{RESULTS}/logs/problems/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        seed=lambda w: seed_of_model(w.model),
        modes=list(CONFIG.pool.modes),
        first=0,
        problems=2 * CONFIG.pool.problems,  # the second half is held out
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        sources=[FAMILY],
        code=code("problems.py", FAMILY),
    script:
        "../workflow/scripts/problems.py"


use rule problems as clean_problems with:
    input:
        plan=planned("clean_problems"),
    output:
        f"{RESULTS}/clean/{{model}}/problems.jsonl.gz",
    log:
        f"{RESULTS}/logs/clean_problems/{{model}}.log",
    params:
        seed=lambda w: seed_of_model(w.model),
        modes=list(CONFIG.pool.modes),
        first=2 * CONFIG.pool.problems,  # behind those that are trained on and those that are held out
        problems=CONFIG.pool.problems,
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        sources=[FAMILY],
        code=code("problems.py", FAMILY),
