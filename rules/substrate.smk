# The embedded default's own model: problems, tokenizer and base, once per replication.


rule problems:
    input:
        plan=planned("problems"),
    output:
        f"{RESULTS}/models/{{model}}/problems.jsonl.gz",
    log:
        f"{RESULTS}/logs/problems/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        seed=lambda w: seed_of_model(w.model),
        modes=list(CONFIG.pool.modes),
        first=0,
        problems=2 * CONFIG.pool.problems,  # the second half is held out
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        sources=[FAMILY],
        code=code("problems.py", FAMILY),
    script:
        "../workflow/scripts/problems.py"


use rule problems as clean_problems with:
    input:
        plan=planned("clean_problems"),
    output:
        f"{RESULTS}/clean/{{model}}/problems.jsonl.gz",
    log:
        f"{RESULTS}/logs/clean_problems/{{model}}.log",
    params:
        seed=lambda w: seed_of_model(w.model),
        modes=list(CONFIG.pool.modes),
        first=2 * CONFIG.pool.problems,  # behind those that are trained on and those that are held out
        problems=CONFIG.pool.problems,
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        sources=[FAMILY],
        code=code("problems.py", FAMILY),


rule base:
    input:
        plan=planned("base"),
    output:
        weights=f"{RESULTS}/models/{{model}}/base/model.safetensors",
        config=f"{RESULTS}/models/{{model}}/base/config.json",
        tokenizer=f"{RESULTS}/models/{{model}}/base/tokenizer.json",
    log:
        f"{RESULTS}/logs/base/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/base/{{model}}.tsv"
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0,
    params:
        seed=lambda w: seed_of_model(w.model),
        examples=lambda w: recipe_of(w.model).base,
        recipe=lambda w: recipe_of(w.model).recipe.model_dump_json(),
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        link=lambda w: link_of(w.model),
        checkpoint=f"{RESULTS}/checkpoints/models/{{model}}/base.pt",
        sources=[FAMILY],
        code=code("base.py", FAMILY),
    script:
        "../workflow/scripts/base.py"
