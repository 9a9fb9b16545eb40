# What a run depends on beside its cell.
from projected_grpo import arms


def own_pairs(wildcards):
    """The pair file that a run reads itself, to extract its basis anew; null where its arm needs none."""
    cell = CELLS[wildcards.cell]
    if not cell.setting.needs.pairs:
        return None
    return pair_file(CONFIG.knobs(cell.setting.needs.pairs).pairs, cell.model)


def own_pairs_digest(wildcards):
    """Hash of the pairs that a run reads itself."""
    needs = CELLS[wildcards.cell].setting.needs
    return pairs_digest(needs.pairs, whole=needs.fitted) if needs.pairs else None


def own_generated_pairs(wildcards):
    """The pairs of a run's direction as an input, if the pipeline writes them; a basis has waited for its own."""
    cell = CELLS[wildcards.cell]
    generated = cell.direction and cell.direction.is_generated
    return [own_pairs(wildcards)] if generated else []


def own_critic(wildcards):
    """The critic's files, where it is a run's monitor."""
    if not CELLS[wildcards.cell].setting.needs.critic:
        return []
    return expand(CALIBRATED, critic=cell_model(wildcards))


def own_critic_tokens(wildcards):
    """The tokens of its answer; null where nobody asks it."""
    return CONFIG.self_taught.max_tokens if own_critic(wildcards) else None


def own_arm(wildcards):
    """The file of a cell's arm, which is loaded by name: another arm's edit reruns nothing here."""
    return [os.path.relpath(arms.files()[CELLS[wildcards.cell].setting.arm], HERE)]


def own_files(wildcards):
    """The files that a run loads by name: those of its arm and of its critic."""
    return own_arm(wildcards) + ["src/projected_grpo/evaluator/monitor.py"] * bool(own_critic(wildcards))


def clean_problems_file(wildcards):
    """The rows that the clean run's problems are among."""
    if CONFIG.model.problems == "generated":
        return f"{RESULTS}/clean/{wildcards.model}/problems.jsonl.gz"
    return problems_file(wildcards.model)


def clean_problems_start(wildcards):
    """Where they begin: of given rows behind those that runs are trained and judged on."""
    judged = CONFIG.deployed
    panels = judged.known + judged.novel + judged.plain
    return 0 if CONFIG.model.problems == "generated" else CONFIG.pool.problems + panels
