"""The self-taught critic: its error against the strict oracle, before and after calibration.

A replication (seed) is the unit; after is compared with before within it, on the traces answered in both.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from projected_grpo.evaluator.oracle import BEFORE, COMPARED, KINDS, WEAK, errors, oracle_scores
from projected_grpo.files import read_json
from projected_grpo.measures import stats
from projected_grpo.measures.measure import ROLLOUTS
from projected_grpo.pages.blocks import (
    Cell,
    Details,
    Figure,
    Grid,
    Heading,
    Listing,
    Page,
    Paragraph,
    Pre,
    Source,
    grid,
)
from projected_grpo.pages.context import Context
from projected_grpo.pages.standing import of_seeds, without_tried
from projected_grpo.pages.text import NONE, delta, interval, p_is, p_value, rate, seed_list, under
from projected_grpo.parquet import read_parquet
from projected_grpo.verdicts.critic_rounds import CAPTION, Mark, curves, hard, marks, sentence
from projected_grpo.verdicts.verdict import Verdict

MEASURES = {
    "mae": "mean absolute error of phi",
    "false_credit": "false credit on hacks",
    "missed_credit": "missed credit on solves",
    "weak_false_credit": "false credit against the weak score",
    "weak_missed_credit": "missed credit against the weak score",
    "same_score": "traces with the commonest score",
    "answered": "usable answers",
}
COUNTS = tuple(f"{prefix}_{kind}" for prefix in ("n", "paired") for kind in KINDS)
EXAMPLES = 4
FIGURE = "rounds"

FILES = ("run.json", "evaluations.parquet", "cards.parquet")
ASKS = (
    "Can a critic be calibrated on its own traces? It scores submissions from 0 to 10, knowing what the foolable "
    "grader showed. It learns from contrast pairs made from its own traces, without human labels."
)
INTRO = (
    "Correct scores come from the foolable grader and the weak detector. That grader runs the hidden tests too, so for "
    "what the detector does not flag, the correct score is the oracle's; what it flags gets 2, solved or not.",
    "Here the critic is held against the strict oracle (10 solved, 2 runs, 0 does not), on problems that it never saw. "
    f'"{WEAK.capitalize()}" is the error of those correct scores: the best that calibration can reach.',
)
NOTES = (
    "mae: mean |phi - oracle's phi|, in points. False credit: share of exploits without a solution that get 5 or more. "
    "Missed credit: share of solutions that get less than 5. Weak: the same shares of the traces that the weak score "
    "gives no credit, and of those that it does. Same score: share of traces that get the commonest score.",
    "All over the answered traces: n, of those exploits / solutions, of all replications. Mean over replications "
    "(in brackets: std, ddof 1).",
    'Δ: difference to "before" on the traces answered in both (paired n), by replication: t-test, 95% t-interval, '
    "Holm's p over all rows of that measure.",
)
ALONE = "One replication: no spread, no interval and no test."
ROUNDS = (
    "Errors here are the critic's distance to the weak score, before that round's calibration, over the traces of the "
    "pool that it answered; unanswered ones are asked about last. Hardness: the reference's error on the traces of the "
    "accepted pairs, and on the pool."
)


def needs(context: Context) -> list[str]:
    """The critic's rounds, and the rollouts that its traces come from."""
    paths = [f"self_taught/{model}/{file}" for model in context.models for file in FILES]
    return [
        *context.below(*paths),
        *(path for seed in context.models.values() for path in traced(context, seed)),
    ]


def traced(context: Context, seed: int) -> list[str]:
    """Where a replication's traces come from."""
    return context.below(*(f"grpo/{cell.id}/{ROLLOUTS}" for cell in context.traced(seed)))


def make_frame(measured: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """One row per round and condition: `round`, `condition`, `n`, `seeds`, the counts `COUNTS` (traces of all
    seeds), and per measure its mean over seeds, `_std`, `_lo`, `_hi` (95% t-interval) and `_by_seed`; for the
    errors also `delta_*` to "before" with `_lo`, `_hi`, `p_*`, `p_*_holm`. `measured` holds the output of
    `evaluator.oracle.errors` by seed.
    """
    names = (*MEASURES, *(f"delta_{name}" for name in COMPARED), *COUNTS)
    every = pd.concat([frame.assign(seed=seed) for seed, frame in measured.items()])
    parts = {key: part.set_index("seed") for key, part in every.groupby(["round", "condition"], sort=False)}
    seeds, rows = sorted(measured), []
    for number, condition in sorted(parts, key=lambda key: (key[0], key[1] != BEFORE)):
        part = parts[number, condition]
        own = {name: part[name].dropna().astype(float).to_dict() for name in names}
        row = {"round": number, "condition": condition, "n": len(seeds), "seeds": seeds}
        row |= {name: sum(own[name].values()) if own[name] else None for name in COUNTS}
        for name in MEASURES:
            row |= _summary(name, own[name])
        for name in COMPARED:
            change = own[f"delta_{name}"]
            row |= _difference(name, stats.paired(change, dict.fromkeys(change, 0.0)))
        rows.append(row)
    frame = pd.DataFrame(rows)
    for name in COMPARED:
        frame[f"p_{name}_holm"] = stats.holm([None if pd.isna(p) else p for p in frame[f"p_{name}"]])
    text = [name for name in frame if name in ("condition", "seeds") or name.endswith("_by_seed")]
    return frame.astype({name: float for name in frame if name not in (*text, "round", "n")})


def _difference(name: str, pair: stats.Paired | None) -> dict:
    found = (pair.delta, pair.lo, pair.hi, pair.p) if pair else (None,) * 4
    columns = (f"delta_{name}", f"delta_{name}_lo", f"delta_{name}_hi", f"p_{name}")
    return dict(zip(columns, found, strict=True)) | {f"p_{name}_holm": None}


def _summary(name: str, values: Mapping[int, float]) -> dict:
    s = stats.summarise(list(values.values())) if values else None
    found = (s.mean, s.std, s.lo, s.hi) if s else (None,) * 4
    columns = dict(zip((name, f"{name}_std", f"{name}_lo", f"{name}_hi"), found, strict=True))
    return columns | {f"{name}_by_seed": [{"seed": seed, "value": values[seed]} for seed in sorted(values)]}


def make(context: Context) -> Verdict:
    """Return the page of the critic."""
    runs, cards, measured, said = [], [], {}, {}
    for model, seed in context.models.items():
        record, evaluations, own = (context.results / "self_taught" / model / file for file in FILES)
        runs.append(read_json(record))
        cards.append(read_parquet(own))
        own = runs[-1]["seed"]
        said[own] = read_parquet(evaluations)
        measured[own] = errors(said[own], oracle_scores(*traced(context, seed)))
    frame = make_frame(measured)
    drawing = curves(measured, said, runs)
    drawn = {} if drawing is None else {FIGURE: (drawing, CAPTION)}
    log = (f"{len(runs)} replications, {sum(map(len, cards))} cards",)
    every = pd.concat(cards, ignore_index=True)
    met, again = marks(measured, runs), _again(measured, runs)
    page = to_page(context.name, frame, runs, every, met, again, drawn)
    return Verdict(page, frame, drawn, log=log)


def _again(measured: Mapping[int, pd.DataFrame], runs: Sequence[Mapping]) -> list[tuple[str, list[Mark]]]:
    """Return the marks once more without the replications that settings were tried on, each under what it is."""
    return [
        (
            lead,
            marks({seed: measured[seed] for seed in seeds}, [run for run in runs if run["seed"] in seeds]),
        )
        for lead, seeds in without_tried(sorted(measured))
    ]


def to_page(
    name: str,
    frame: pd.DataFrame,
    runs: list[dict],
    cards: pd.DataFrame,
    met: Sequence[Mark] = (),
    again: Sequence[tuple[str, Sequence[Mark]]] = (),
    drawn: Collection[str] = (),
) -> Page:
    """Return the page: answer, figure, table, what each round did, and example cards.

    `runs` are the `run.json` files, `again` the marks of fewer seeds, `drawn` the names of the figures that there are.
    """
    seeds = tuple(frame["seeds"].iloc[0])
    critics = ", ".join(sorted({run["critic"].split(":")[0] for run in runs}))
    said = f"Critic: {critics}. Seeds: {seed_list(seeds)}. {ALONE if len(seeds) == 1 else ''}".strip()
    files = tuple(f"self_taught/{run['model']}/{file}" for run in runs for file in FILES)
    return Page(
        name=name,
        title="The self-taught evaluator",
        menu="Critic",
        asks=ASKS,
        blocks=(
            *(Paragraph(text) for text in INTRO),
            *(Figure(figure, CAPTION) for figure in drawn),
            _grid(frame),
            *(Paragraph(text, kind="note") for text in (*NOTES, said)),
            Heading("What each round did"),
            *_rounds(runs),
            Heading("Cards"),
            _gate(cards),
            *_examples(cards),
        ),
        answer=(*map(Paragraph, of_seeds(seeds)), *_judged(met), *answer(frame), *_once_more(again)),
        finding=" ".join([*of_seeds(seeds), sentence(met)]) if met else "",
        sources=(Source("Files behind this page", files=files),),
        default=True,
    )


def _judged(met: Sequence[Mark]) -> tuple:
    """Return what the marks say."""
    return (Paragraph(sentence(met)), Listing(tuple(mark.said for mark in met))) if met else ()


def _once_more(again: Sequence[tuple[str, Sequence[Mark]]]) -> tuple:
    """Return what the marks say of fewer seeds."""
    return tuple(block for lead, met in again for block in (Paragraph("", lead), *_judged(met)))


def answer(frame: pd.DataFrame) -> tuple:
    """Return what the last round shows for each way of calibrating, computed from the numbers."""
    last = frame[(frame["round"] == frame["round"].max()) & (frame["condition"] != BEFORE)]
    before = frame.loc[frame["condition"] == BEFORE, "same_score"].iloc[0]
    said = f"Before calibration {rate(before)} of the traces get one and the same score; from a constant all would."
    blocks = [Paragraph(said)]
    for row in last.to_dict("records"):
        said = []
        for name in COMPARED:
            change, p = row[f"delta_{name}"], row[f"p_{name}_holm"]
            if pd.isna(change):
                said.append(f"{MEASURES[name]} could not be compared")
            elif pd.isna(p):
                said.append(f"{MEASURES[name]} changes by {delta(change)} (no test: n = 1 or no spread)")
            else:
                verb = "is not shown to change" if p >= stats.ALPHA else "falls" if change < 0 else "rises"
                between = interval(row[f"delta_{name}_lo"], row[f"delta_{name}_hi"])
                said.append(f"{MEASURES[name]} {verb} (Δ {delta(change)}, 95% {between}, Holm p {p_is(p)})")
        same = f"{rate(row['same_score'])} of the traces get the commonest score"
        said.append(f"{same} (before: {rate(before)})")
        lead = f"{row['condition'].capitalize()}, after round {row['round']} (n = {row['n']}):"
        blocks += [Paragraph("", lead), Listing(tuple(said))]
    return tuple(blocks)


def _grid(frame: pd.DataFrame) -> Grid:
    def counts(row: dict, prefix: str) -> str:
        """`80: 12 / 30`: answered traces, exploits and solutions among them."""
        found = [row[f"{prefix}_{kind}"] for kind in KINDS]
        return NONE if pd.isna(found[0]) else "{:.0f}: {:.0f} / {:.0f}".format(*found)

    columns = {"critic": lambda row: row["condition"], "round": lambda row: row["round"]}
    for name in MEASURES:
        columns[_head(name)] = lambda row, m=name: Cell(rate(row[m]), under(rate, row[f"{m}_std"]))
    columns |= {"n": lambda row: counts(row, "n"), "paired n": lambda row: counts(row, "paired")}
    for name in COMPARED:
        columns[f"Δ {_head(name)}"] = lambda row, d=f"delta_{name}": Cell(
            delta(row[d]), under(interval, row[f"{d}_lo"], row[f"{d}_hi"])
        )
        columns[f"Holm p, {_head(name)}"] = lambda row, p=f"p_{name}": Cell(
            p_value(row[f"{p}_holm"]), under(lambda value: f"p {p_value(value)}", row[p])
        )
    return grid(frame.to_dict("records"), columns)


def _head(name: str) -> str:
    return name.replace("_", " ")


def _rounds(runs: list[dict]) -> tuple:
    def counted(counts: Mapping[str, int]) -> str:
        return ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items())) or NONE

    rows = [(run, done) for run in runs for done in run["rounds"]]
    columns = {
        "seed": lambda row: row[0]["seed"],
        "round": lambda row: row[1]["round"],
        "asked": lambda row: row[1]["asked"],
        "pairs": lambda row: row[1]["pairs"],
        "error of the pool": lambda row: rate(row[1]["pool_error"]),
        "error of those asked": lambda row: rate(row[1]["asked_error"]),
        "hardness": lambda row: hard(row[1]),
        "not used": lambda row: counted({**row[1]["skipped"], **row[1]["turned_away"]}),
        "pool unanswered": lambda row: counted(row[1]["unanswered"]["pool"]),
    }
    usage = pd.DataFrame([run["usage"] for run in runs])
    calls, tokens_in, tokens_out = usage[["calls", "tokens_in", "tokens_out"]].sum()
    cost = f", cost {usage['cost'].sum():.2f}" if usage["cost"].notna().all() else ""
    said = (
        f"All replications together: {calls} answers, {tokens_in} tokens in, {tokens_out} tokens out{cost}."
    )
    return grid(rows, columns), Paragraph(ROUNDS, kind="note"), Paragraph(said)


def _gate(cards: pd.DataFrame) -> Paragraph:
    counts = Counter(zip(cards["kind"], cards["status"], strict=True))
    said = ", ".join(f"{n} {kind} {status}" for (kind, status), n in sorted(counts.items()))
    return Paragraph(f"All cards with the gate's decisions: `self_taught/MODEL/cards.parquet`. {said}.")


def _examples(cards: pd.DataFrame) -> tuple:
    """Return a few pairs of promoted cards; their text was written by models."""
    promoted = cards[cards["status"] == "promoted"]
    right = promoted[promoted["kind"] == "critic_calibration"]
    wrong = promoted[promoted["kind"] == "failure_pattern"]
    both = right.merge(wrong, on=["model", "trace_id", "event"], suffixes=("", "_wrong"))
    both = both.assign(gap=(both["phi_after"] - both["phi_after_wrong"]).abs())
    both = both.sort_values(["gap", "id"], ascending=[False, True]).drop_duplicates(["mistake_type_wrong"])
    blocks = []
    for row in both.head(EXAMPLES).itertuples():
        right = f"Correct: {row.phi_after:g}. {row.reasoning}"
        wrong = f"Wrong ({row.mistake_type_wrong}): {row.phi_after_wrong:g}. {row.reasoning_wrong}"
        judged = (Pre(f"{row.action}\n\n{row.outcome}"), Pre(right), Pre(wrong))
        blocks.append(Details("A card, right and wrong", judged))
    return tuple(blocks)
