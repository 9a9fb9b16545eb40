# The report: one self-contained page from every table, figure and page, and the runs behind them.
PAGES = [
    *(["substrate.md"] if SMALL else []),
    "probe/uat.md",
    *(["self_taught.md"] if CRITIC else []),
    "grader/diagonal.md",
]
PROBES = [f"{name}.md" for name, question in QUESTIONS.items() if question.kind == "probe"]


# Steps, record and rollouts of every run of every question.
ALL_RUNS = expand(
    f"{RESULTS}/grpo/{{cell}}/{{file}}",
    cell=sorted({cell.id for question in QUESTIONS.values() for cell in question.cells}),
    file=["steps.parquet", "run.json", "rollouts.parquet"],
)


rule report:
    input:
        expand(f"{RESULTS}/{{question}}.md", question=[*TABLES, *SELF_CHECKS]),
        expand(f"{RESULTS}/figures/{{question}}", question=TABLES),
        wanted(f"{RESULTS}/{page}" for page in [*PAGES, *PROBES, "figures/diagonal"]),
        wanted(ALL_RUNS),
        plan=planned("report"),
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
        questions=json.dumps(QUESTION_TEXT, sort_keys=True),
        code=code("report.py"),
    script:
        "../workflow/scripts/report.py"
