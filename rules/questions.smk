# One table per question, from its runs alone; a table that shows a run reruns when that run does.

TABLES = [name for name, question in QUESTIONS.items() if question.kind == "table"]
SELF_CHECKS = [name for name, question in QUESTIONS.items() if question.kind == "aa"]


# The steps and the record of every run of a question, and everything that it says as stable text.
RUN_FILES = {
    name: expand(
        f"{RESULTS}/grpo/{{cell}}/{{file}}",
        cell=[cell.id for cell in question.cells],
        file=["steps.parquet", "run.json"],
    )
    for name, question in QUESTIONS.items()
}
QUESTION_TEXT = {name: question.text() for name, question in QUESTIONS.items()}


rule question:
    input:
        lambda w: wanted(RUN_FILES[w.question]),
        plan=planned("question"),
    output:
        md=report(
            f"{RESULTS}/{{question}}.md",
            caption="../workflow/report/question.rst",
            category="Questions",
            labels={"question": "{question}", "what": "table"},
        ),
        parquet=f"{RESULTS}/{{question}}.parquet",
    log:
        f"{RESULTS}/logs/question/{{question}}.log",
    wildcard_constraints:
        question="|".join(TABLES),
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        question=lambda w: QUESTION_TEXT[w.question],
        code=code("table.py"),
    script:
        "../workflow/scripts/table.py"


rule self_check:
    input:
        lambda w: wanted(RUN_FILES[w.question]),
        plan=planned("self_check"),
    output:
        md=report(
            f"{RESULTS}/{{question}}.md",
            caption="../workflow/report/self_check.rst",
            category="Questions",
            labels={"question": "{question}", "what": "the pipeline against itself"},
        ),
        parquet=f"{RESULTS}/{{question}}.parquet",
    log:
        f"{RESULTS}/logs/question/{{question}}.log",
    wildcard_constraints:
        question="|".join(SELF_CHECKS) or "none",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        question=lambda w: QUESTION_TEXT[w.question],
        code=code("aa.py"),
    script:
        "../workflow/scripts/aa.py"


rule figures:
    input:
        lambda w: wanted(RUN_FILES[w.question]),
        plan=planned("figures"),
    output:
        report(
            directory(f"{RESULTS}/figures/{{question}}"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/figure.rst",
            category="Questions",
            labels={"question": "{question}", "what": "{figure}"},
        ),
    log:
        f"{RESULTS}/logs/figures/{{question}}.log",
    wildcard_constraints:
        question="|".join(TABLES),
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        question=lambda w: QUESTION_TEXT[w.question],
        bases=CONFIG.model_dump_json(include={"basis", "bases"}, exclude_unset=True),
        code=code("figures.py"),
    script:
        "../workflow/scripts/figures.py"
