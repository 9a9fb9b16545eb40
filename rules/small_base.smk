# The embedded default's own base, trained once per replication.


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
