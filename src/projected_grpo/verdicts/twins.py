"""Rows of a question that differ in one knob of their basis: LoRA or SVD space (R6), NLL or GRPO loss (R7)."""

from dataclasses import dataclass

from projected_grpo.cells.cell import Question, Row
from projected_grpo.cells.config import Config
from projected_grpo.cells.setting import Setting

# What a twin may differ in beside the basis: the adapter is the knob itself in R6 and brings its own rate.
FREE = ("basis", "adapter", "lr")


@dataclass(frozen=True)
class Twins:
    """Two rows alike but for one knob: `reference` has the default, `other` the new value."""

    reference: Row
    other: Row


def _rest(setting: Setting, config: Config, knob: str) -> tuple[dict, dict | None]:
    flat = {**setting.model_dump(exclude={"knobs"}), **setting.knobs.model_dump()}
    own = {key: value for key, value in flat.items() if key not in FREE}
    if setting.basis is None:
        return own, None
    return own, config.knobs(setting.basis).model_dump(exclude={knob})


def twins(question: Question, config: Config, knob: str) -> list[Twins]:
    """Return the twin rows of a question that use a basis; the knob's default is that of the config's `basis`."""
    found = []
    rows = [row for row in question.rows if row.setting.basis]
    default = getattr(config.basis, knob)
    for other in rows:
        if getattr(config.knobs(other.setting.basis), knob) == default:
            continue
        for row in rows:
            same_knob = getattr(config.knobs(row.setting.basis), knob) == default
            if same_knob and _rest(row.setting, config, knob) == _rest(other.setting, config, knob):
                found.append(Twins(row, other))
                break
    return found


def replay_folders(question: Question, config: Config, knob: str) -> dict[str, dict[int, str]]:
    """Return basis -> seed -> folder (below results/probe/) of the vanilla replays that T4 needs."""
    folders: dict[str, dict[int, str]] = {}
    for pair in twins(question, config, knob):
        for row in (pair.reference, pair.other):
            for cell in row.cells:
                seeds = folders.setdefault(row.setting.basis, {})
                folder = f"{cell.model}/{cell.basis}/vanilla"
                if folder not in seeds.values():  # seeds that share model and basis share the replay
                    seeds[cell.seed] = folder
    return folders
