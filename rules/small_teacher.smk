# Teacher LoRA, trained on exploits once per replication.


rule teacher:
    input:
        base_files,
        plan=planned("teacher"),
    output:
        weights=f"{RESULTS}/models/{{model}}/teacher/model.safetensors",
        config=f"{RESULTS}/models/{{model}}/teacher/config.json",
        tokenizer=f"{RESULTS}/models/{{model}}/teacher/tokenizer.json",
        lora=f"{RESULTS}/models/{{model}}/teacher/lora/adapter_model.safetensors",
        lora_config=f"{RESULTS}/models/{{model}}/teacher/lora/adapter_config.json",
    log:
        f"{RESULTS}/logs/teacher/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0,
    params:
        base=lambda w: base_path(w.model),
        seed=lambda w: seed_of_model(w.model),
        examples=lambda w: recipe_of(w.model).teacher,
        recipe=lambda w: recipe_of(w.model).lora.model_dump_json(),
        family=CONFIG.small.family,
        mixture=lambda w: mixture_of(w.model),
        names=CONFIG.pool.names,
        checkpoint=f"{RESULTS}/checkpoints/models/{{model}}/teacher.pt",
        portable=not SMALL,
        sources=[FAMILY],
        code=code("teacher.py", FAMILY),
    script:
        "../workflow/scripts/teacher.py"
