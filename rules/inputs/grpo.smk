# What a run depends on beside its cell.


def refresh_pairs(wildcards):
    """The pair file that a refreshing run extracts its basis from anew; null for a frozen basis."""
    cell = CELLS[wildcards.cell]
    if not cell.setting.refresh:
        return None
    return pair_file(CONFIG.knobs(cell.setting.basis).pairs, cell.model)
