# SVD of every Linear, once per model; then one basis per (pair set, knobs).


rule svd:
    input:
        base_files,
    output:
        f"{RESULTS}/models/{{model}}/svd.safetensors",
    log:
        f"{RESULTS}/logs/svd/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        machine=MACHINE,
        code=code("svd.py"),
    script:
        "../workflow/scripts/svd.py"


def basis_knobs(wildcards):
    """Extraction knobs of a basis, as text that is stable from run to run."""
    return json.dumps(cells.extraction_knobs(config, basis_name(wildcards.basis)), sort_keys=True)


def basis_pairs(wildcards):
    """The pair set's file."""
    knobs = cells.extraction_knobs(config, basis_name(wildcards.basis))
    return pair_file(knobs["pairs"], wildcards.model)


def generated_pairs(wildcards):
    """The pair set as an input, if the pipeline writes it."""
    name = cells.extraction_knobs(config, basis_name(wildcards.basis))["pairs"]
    return [pair_file(name, wildcards.model)] if name in GENERATED_PAIRS else []


rule basis:
    input:
        base=base_files,
        svd=rules.svd.output,
        pairs=generated_pairs,
    output:
        f"{RESULTS}/basis/{{model}}/{{basis}}.safetensors",
    log:
        f"{RESULTS}/logs/basis/{{model}}/{{basis}}.log",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=GPU,
    params:
        base=lambda w: base_path(w.model),
        knobs=basis_knobs,
        pairs=basis_pairs,
        digest=lambda w: pairs_digest(basis_name(w.basis)),
        seed=basis_seed,
        machine=MACHINE,
        code=code("basis.py"),
    script:
        "../workflow/scripts/basis.py"
