# A given model on honest solutions of the problem family: the base of its runs.


rule warm:
    input:
        given=f"{given_base_path(CONFIG.model.name)}/model.safetensors",
        plan=planned("warm"),
    output:
        weights=f"{RESULTS}/models/{{model}}/base/model.safetensors",
        config=f"{RESULTS}/models/{{model}}/base/config.json",
        tokenizer=f"{RESULTS}/models/{{model}}/base/tokenizer.json",
    log:
        f"{RESULTS}/logs/warm/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/warm/{{model}}.tsv"
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0,
    params:
        seed=lambda w: seed_of_model(w.model),
        warm=CONFIG.model.warm.model_dump_json(exclude={"seed"}),
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        names=CONFIG.pool.names,
        checkpoint=f"{RESULTS}/checkpoints/models/{{model}}/warm.pt",
        sources=[FAMILY],
        code=code("warm.py", FAMILY),
    script:
        "../workflow/scripts/warm.py"
