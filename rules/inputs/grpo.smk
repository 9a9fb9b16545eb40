# What a run depends on beside its cell.


def refresh_source(wildcards):
    """Extraction knobs and pair file of a refreshing run, with the pairs' digest; null for a frozen basis."""
    cell = CELLS[wildcards.cell]
    if not cell.setting.refresh:
        return None
    knobs = cells.extraction_knobs(config, cell.setting.basis)
    source = {
        "knobs": knobs,
        "pairs": pair_file(knobs["pairs"], cell.model),
        "digest": pairs_digest(cell.setting.basis),
    }
    return json.dumps(source, sort_keys=True)
