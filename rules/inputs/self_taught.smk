# Which rollouts and settings the self-taught evaluator reads.
from projected_grpo.evaluator.endpoint import endpoint

TAUGHT = config["self_taught"]


CRITIC = CONFIG.has_critic
TRAINED_CRITIC = TAUGHT["critic"] == "trained"


def vanilla_rollouts(model):
    """The rollouts that a replication's traces come from: those of vanilla at the default mix and preset."""
    return f"{RESULTS}/grpo/{vanilla_cell(seed_of_model(model))}/rollouts.parquet"


def critic_base(wildcards):
    """The checkpoint that a critic on this machine waits for; none for a server or a given checkpoint."""
    return (
        base_files(wildcards)
        if TRAINED_CRITIC or (TAUGHT["critic"] == "local" and not TAUGHT["model"])
        else []
    )


def critic_endpoint():
    """Model and host of a server critic: another one is another critic. They may stand in the environment alone."""
    return endpoint(TAUGHT["model"]) if TAUGHT["critic"] == "server" else None


def critic_settings(names):
    """These settings of the `self_taught` block as stable text."""
    return json.dumps({name: TAUGHT[name] for name in names}, sort_keys=True)
