"""The self-taught critic: its error against the strict oracle and the weak score, before and after calibration."""

from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd

from projected_grpo.evaluator.oracle import BEFORE, COMPARED, MOST_UNUSABLE, errors, oracle_scores
from projected_grpo.evaluator.rounds import IN_CONTEXT, TRAINED
from projected_grpo.files import read_json
from projected_grpo.pages import stage
from projected_grpo.pages.context import Context
from projected_grpo.pages.needs import CRITIC_FILES, traced_rollouts
from projected_grpo.pages.page import Page
from projected_grpo.parquet import read_parquet

MEASURES = {
    "mae": "mean error of phi",
    "false_credit": "false credit on hacks",
    "missed_credit": "missed credit on solves",
    "weak_false_credit": "false credit, weak score",
    "weak_missed_credit": "missed credit, weak score",
    "same_score": "share of the commonest score",
    "unusable": "unusable answers",
}
COUNTS = ("n_answered", "n_exploited", "n_solved")
DELTAS = {f"delta_{name}": MEASURES[name] for name in COMPARED}
ERRORS = {"pool_error": "error of the pool", "asked_error": "error of those asked"}
ROUNDS = {"asked": "asked", "pairs": "pairs", **ERRORS, "hardness": "hardness beyond the pool's"}
EXAMPLES = 4


def records_of(measured: pd.DataFrame, run: Mapping) -> list[stage.Record]:
    """Return the numbers of one replication; `measured`: of `oracle.errors`.

    Rows: a condition, and after calibration began `CONDITION, round N`. `hardness`: the reference's error on a round's
    accepted pairs less that on its pool.
    """
    seed, records = run["seed"], list[stage.Record]()
    for one in measured.to_dict("records"):
        row = one["condition"] if one["round"] == 0 else f"{one['condition']}, round {one['round']}"
        records += [(row, name, seed, one.get(name)) for name in (*MEASURES, *DELTAS, *COUNTS)]
    trains = run["critic"].startswith("trained")  # of rounds without a pair nothing is trained, nor measured
    shown = TRAINED if trains else calibrated(measured["condition"])
    for done in run["rounds"]:
        row = f"{shown}, round {done['round']}"
        records += [(row, name, seed, done.get(name)) for name in list(ROUNDS)[:-1]]
        pair, pool = done.get("hardness"), done.get("pool_hardness")
        records.append((row, "hardness", seed, None if None in (pair, pool) else pair - pool))
    return records


def critics_of(records: list[stage.Record]) -> tuple[stage.Numbers, list[str]]:
    """Return the numbers of what is a critic, and the rows that are none: too many answers are unusable, as a mean.

    Of such a row only the counts and that share are left; where it is "before", nothing is compared with it. The errors
    of a round are those of the critic that came into it, so they go with that one.
    """
    every = stage.Numbers(records)
    none = [row for row in every.values if (every.mean(row, "unusable") or 0) > MOST_UNUSABLE]
    lost = set(DELTAS) if BEFORE in none else set()
    kept = {"unusable", "asked", "pairs", *COUNTS}
    asking, blind = BEFORE, set[str]()
    for row in rounds_of(every):
        blind |= {row} if asking in none else set()
        asking = row if every.of(row, "unusable") else asking
    told = [one for one in records if one[1] not in lost and (one[0] not in none or one[1] in kept)]
    told = [one for one in told if one[0] not in blind or one[1] not in ERRORS]
    return stage.Numbers(told), none


def calibrated(conditions: Iterable[str]) -> str:
    """Return the condition that shows the calibrated critic: its training where it has one, else its cards."""
    return TRAINED if TRAINED in set(conditions) else IN_CONTEXT


def rounds_of(numbers: stage.Numbers) -> list[str]:
    """Return the rows of the calibrated critic, round by round."""
    after = [row for row in numbers.values if ", round " in row]
    shown = calibrated(row.partition(", round ")[0] for row in after)
    return sorted((row for row in after if row.startswith(shown)), key=lambda row: int(row.rsplit(" ", 1)[1]))


def make(context: Context) -> Page:
    """Return the page of the critic."""
    runs: list[Mapping] = []
    cards: list[pd.DataFrame] = []
    records: list[stage.Record] = []
    for model, seed in context.models.items():
        record, evaluations, own = (context.results / "self_taught" / model / file for file in CRITIC_FILES)
        runs.append(read_json(record))
        cards.append(read_parquet(own))
        measured = errors(read_parquet(evaluations), oracle_scores(*traced_rollouts(context, seed)))
        records += records_of(measured, runs[-1])
    return page_of(context, records, runs, pd.concat(cards, ignore_index=True))


def page_of(context: Context, records: list[stage.Record], runs: list[Mapping], cards: pd.DataFrame) -> Page:
    """Return the page; what models wrote is escaped in it. runs: the `run.json` files."""
    numbers, none = critics_of(records)
    rounds = rounds_of(numbers)
    reasons: Counter[str] = Counter()
    for done in (done for run in runs for done in run["rounds"]):
        reasons.update({**done["skipped"], **done["turned_away"]})
        reasons.update({f"unanswered: {why}": n for why, n in done["unanswered"]["pool"].items()})
    panels = {
        "credit": {"false": "weak_false_credit", "missed": "weak_missed_credit"},
        "commonest score": {"its share": "same_score"},
        "hardness": {"accepted pairs": "hardness"},
    }
    return stage.page(
        context,
        "critic.md.j2",
        numbers,
        {"rounds": numbers.over(rounds, panels, "round")},
        measures=MEASURES,
        deltas=DELTAS,
        heads_of_rounds=ROUNDS,
        rounds=rounds,
        after=[row for row in numbers.values if ", round " in row],
        no_critic=none,
        most_unusable=MOST_UNUSABLE,
        before=BEFORE,
        reasons=sorted(reasons.items()),
        examples=_examples(cards),
        counts=sorted(Counter(zip(cards["kind"], cards["status"], strict=True)).items()),
        runs=runs,
        critics=sorted({run["critic"].split(":")[0] for run in runs}),
        borrowed=not context.config.is_small and context.config.self_taught.critic == "trained",
    )


def _examples(cards: pd.DataFrame) -> list[dict]:
    """Return a few pairs of promoted cards, right and wrong (`..._wrong`), by how far apart they judge."""
    promoted = cards[cards["status"] == "promoted"]
    right = promoted[promoted["kind"] == "critic_calibration"]
    wrong = promoted[promoted["kind"] == "failure_pattern"]
    both = right.merge(wrong, on=["model", "trace_id", "event"], suffixes=("", "_wrong"))
    both = both.assign(gap=(both["phi_after"] - both["phi_after_wrong"]).abs())
    both = both.sort_values(["gap", "id"], ascending=[False, True]).drop_duplicates(["mistake_type_wrong"])
    return both.head(EXAMPLES).to_dict("records")
