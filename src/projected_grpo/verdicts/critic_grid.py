"""The self-taught critic two by two: the size of its base, and the variety of the traces that it learns from.

Where credit against the weak score stays, this says whether either of the two is shown to matter, for its level after
the last round or for its change over the rounds; the training is the same in all four. All four critics of a
replication are measured on the same traces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from projected_grpo.cells.self_taught import CriticKind
from projected_grpo.evaluator.oracle import errors, oracle_scores
from projected_grpo.files import read_json
from projected_grpo.measures import stats
from projected_grpo.pages import figures
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page, address, render
from projected_grpo.pages.words import NONE, interval, p_value, rate, signed, table
from projected_grpo.parquet import read_parquet
from projected_grpo.verdicts.critic import traced
from projected_grpo.verdicts.critic_rounds import WEAK_CREDITS as CREDITS
from projected_grpo.verdicts.critic_rounds import Rounds, by_round, ends, hardness, since_calibration

FILES = ("run.json", "evaluations.parquet")
CHANGE = {name: f"{name}_change" for name in CREDITS}  # of a credit: the last round less the first
CHANGES = {CHANGE[name]: f"{words}, last less first round" for name, words in CREDITS.items()}
OTHERS = CHANGES | {"same_score": "traces with the commonest score"}
HARDNESS = "hardness"
MEASURES = CREDITS | OTHERS | {HARDNESS: "hardness of pairs, last less first round"}
Values = Mapping[CriticKind, Mapping[str, Mapping[int, float]]]  # kind -> measure -> seed -> value


def needs(context: Context) -> list[str]:
    """The rounds of all four critics, and the rollouts that they are measured on."""
    folders = [folder for by_seed in context.critics().values() for folder in by_seed.values()]
    rollouts = [path for seed in context.models.values() for path in traced(context, seed)]
    return [*context.below(*(f"{folder}/{file}" for folder in folders for file in FILES)), *rollouts]


def last(values: Rounds) -> Mapping[int, float]:
    """Return seed -> the value after the last round; round 0, before calibration, is none."""
    rounds = list(since_calibration(values).values())
    return rounds[-1] if rounds else {}


def change(values: Rounds) -> Mapping[int, float]:
    """Return seed -> the value after the last round less that after the first."""
    first, end = ends(values) or ({}, {})
    return {seed: end[seed] - first[seed] for seed in end if seed in first}


def values_of(context: Context, truth: Mapping[int, pd.DataFrame], folders: Mapping[int, str]) -> dict:
    """Return measure -> seed -> value of one kind of critic."""
    paths = {seed: context.results / folder for seed, folder in folders.items()}
    runs = [read_json(path / "run.json") for path in paths.values()]
    measured = {
        seed: errors(read_parquet(path / "evaluations.parquet"), truth[seed]) for seed, path in paths.items()
    }
    rounds = {name: by_round(measured, name) for name in (*CREDITS, "same_score")}
    found = {name: last(own) for name, own in rounds.items()}
    found |= {changed: change(rounds[name]) for name, changed in CHANGE.items()}
    return found | {HARDNESS: change(hardness(runs))}


@dataclass(frozen=True)
class Effect:
    """What one of the two causes, or both together, do to a measure."""

    cause: str
    measure: str
    pair: stats.Paired | None


def effects(values: Values) -> list[Effect]:
    """Return size, variety and their interaction on every measure; on both credits they are one family, the others
    another.
    """
    small, small_alike, large, large_alike = values
    weights = {
        "size": {large: 0.5, large_alike: 0.5, small: -0.5, small_alike: -0.5},
        "variety": {small: 0.5, large: 0.5, small_alike: -0.5, large_alike: -0.5},
        "interaction": {large: 1.0, large_alike: -1.0, small: -1.0, small_alike: 1.0},
    }
    asked = [(cause, measure) for cause in weights for measure in (*CREDITS, *OTHERS)]
    tests = []
    for cause, measure in asked:
        seeds = set.intersection(*(set(own[measure]) for own in values.values()))
        sums = {
            seed: sum(w * values[kind][measure][seed] for kind, w in weights[cause].items()) for seed in seeds
        }
        tests.append(stats.one_sample(sums) if sums else None)
    for family in (CREDITS, OTHERS):
        places = [i for i, (_, measure) in enumerate(asked) if measure in family]
        for i, pair in zip(places, stats.adjust([tests[i] for i in places]), strict=True):
            tests[i] = pair
    return [Effect(*key, pair) for key, pair in zip(asked, tests, strict=True)]


def name_of(kind: CriticKind, size: str) -> str:
    """Return what a critic is called; size: of the replication's own base."""
    return f"{kind.size or size}, {'vanilla alone' if kind.alike else 'vanilla and gt_only'}"


def values_table(values: Values, size: str) -> str:
    """Return the four critics."""

    def cell(own: Mapping[int, float]) -> str:
        summary = stats.summarise(list(own.values())) if own else None
        return NONE if summary is None else f"{rate(summary.mean)} ({rate(summary.std)}) n = {summary.n}"

    rows = [
        [name_of(kind, size), *(cell(own[measure]) for measure in MEASURES)] for kind, own in values.items()
    ]
    return table(["base, traces", *MEASURES.values()], rows)


def effects_table(found: list[Effect]) -> str:
    """Return the effects, a row each."""
    rows = []
    for effect in found:
        pair = effect.pair
        told = [NONE, NONE, NONE]
        if pair is not None:
            delta = f"{signed(pair.delta)} {interval(pair.lo, pair.hi)}".strip()
            told = [delta, p_value(pair.holm), pair.n]
        rows.append([effect.cause, MEASURES[effect.measure], *told])
    return table(["cause", "measure", "Δ", "Holm p", "n"], rows, 2)


def is_shown(pair: stats.Paired | None) -> bool:
    """Whether a difference is there: Holm's p below 0.05."""
    return pair is not None and pair.holm is not None and pair.holm < stats.ALPHA


def own_changes(values: Values) -> list[tuple[CriticKind, str, stats.Paired]]:
    """Return (critic, credit, its change over the rounds by itself), with Holm's p over them all."""
    asked = [(kind, credit) for kind in values for credit in CREDITS]
    tests = stats.adjust([stats.one_sample(values[kind][CHANGE[credit]]) for kind, credit in asked])
    return [(*key, pair) for key, pair in zip(asked, tests, strict=True) if pair and pair.p is not None]


def make(context: Context) -> Page:
    """Return the page of the two-by-two."""
    truth = {seed: oracle_scores(*traced(context, seed)) for seed in context.models.values()}
    folders = context.critics()
    values = {kind: values_of(context, truth, own) for kind, own in folders.items()}
    found, size = effects(values), context.config.model.size
    every = {
        f"{words}, {name_of(kind, size)}": list(values[kind][credit].values())
        for credit, words in CREDITS.items()
        for kind in values
    }
    drawing = figures.strip(every, "credit after the last round")
    credits = [effect for effect in found if effect.measure != "same_score" and effect.pair is not None]
    changes = own_changes(values)
    text = render(
        "critic_grid.md.j2",
        banner=context.config.banner,
        figure=f"{address(context.name)}credit.svg" if drawing is not None else "",
        known=bool(credits),
        shown=[
            (effect.cause, MEASURES[effect.measure], effect.pair)
            for effect in credits
            if is_shown(effect.pair)
        ],
        changes=len(changes),
        moved=[
            (name_of(kind, size), CREDITS[credit], pair) for kind, credit, pair in changes if is_shown(pair)
        ],
        values=values_table(values, size),
        effects=effects_table(found),
        n=len(truth),
        folders=[folder for own in folders.values() for folder in own.values()],
    )
    rows = [
        {"critic": name_of(kind, size), "measure": measure, "seed": seed, "value": value}
        for kind, own in values.items()
        for measure, by_seed in own.items()
        for seed, value in by_seed.items()
    ]
    frame = pd.DataFrame(rows, columns=["critic", "measure", "seed", "value"])
    return Page(context.name, text, {"credit": drawing} if drawing is not None else {}, {".parquet": frame})
