# The self-taught evaluator: rollouts of each replication's vanilla run -> critic, cards, pair sets, its error.
TAUGHT = config["self_taught"]
TRAINED_CRITIC = TAUGHT["critic"] == "trained"


def vanilla_cell(model):
    """The id of the run that a replication's traces come from: vanilla at the default mix and preset."""
    cell = cells.make_cell(cells.Setting(), seed_of_model(model), config)
    return CELLS.setdefault(cell.id, cell).id


def vanilla_rollouts(model):
    """The rollouts of that run."""
    return f"{RESULTS}/grpo/{vanilla_cell(model)}/rollouts.parquet"


def critic_base(wildcards):
    """The checkpoint that a critic on this machine waits for; none for a server or a given checkpoint."""
    return (
        base_files(wildcards)
        if TRAINED_CRITIC or (TAUGHT["critic"] == "local" and not TAUGHT["model"])
        else []
    )


def critic_settings(names):
    """These settings of the `self_taught` block as stable text."""
    return json.dumps({name: TAUGHT[name] for name in names}, sort_keys=True)


rule self_taught_critic:
    input:
        rollouts=lambda w: vanilla_rollouts(w.model),
        base=base_files,
    output:
        f"{RESULTS}/self_taught/{{model}}/critic/adapter_model.safetensors",
        f"{RESULTS}/self_taught/{{model}}/critic/adapter_config.json",
    log:
        f"{RESULTS}/logs/self_taught_critic/{{model}}.log",
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=0,
    params:
        base=lambda w: base_path(w.model),
        settings=critic_settings(["training"]),
        seed=lambda w: seed_of_model(w.model),
        code=code("self_taught_critic.py"),
    script:
        "../workflow/scripts/self_taught_critic.py"


rule self_taught_rounds:
    input:
        rollouts=lambda w: vanilla_rollouts(w.model),
        base=critic_base,
        critic=lambda w: rules.self_taught_critic.output if TRAINED_CRITIC else [],
    output:
        memory=f"{RESULTS}/self_taught/{{model}}/memory.jsonl",
        cards=f"{RESULTS}/self_taught/{{model}}/cards.parquet",
        evaluations=f"{RESULTS}/self_taught/{{model}}/evaluations.parquet",
        pairs=f"{RESULTS}/self_taught/{{model}}/pairs/self_taught.yaml",
        run=f"{RESULTS}/self_taught/{{model}}/run.json",
    log:
        f"{RESULTS}/logs/self_taught_rounds/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/self_taught_rounds/{{model}}.tsv"
    conda:
        "../envs/model.yaml"
    threads: config["threads"]
    resources:
        gpu=0 if TAUGHT["critic"] == "server" else GPU,
    params:
        base=lambda w: base_path(w.model),
        settings=critic_settings(sorted(TAUGHT)),
        machine={name: MACHINE[name] for name in ("device", "dtype")},
        seed=lambda w: seed_of_model(w.model),
        journal=f"{RESULTS}/checkpoints/self_taught/{{model}}",
        code=code("self_taught_rounds.py"),
    script:
        "../workflow/scripts/self_taught_rounds.py"


rule self_taught_code:
    input:
        lambda w: vanilla_rollouts(w.model),
    output:
        f"{RESULTS}/self_taught/{{model}}/pairs/self_taught_code.yaml",
    log:
        f"{RESULTS}/logs/self_taught_code/{{model}}.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        pairs=TAUGHT["pairs"],
        code=code("self_taught_code.py"),
    script:
        "../workflow/scripts/self_taught_code.py"


rule self_taught_table:
    input:
        rollouts=[vanilla_rollouts(model) for model in MODELS],
        runs=expand(rules.self_taught_rounds.output.run, model=MODELS),
        evaluations=expand(rules.self_taught_rounds.output.evaluations, model=MODELS),
        cards=expand(rules.self_taught_rounds.output.cards, model=MODELS),
    output:
        md=report(
            f"{RESULTS}/self_taught.md",
            caption="../workflow/report/self_taught.rst",
            category="Self-taught evaluator",
        ),
        parquet=f"{RESULTS}/self_taught.parquet",
        cards=f"{RESULTS}/self_taught/cards.parquet",
    log:
        f"{RESULTS}/logs/self_taught_table.log",
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        code=code("self_taught_table.py"),
    script:
        "../workflow/scripts/self_taught_table.py"
