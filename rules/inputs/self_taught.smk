# Which rollouts and settings the self-taught evaluator reads.
from projected_grpo.evaluator.backends import endpoint

TAUGHT = CONFIG.self_taught
CRITIC = CONFIG.has_critic
TRAINED_CRITIC = CONFIG.has_trained_critic
# What the critic has become after its last round.
CALIBRATED = [
    f"{RESULTS}/self_taught/{{model}}/calibrated/{name}"
    for name in ("adapter_model.safetensors", "adapter_config.json")
]


def vanilla_rollouts(model):
    """The rollouts that pairs of code come from: those of vanilla at the default mix and preset."""
    return f"{RESULTS}/grpo/{vanilla_cell(seed_of_model(model))}/rollouts.parquet"


def traced_rollouts(model):
    """The rollouts that a replication's traces come from."""
    return [f"{RESULTS}/grpo/{cell}/rollouts.parquet" for cell in traced_cells(seed_of_model(model))]


def critic_base(wildcards):
    """The checkpoint that a critic on this machine waits for; none for a server."""
    if TAUGHT.critic == "local" and TAUGHT.model:
        return given_checkpoint(TAUGHT.model, "config.json")
    return base_files(wildcards) if TAUGHT.critic in ("local", "trained") else []


def critic_endpoint():
    """Model and host of a server critic: another one is another critic. They may stand in the environment alone."""
    return endpoint(TAUGHT.model) if TAUGHT.critic == "server" else None


def critic_settings(names):
    """These settings of the `self_taught` block as stable text."""
    return json.dumps(TAUGHT.model_dump(include=set(names)), sort_keys=True)
