# Which rollouts and settings the self-taught evaluator reads.
from projected_grpo.evaluator.backends import endpoint
from projected_grpo.evaluator.kinds import critic_kinds

TAUGHT = CONFIG.self_taught
CRITIC = TAUGHT.critic != "none"
TRAINED_CRITIC = TAUGHT.critic == "trained"
# Folder of a critic -> its replication, its kind, and the model that it is a LoRA on; others than the default one belong to the
# two-by-two.
CRITICS = {
    kind.of(model): (model, kind, CONFIG.model_name(REPLICATIONS[model][0], kind.size))
    for model in MODELS
    for kind in critic_kinds(CONFIG)
}
if SMALL:
    REPLICATIONS |= {
        base: (REPLICATIONS[model][0], Setting(size=kind.size)) for model, kind, base in CRITICS.values()
    }
# What the critic has become after its last round.
CALIBRATED = [
    f"{RESULTS}/self_taught/{{critic}}/calibrated/{name}"
    for name in ("adapter_model.safetensors", "adapter_config.json")
]


def vanilla_rollouts(wildcards):
    """The rollouts that pairs of code come from: those of vanilla at the default mix and preset."""
    return f"{RESULTS}/grpo/{vanilla_cell(seed_of_model(wildcards.model))}/rollouts.parquet"


def critic_seed(wildcards):
    """The replication of a critic."""
    return seed_of_model(CRITICS[wildcards.critic][0])


def critic_is_alike(wildcards):
    """Whether a critic learns from the traces of the hacking run alone."""
    return CRITICS[wildcards.critic][1].alike


def traced_rollouts(wildcards):
    """The rollouts that a critic's traces come from."""
    return [f"{RESULTS}/grpo/{cell}/rollouts.parquet" for cell in traced_cells(critic_seed(wildcards))]


def critic_path(wildcards):
    """Folder of the base that a critic is, or is a LoRA on; a critic in words has had no warm start."""
    if TAUGHT.critic == "local" and CONFIG.model.warm:
        return given_base_path(CONFIG.model.name)
    return base_path(CRITICS[wildcards.critic][2])


def critic_checkpoint(wildcards):
    """The checkpoint of that base."""
    return [f"{critic_path(wildcards)}/model.safetensors"]


def critic_base(wildcards):
    """The checkpoint that a critic on this machine waits for; none for a server."""
    if TAUGHT.critic == "local" and TAUGHT.model:
        return given_checkpoint(TAUGHT.model, "config.json")
    return critic_checkpoint(wildcards) if TAUGHT.critic in ("local", "trained") else []


def critic_settings(names):
    """These settings of the `self_taught` block as stable text."""
    return json.dumps(TAUGHT.model_dump(include=set(names)), sort_keys=True)
