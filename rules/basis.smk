# SVD of every Linear, once per model; then one basis per (pair set, knobs).


rule svd:
    input:
        base_files,
        plan=planned("svd"),
    output:
        f"{RESULTS}/models/{{model}}/svd.safetensors",
    log:
        f"{RESULTS}/logs/svd/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        machine=COMPUTE,
        code=code("svd.py"),
    script:
        "../workflow/scripts/svd.py"


rule basis:
    input:
        base=base_files,
        svd=rules.svd.output,
        pairs=generated_pairs,
        plan=planned("basis"),
    output:
        f"{RESULTS}/basis/{{model}}/{{basis}}.safetensors",
    log:
        f"{RESULTS}/logs/basis/{{model}}/{{basis}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        knobs=basis_knobs,
        pairs=basis_pairs,
        pairs_digest=lambda w: pairs_digest(basis_name(w.basis)),
        seed=basis_seed,
        machine=COMPUTE,
        code=code("basis.py"),
    script:
        "../workflow/scripts/basis.py"
