# The report: one self-contained page from every page, its figures, and the runs behind them.


# Steps, record and rollouts of every run of every question.
ALL_RUNS = sorted({path for context in CONTEXTS.values() for path in context.run_files()})


rule report:
    input:
        expand(f"{RESULTS}/{{page}}.{{kind}}", page=PAGES, kind=["json", "md"]),
        expand(f"{RESULTS}/figures/{{page}}", page=PAGES),
        wanted(f"{RESULTS}/{page}.json" for page in MODULES if page not in PAGES),
        wanted(ALL_RUNS),
        by_content(f"{workflow.basedir}/docs/concepts.md"),  # its glossary
        plan=planned("report"),
    output:
        report(
            "reports/{report}.html",
            caption="../workflow/report/paper.rst",
            category="Report",
        ),
    log:
        f"{RESULTS}/logs/report/{{report}}.log",
    wildcard_constraints:
        report=f"paper|{Path(REPORT).stem}",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        pages=list(MODULES),
        asks=[context.text() for context in CONTEXTS.values()],
        code=code("report.py"),
    script:
        "../workflow/scripts/report.py"
