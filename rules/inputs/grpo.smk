# What a run depends on beside its cell.
from projected_grpo.fingerprint import ROOT


def own_pairs(wildcards):
    """The pair file that a run reads itself, to extract its basis anew; null where its arm needs none."""
    cell = CELLS[wildcards.cell]
    if not cell.setting.needs.pairs:
        return None
    return pair_file(CONFIG.knobs(cell.setting.needs.pairs).pairs, cell.model)


def run_code(wildcards):
    """Fingerprint of what every run shares, then of its own arm's file: another arm's edit reruns nothing here."""
    arm = CELLS[wildcards.cell].setting.arm
    return f"{code('grpo.py')}-{code(ROOT / 'arms' / f'{arm}.py')}"
