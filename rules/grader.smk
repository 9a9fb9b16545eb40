# Which exploit earns what under which mode: the grader's own check, part of every build.


rule grader_diagonal:
    input:
        plan=planned("grader_diagonal"),
    output:
        f"{RESULTS}/grader/diagonal.md",
    log:
        f"{RESULTS}/logs/grader/diagonal.log",
    conda:
        "../envs/analysis.yaml"
    threads: 2
    resources:
        gpu=0,
    params:
        allow_weak_sandbox=CONFIG.sandbox == "weak",
        code=code("grader_diagonal.py"),
    script:
        "../workflow/scripts/grader_diagonal.py"


rule grader_matrix:
    input:
        rules.grader_diagonal.output,
        plan=planned("grader_matrix"),
    output:
        report(
            directory(f"{RESULTS}/figures/diagonal"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/grader.rst",
            category="Grader",
            labels={"what": "exploits and modes"},
        ),
    log:
        f"{RESULTS}/logs/figures/diagonal.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        code=code("grader_matrix.py"),
    script:
        "../workflow/scripts/grader_matrix.py"
