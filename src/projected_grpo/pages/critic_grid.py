"""The self-taught critic two by two: the size of its base, and the variety of the traces that it learns from.

All four critics of a replication are measured on the same traces; their training is the same.
"""

from projected_grpo.evaluator.kinds import CriticKind
from projected_grpo.evaluator.oracle import errors, oracle_scores
from projected_grpo.files import read_json
from projected_grpo.pages import stage
from projected_grpo.pages.context import Context
from projected_grpo.pages.critic import critics_of, records_of, rounds_of
from projected_grpo.pages.needs import GRID_FILES, traced_rollouts
from projected_grpo.pages.page import Page
from projected_grpo.parquet import read_parquet

CREDITS = {"weak_false_credit": "false credit", "weak_missed_credit": "missed credit"}
LAST = CREDITS | {"same_score": "share of the commonest score"}  # after the last round
CHANGES = {f"{name}_change": f"{words}, last less first round" for name, words in CREDITS.items()}
HARDER = {"hardness_change": "hardness of pairs, last less first round"}


def name_of(kind: CriticKind, size: str) -> str:
    """Return what a critic is called; size: of the replication's own base."""
    return f"{kind.size or size}, {'vanilla alone' if kind.alike else 'vanilla and gt_only'}"


def make(context: Context) -> Page:
    """Return the page of the two-by-two."""
    truth = {seed: oracle_scores(*traced_rollouts(context, seed)) for seed in context.models.values()}
    critics, records, names = context.critics(), [], []
    for kind, folders in critics.items():
        rows: list[stage.Record] = []
        for seed, folder in folders.items():
            run, evaluations = (context.results / folder / file for file in GRID_FILES)
            rows += records_of(errors(read_parquet(evaluations), truth[seed]), read_json(run))
        (own, _), name = critics_of(rows), name_of(kind, context.config.model.size)
        rounds = rounds_of(own) or [""]
        first, last = rounds[0], rounds[-1]
        names.append(name)
        records += [(name, measure, *one) for measure in LAST for one in own.of(last, measure).items()]
        over = {last: 1.0, first: -1.0} if first != last else ""
        for measure in (*CREDITS, "hardness"):
            records += [(name, f"{measure}_change", *one) for one in own.of(over, measure).items()]
    every = [folder for own in critics.values() for folder in own.values()]
    return page_of(context, stage.Numbers(records), names, every)


def page_of(context: Context, numbers: stage.Numbers, critics: list[str], folders: list[str]) -> Page:
    """Return the page of these numbers; critics: the small base's two and the large one's, the varied traces first."""
    more = {"critics": critics, "heads": LAST | CHANGES | HARDER, "credits": CREDITS, "changes": CHANGES}
    drawn = {
        words.split()[0]: numbers.strip(critics, measure, f"{words} after the last round")
        for measure, words in CREDITS.items()
    }
    return stage.page(context, "critic_grid.md.j2", numbers, drawn, folders=folders, **more)
