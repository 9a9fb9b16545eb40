# The self-taught evaluator: rollouts of each replication -> critic, cards, pair sets, its error.


rule self_taught_critic:
    input:
        base=critic_checkpoint,
        rollouts=traced_rollouts,
        plan=planned("self_taught_critic"),
    output:
        f"{RESULTS}/self_taught/{{critic}}/critic/adapter_model.safetensors",
        f"{RESULTS}/self_taught/{{critic}}/critic/adapter_config.json",
    log:
        f"{RESULTS}/logs/self_taught_critic/{{critic}}.log",
    wildcard_constraints:
        critic="|".join(CRITICS),
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0,
    params:
        base=critic_path,
        settings=critic_settings(["training"]),
        seed=critic_seed,
        alike=critic_is_alike,
        code=code("self_taught_critic.py"),
    script:
        "../workflow/scripts/self_taught_critic.py"


rule self_taught_rounds:
    input:
        base=critic_base,
        rollouts=traced_rollouts,
        critic=lambda w: rules.self_taught_critic.output if TRAINED_CRITIC else [],
        plan=planned("self_taught_rounds"),
    output:
        memory=f"{RESULTS}/self_taught/{{critic}}/memory.jsonl",
        cards=f"{RESULTS}/self_taught/{{critic}}/cards.parquet",
        evaluations=f"{RESULTS}/self_taught/{{critic}}/evaluations.parquet",
        run=f"{RESULTS}/self_taught/{{critic}}/run.json",
        calibrated=CALIBRATED if TRAINED_CRITIC else [],
    log:
        f"{RESULTS}/logs/self_taught_rounds/{{critic}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/self_taught_rounds/{{critic}}.tsv"
    wildcard_constraints:
        critic="|".join(CRITICS),
    priority: CRITICAL
    conda:
        "../envs/model.yaml"
    threads: CONFIG.threads
    resources:
        gpu=0 if TAUGHT.critic == "server" else GPU,
    params:
        base=critic_path,
        # How a server is asked changes no answer and must rerun nothing.
        settings=critic_settings(set(type(TAUGHT).model_fields) - {"pairs", "server", "grid"}),
        # Another model or host is another critic; both may stand in the environment alone.
        endpoint=endpoint(TAUGHT.model) if TAUGHT.critic == "server" else None,
        machine=COMPUTE,
        seed=critic_seed,
        alike=critic_is_alike,
        journal=f"{RESULTS}/checkpoints/self_taught/{{critic}}",
        code=code("self_taught_rounds.py"),
    script:
        "../workflow/scripts/self_taught_rounds.py"


rule self_taught_pairs:
    input:
        memory=f"{RESULTS}/self_taught/{{model}}/memory.jsonl",
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
        vanilla_rollouts,
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
