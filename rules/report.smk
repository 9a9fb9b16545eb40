# The report: one self-contained page from every page, its figures, and the runs behind them.


# Steps, record and rollouts of every run of every question.
ALL_RUNS = sorted({path for context in CONTEXTS.values() for path in context.run_files()})


rule report:
    input:
        expand(f"{RESULTS}/{{page}}.md", page=PAGES),
        expand(f"{RESULTS}/figures/{{page}}", page=PAGES),
        [f"{RESULTS}/{page}.estimates.parquet" for page in PAGES if MODULES[page] == "question"],
        wanted(f"{RESULTS}/{page}.md" for page in MODULES if page not in PAGES),
        wanted(ALL_RUNS),
        by_content(f"{HERE}/docs/concepts.md"),  # its glossary
        plan=planned("report"),
    output:
        report(
            REPORT,
            caption="../workflow/report/paper.rst",
            category="Report",
        ),
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        pages=list(MODULES),
        asks=lambda wildcards: [context.text() for context in CONTEXTS.values()],
        code=code("report.py"),
    script:
        "../workflow/scripts/report.py"


if REPORT != "reports/paper.html":  # who asks for it by that name under another config gets it

    rule report_by_its_first_name:
        input:
            REPORT,
            plan=planned("report_by_its_first_name"),
        output:
            "reports/paper.html",
        log:
            f"{RESULTS}/logs/paper.log",
        conda:
            "../envs/analysis.yaml"
        threads: 1
        resources:
            gpu=0,
        params:
            code=code("report_by_its_first_name.py"),
        script:
            "../workflow/scripts/report_by_its_first_name.py"
