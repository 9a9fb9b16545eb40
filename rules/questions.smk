# One page per question and per stage: what it says it needs in, Markdown, numbers and figures out.
# A page that shows a run reruns when that run does, and when its own file of the library does.


rule verdict:
    input:
        runs=lambda w: wanted(CONTEXTS[w.page].run_files()),
        files=lambda w: [by_content(path) for path in page_needs(w.page)],
        plan=planned("verdict"),
    output:
        md=report(
            f"{RESULTS}/{{page}}.md",
            caption="../workflow/report/verdict.rst",
            category="Pages",
            labels={"page": "{page}", "what": "page"},
        ),
        parquet=f"{RESULTS}/{{page}}.parquet",
        figures=report(
            directory(f"{RESULTS}/figures/{{page}}"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/figure.rst",
            category="Pages",
            labels={"page": "{page}", "what": "{figure}"},
        ),
    log:
        f"{RESULTS}/logs/verdict/{{page}}.log",
    wildcard_constraints:
        page="|".join(page for page in PAGES if MODULES[page] != "question") or "none",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        module=lambda w: MODULES[w.page],
        asks=lambda w: CONTEXTS[w.page].text(),
        sources=lambda w: [page_file(w)],
        code=lambda w: code("verdict.py", page_file(w)),
    script:
        "../workflow/scripts/verdict.py"


use rule verdict as question with:
    input:
        runs=lambda w: wanted(CONTEXTS[w.page].run_files()),
        files=lambda w: [by_content(path) for path in wanted(page_needs(w.page))],
        plan=planned("question"),
    output:
        md=report(
            f"{RESULTS}/{{page}}.md",
            caption="../workflow/report/verdict.rst",
            category="Pages",
            labels={"page": "{page}", "what": "page"},
        ),
        parquet=f"{RESULTS}/{{page}}.parquet",
        estimates=f"{RESULTS}/{{page}}.estimates.parquet",
        figures=report(
            directory(f"{RESULTS}/figures/{{page}}"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/figure.rst",
            category="Pages",
            labels={"page": "{page}", "what": "{figure}"},
        ),
    wildcard_constraints:
        page="|".join(page for page in PAGES if MODULES[page] == "question") or "none",
