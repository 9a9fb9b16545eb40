# Which exploit earns what under which mode: the grader's own check, part of every build; `pages/grader.py` shows it.


rule grader_diagonal:
    input:
        plan=planned("grader_diagonal"),
    output:
        f"{RESULTS}/grader/matrix.json",
    log:
        f"{RESULTS}/logs/grader/diagonal.log",
    priority: CRITICAL
    conda:
        "../envs/analysis.yaml"
    threads: 2
    resources:
        gpu=0,
    params:
        allow_weak_sandbox=CONFIG.sandbox == "weak",
        family=CONFIG.small.family,
        names=CONFIG.pool.names,
        sources=[FAMILY],
        code=code("grader_diagonal.py", FAMILY),
    script:
        "../workflow/scripts/grader_diagonal.py"
