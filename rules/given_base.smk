# A given model, read by transformers: the canonical folder that all else reads.


rule given_base:
    input:
        given_base_files,
        plan=planned("given_base"),
    output:
        weights=f"{given_base_path('{model}')}/model.safetensors",
        config=f"{given_base_path('{model}')}/config.json",
        tokenizer=f"{given_base_path('{model}')}/tokenizer.json",
    log:
        f"{RESULTS}/logs/given_base/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0,
    params:
        base=CONFIG.model.model_dump()["base"],
        dtype=CONFIG.dtype,
        whole=CONFIG.model.check == "full",
        code=code("given_base.py"),
    script:
        "../workflow/scripts/given_base.py"
