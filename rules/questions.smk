# One page per question and per stage: what it says it needs in, Markdown, numbers and figures out.
# A page that shows a run reruns when that run does, and when its own file of the library does.


rule verdict:
    input:
        runs=lambda w: wanted(CONTEXTS[w.page].run_files()),
        files=lambda w: [by_content(path) for path in page_needs(w.page)],
        plan=planned("verdict"),
    output:
        **page_files(),
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
        **page_files(),
        estimates=f"{RESULTS}/{{page}}.estimates.parquet",
    wildcard_constraints:
        page="|".join(page for page in PAGES if MODULES[page] == "question") or "none",
