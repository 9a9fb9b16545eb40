# What a basis is extracted from.


def basis_knobs(wildcards):
    """Extraction knobs of a basis, as text that is stable from run to run."""
    return json.dumps(CONFIG.knobs(basis_name(wildcards.basis)).extraction(), sort_keys=True)


def basis_pairs(wildcards):
    """The pair set's file."""
    knobs = CONFIG.knobs(basis_name(wildcards.basis)).extraction()
    return pair_file(knobs["pairs"], wildcards.model)


def generated_pairs(wildcards):
    """The pair set as an input, if the pipeline writes it."""
    name = CONFIG.knobs(basis_name(wildcards.basis)).pairs
    return [pair_file(name, wildcards.model)] if name in GENERATED_PAIRS else []
