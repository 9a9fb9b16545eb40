# The report: one self-contained page from every table, figure and page, and the runs behind them.
PAGES = ["substrate.md", "probe/uat.md", "self_taught.md", "grader/diagonal.md"]
PROBES = [
    f"{name}.md" for name, question in QUESTIONS.items() if question.kind == "probe"
]
PAGES = PAGES if SMALL else [page for page in PAGES if page != "substrate.md"]


def all_runs(wildcards):
    """Steps, record and rollouts of every run of every question."""
    names = ["steps.parquet", "run.json", "rollouts.parquet"]
    return expand(f"{RESULTS}/grpo/{{cell}}/{{file}}", cell=QUESTION_CELLS, file=names)


QUESTION_CELLS = sorted({cell.id for q in QUESTIONS.values() for cell in q.cells})


rule report:
    input:
        expand(f"{RESULTS}/{{question}}.md", question=[*TABLES, *SELF_CHECKS]),
        expand(f"{RESULTS}/figures/{{question}}", question=TABLES),
        expand(f"{RESULTS}/{{page}}", page=[*PAGES, *PROBES]),
        all_runs,
    output:
        report(
            "reports/paper.html",
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
        questions=json.dumps(
            [asdict(question) for question in QUESTIONS.values()], sort_keys=True
        ),
        results=RESULTS,
        code=code("report.py"),
    script:
        "../workflow/scripts/report.py"
