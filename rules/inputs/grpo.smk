# What a run depends on beside its cell.


def refresh_pairs(wildcards):
    """The pair file that a refreshing run extracts its basis from anew; null for a frozen basis."""
    cell = CELLS[wildcards.cell]
    if not cell.setting.refresh:
        return None
    return pair_file(cells.knobs(config, cell.setting.basis)["pairs"], cell.model)


def refresh_digest(wildcards):
    """Hash of the pairs that a refreshing run reads."""
    cell = CELLS[wildcards.cell]
    return pairs_digest(cell.setting.basis) if cell.setting.refresh else None
