# The self-taught evaluator: rollouts of each replication -> critic, cards, pair sets, its error.


rule self_taught_critic:
    input:
        base=base_files,
        rollouts=lambda w: traced_rollouts(w.model),
        plan=planned("self_taught_critic"),
    output:
        f"{RESULTS}/self_taught/{{model}}/critic/adapter_model.safetensors",
        f"{RESULTS}/self_taught/{{model}}/critic/adapter_config.json",
    log:
        f"{RESULTS}/logs/self_taught_critic/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
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
        base=critic_base,
        rollouts=lambda w: traced_rollouts(w.model),
        critic=lambda w: rules.self_taught_critic.output if TRAINED_CRITIC else [],
        plan=planned("self_taught_rounds"),
    output:
        memory=f"{RESULTS}/self_taught/{{model}}/memory.jsonl",
        cards=f"{RESULTS}/self_taught/{{model}}/cards.parquet",
        evaluations=f"{RESULTS}/self_taught/{{model}}/evaluations.parquet",
        run=f"{RESULTS}/self_taught/{{model}}/run.json",
        calibrated=CALIBRATED if TRAINED_CRITIC else [],
    log:
        f"{RESULTS}/logs/self_taught_rounds/{{model}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/self_taught_rounds/{{model}}.tsv"
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0 if TAUGHT.critic == "server" else GPU,
    params:
        base=lambda w: base_path(w.model),
        # How a server is asked changes no answer and must rerun nothing.
        settings=critic_settings(set(type(TAUGHT).model_fields) - {"pairs", "server"}),
        endpoint=critic_endpoint(),
        machine=COMPUTE,
        seed=lambda w: seed_of_model(w.model),
        journal=f"{RESULTS}/checkpoints/self_taught/{{model}}",
        code=code("self_taught_rounds.py"),
    script:
        "../workflow/scripts/self_taught_rounds.py"


rule self_taught_pairs:
    input:
        memory=rules.self_taught_rounds.output.memory,
        plan=planned("self_taught_pairs"),
    output:
        f"{RESULTS}/self_taught/{{model}}/pairs/self_taught.yaml",
    log:
        f"{RESULTS}/logs/self_taught_pairs/{{model}}.log",
    priority: CRITICAL
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        gpu=0,
    params:
        critic=TAUGHT.critic,
        pairs=TAUGHT.pairs,
        code=code("self_taught_pairs.py"),
    script:
        "../workflow/scripts/self_taught_pairs.py"


rule self_taught_code:
    input:
        lambda w: vanilla_rollouts(w.model),
        plan=planned("self_taught_code"),
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
        pairs=TAUGHT.pairs,
        code=code("self_taught_code.py"),
    script:
        "../workflow/scripts/self_taught_code.py"
