"""The self-taught critic: its error against the strict oracle, before and after calibration.

A replication (seed) is the unit; after is compared with before within it, on the traces answered in both.
"""

import html
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from projected_grpo.evaluator.oracle import BEFORE, COMPARED, KINDS, WEAK, errors, oracle_scores
from projected_grpo.files import read_json
from projected_grpo.measures import stats
from projected_grpo.measures.measure import ROLLOUTS
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page, address, render
from projected_grpo.pages.words import NONE, interval, p_value, rate, signed, table
from projected_grpo.parquet import read_parquet
from projected_grpo.verdicts.critic_rounds import MOST, WEAK_CREDITS, Mark, curves, marks, outcome

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


def make(context: Context) -> Page:
    """Return the page of the critic."""
    runs, cards, measured, said = [], [], {}, {}
    for model, seed in context.models.items():
        record, evaluations, own = (context.results / "self_taught" / model / file for file in FILES)
        runs.append(read_json(record))
        cards.append(read_parquet(own))
        own = runs[-1]["seed"]
        said[own] = read_parquet(evaluations)
        measured[own] = errors(said[own], oracle_scores(*traced(context, seed)))
    frame, every = make_frame(measured), pd.concat(cards, ignore_index=True)
    drawing = curves(measured, said, runs)
    text = text_of(
        context.name, frame, runs, every, marks(measured, runs), drawing is not None, context.config.banner
    )
    log = (f"{len(runs)} replications, {len(every)} cards",)
    return Page(context.name, text, {FIGURE: drawing} if drawing else {}, {".parquet": frame}, log)


def text_of(
    name: str,
    frame: pd.DataFrame,
    runs: Sequence[Mapping],
    cards: pd.DataFrame,
    met: Sequence[Mark] = (),
    is_drawn: bool = False,
    banner: str = "",
) -> str:
    """Return the page; what models wrote is escaped in it. runs: the `run.json` files."""
    last = frame[(frame["round"] == frame["round"].max()) & (frame["condition"] != BEFORE)]
    counts = Counter(zip(cards["kind"], cards["status"], strict=True))
    usage = pd.DataFrame([run["usage"] for run in runs])
    return render(
        "critic.md.j2",
        banner=banner,
        figure=f"{address(name)}{FIGURE}.svg" if is_drawn else "",
        marks=met,
        outcome=outcome(met) if met else "",
        most=MOST,
        alpha=stats.ALPHA,
        credits=WEAK_CREDITS,
        last=last.to_dict("records"),
        before=frame.loc[frame["condition"] == BEFORE, "same_score"].iloc[0],
        compared={key: MEASURES[key] for key in COMPARED},
        weak=WEAK,
        table=_table(frame),
        rounds=_rounds(runs),
        usage=usage[["calls", "tokens_in", "tokens_out"]].sum().to_dict(),
        cost=float(usage["cost"].sum()) if usage["cost"].notna().all() else None,
        counts=sorted(counts.items()),
        examples=_examples(cards),
        seeds=tuple(frame["seeds"].iloc[0]),
        critics=sorted({run["critic"].split(":")[0] for run in runs}),
        models=[run["model"] for run in runs],
    )


def _table(frame: pd.DataFrame) -> str:
    def counts(row: dict, prefix: str) -> str:
        """`80: 12 / 30`: answered traces, exploits and solutions among them."""
        found = [row[f"{prefix}_{kind}"] for kind in KINDS]
        return NONE if pd.isna(found[0]) else "{:.0f}: {:.0f} / {:.0f}".format(*found)

    head = ["critic", "round", *(name.replace("_", " ") for name in MEASURES), "n", "paired n"]
    head += [text for name in COMPARED for text in (f"Δ {name.replace('_', ' ')}", "Holm p")]
    rows = []
    for row in frame.to_dict("records"):
        means = [f"{rate(row[name])} ({rate(row[f'{name}_std'])})" for name in MEASURES]
        changes = []
        for name in COMPARED:
            between = interval(row[f"delta_{name}_lo"], row[f"delta_{name}_hi"])
            changes += [f"{signed(row[f'delta_{name}'])} {between}".strip(), p_value(row[f"p_{name}_holm"])]
        rows.append(
            [row["condition"], row["round"], *means, counts(row, "n"), counts(row, "paired"), *changes]
        )
    return table(head, rows)


def _rounds(runs: Sequence[Mapping]) -> str:
    def counted(counts: Mapping[str, int]) -> str:
        return ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items())) or NONE

    rows = []
    for run in runs:
        for done in run["rounds"]:
            hard = (done.get("hardness"), done.get("pool_hardness"))
            told = NONE if None in hard else f"{rate(hard[0])} (pool {rate(hard[1])})"
            row = [run["seed"], done["round"], done["asked"], done["pairs"], rate(done["pool_error"])]
            row += [rate(done["asked_error"]), told, counted({**done["skipped"], **done["turned_away"]})]
            rows.append([*row, counted(done["unanswered"]["pool"])])
    head = ["seed", "round", "asked", "pairs", "error of the pool", "error of those asked", "hardness"]
    return table([*head, "not used", "pool unanswered"], rows)


def _examples(cards: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return a few pairs of promoted cards, what they judge, right and wrong, escaped: models wrote them."""
    promoted = cards[cards["status"] == "promoted"]
    right = promoted[promoted["kind"] == "critic_calibration"]
    wrong = promoted[promoted["kind"] == "failure_pattern"]
    both = right.merge(wrong, on=["model", "trace_id", "event"], suffixes=("", "_wrong"))
    both = both.assign(gap=(both["phi_after"] - both["phi_after_wrong"]).abs())
    both = both.sort_values(["gap", "id"], ascending=[False, True]).drop_duplicates(["mistake_type_wrong"])
    return [
        tuple(
            html.escape(text)
            for text in (
                f"{row.action}\n\n{row.outcome}",
                f"Correct: {row.phi_after:g}. {row.reasoning}",
                f"Wrong ({row.mistake_type_wrong}): {row.phi_after_wrong:g}. {row.reasoning_wrong}",
            )
        )
        for row in both.head(EXAMPLES).itertuples()
    ]
