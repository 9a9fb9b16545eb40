# What a run depends on beside its cell.


def own_pairs(wildcards):
    """The pair file that a run reads itself, to extract its basis anew; null where its arm needs none."""
    cell = CELLS[wildcards.cell]
    if not cell.setting.needs.pairs:
        return None
    return pair_file(CONFIG.knobs(cell.setting.needs.pairs).pairs, cell.model)


def own_pairs_digest(wildcards):
    """Hash of the pairs that a run reads itself."""
    basis = CELLS[wildcards.cell].setting.needs.pairs
    return pairs_digest(basis) if basis else None


def arm_file(wildcards):
    """The file of a cell's arm, which is loaded by name: another arm's edit reruns nothing here."""
    return f"src/projected_grpo/arms/{CELLS[wildcards.cell].setting.arm}.py"


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
