# A given adapter, merged by PEFT into the base: the teacher's canonical folder.


rule given_teacher:
    input:
        teacher=given_checkpoint(CONFIG.model.teacher, "adapter_config.json"),
        base=base_files,
        plan=planned("given_teacher"),
    output:
        weights=f"{RESULTS}/models/{{model}}/teacher/model.safetensors",
        config=f"{RESULTS}/models/{{model}}/teacher/config.json",
        tokenizer=f"{RESULTS}/models/{{model}}/teacher/tokenizer.json",
    log:
        f"{RESULTS}/logs/given_teacher/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0,
    params:
        base=lambda w: base_path(w.model),
        teacher=CONFIG.model.teacher,
        dtype=CONFIG.dtype,
        whole=CONFIG.model.check == "full",
        portable=PORTABLE,
        code=code("given_teacher.py"),
    script:
        "../workflow/scripts/given_teacher.py"
