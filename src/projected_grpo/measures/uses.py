"""Which bases a trend's rows act along on a model, the exploits' own being what they are compared with."""

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.cells.run_settings import Use

REFERENCE = "own_mode"  # the pairs of the exploits themselves, which every other set is held against


def uses(question: Question, model: str, config: Config) -> list[tuple[str, Use]]:
    """Return the basis and its use of each row on a model whose axes come from pairs, each once, sorted."""
    found = {
        (cell.setting.basis, cell.use)
        for cell in question.cells
        if cell.model == model and cell.basis and cell.setting.adapter == "antipasto"
    }
    real = [(basis, use) for basis, use in found if basis and use and config.knobs(basis).control == "none"]
    return sorted(real, key=lambda pair: (pair[0], pair[1].k, pair[1].drop_bottom_frac))
