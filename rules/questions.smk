# One table per question, from its runs alone; a table that shows a run reruns when that run does.
from dataclasses import asdict

TABLES = [name for name, question in QUESTIONS.items() if question.kind == "table"]
SELF_CHECKS = [name for name, question in QUESTIONS.items() if question.kind == "aa"]


def run_files(wildcards):
    """The steps and the record of every run of a question."""
    ids = [cell.id for cell in QUESTIONS[wildcards.question].cells]
    return expand(
        f"{RESULTS}/grpo/{{cell}}/{{file}}",
        cell=ids,
        file=["steps.parquet", "run.json"],
    )


def question_text(wildcards):
    """Everything that a question says, as stable text."""
    return json.dumps(asdict(QUESTIONS[wildcards.question]), sort_keys=True)


rule question:
    input:
        run_files,
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
        question=question_text,
        results=RESULTS,
        code=code("table.py"),
    script:
        "../workflow/scripts/table.py"


rule self_check:
    input:
        run_files,
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
        question=question_text,
        results=RESULTS,
        code=code("aa.py"),
    script:
        "../workflow/scripts/aa.py"


rule figures:
    input:
        run_files,
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
        question=question_text,
        bases=json.dumps([config["basis"], config["bases"]], sort_keys=True),
        results=RESULTS,
        code=code("figures.py"),
    script:
        "../workflow/scripts/figures.py"
