"""The self-taught critic two by two: the size of its base, and the variety of the traces that it learns from.

Where credit against the weak score stays, this says whether either of the two is shown to matter, for its level after
the last round or for its change over the rounds; the training is the same in all four. All four critics of a
replication are measured on the same traces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure as Drawing

from projected_grpo.cells.self_taught import CriticKind
from projected_grpo.evaluator.oracle import errors, oracle_scores
from projected_grpo.files import read_json
from projected_grpo.measures import stats
from projected_grpo.pages import style
from projected_grpo.pages.blocks import Cell, Figure, Grid, Listing, Page, Paragraph, Source, grid
from projected_grpo.pages.context import Context
from projected_grpo.pages.number_cells import mean_cell
from projected_grpo.pages.standing import of_seeds
from projected_grpo.pages.text import (
    NONE,
    delta,
    interval,
    is_shown,
    listing,
    p_value,
    under,
    with_bound,
    with_p,
)
from projected_grpo.parquet import read_parquet
from projected_grpo.verdicts.critic import traced
from projected_grpo.verdicts.critic_rounds import WEAK_CREDITS as CREDITS
from projected_grpo.verdicts.critic_rounds import Rounds, by_round, ends, hardness, since_calibration
from projected_grpo.verdicts.verdict import Verdict

FILES = ("run.json", "evaluations.parquet")
CHANGE = {name: f"{name}_change" for name in CREDITS}  # of a credit: the last round less the first
CHANGES = {CHANGE[name]: f"{words}, last less first round" for name, words in CREDITS.items()}
OTHERS = CHANGES | {"same_score": "traces with the commonest score"}
HARDNESS = "hardness"
MEASURES = CREDITS | OTHERS | {HARDNESS: "hardness of pairs, last less first round"}
READ = (
    "After the last round, on held-out problems; credit against the weak score. Means over replications (std, ddof 1).",
    "Size: the larger base less the smaller, over both kinds of traces. Variety: with the traces of `gt_only` less "
    "without, over both sizes. Interaction: what variety does on the larger base less what it does on the smaller. "
    "Paired by replication, 95% t-interval, Holm's p over the effects on both credits, and over all others; of the "
    "critics' own changes over the rounds, over these.",
    "All four are measured on traces of both runs. So variety also means having seen the kind of run that half of "
    "them are from. Hardness has no test: each critic has a reference of its own base and traces.",
)
CAPTION = "Credit of the four critics against the weak score after the last round, a dot a replication; bars: means."
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


def values_grid(values: Values, size: str) -> Grid:
    """Return the four critics."""

    def of(measure: str):
        return lambda kind: mean_cell(values[kind][measure].values())

    columns = {"base, traces": lambda kind: name_of(kind, size)}
    return grid(values, columns | {words: of(measure) for measure, words in MEASURES.items()})


def effects_grid(found: list[Effect]) -> Grid:
    """Return the effects, a row each."""
    columns = {
        "cause": lambda effect: effect.cause,
        "measure": lambda effect: MEASURES[effect.measure],
        "Δ": lambda effect: Cell(
            delta(effect.pair.delta if effect.pair else None),
            under(interval, effect.pair.lo, effect.pair.hi) if effect.pair else "",
            strong=is_shown(effect.pair),
        ),
        "Holm p": lambda effect: p_value(effect.pair and effect.pair.holm),
        "n": lambda effect: str(effect.pair.n) if effect.pair else NONE,
    }
    return grid(found, columns, texts=2, title="What size and variety do")


def sentences(found: list[Effect]) -> tuple[str, ...]:
    """Say what size and variety are shown to do to credit, to its level and to its change over the rounds."""
    known = [effect for effect in found if effect.measure != "same_score" and effect.pair is not None]
    if not known:
        return ("No replication has all four critics.",)
    by = {(effect.cause, effect.measure): effect.pair for effect in known}
    said = []
    for cause in dict.fromkeys(effect.cause for effect in known):
        for measure, words in CREDITS.items():
            level, moved = by.get((cause, measure)), by.get((cause, CHANGE[measure]))
            texts = [f"{cause.capitalize()} on {words}: {_changed(level)}."] if level else []
            texts += [f"On its change over the rounds: {_changed(moved)}."] if moved else []
            said += [" ".join(texts)] * bool(texts)
    shown = [effect for effect in known if is_shown(effect.pair)]
    if shown:
        return (f"Shown: {listing([_moved(effect, by) for effect in shown])}.", *said)
    text = "Neither the size of the base nor the variety of traces is shown to change either credit, after the last "
    return (
        f"{text}round or over the rounds. The training, the same in all four critics, was not varied.",
        *said,
    )


def own_changes(values: Values, size: str) -> tuple[str, ...]:
    """Say which critics' credits change over the rounds by themselves; Holm's p over them all."""
    asked = [(kind, credit) for kind in values for credit in CREDITS]
    tests = stats.adjust([stats.one_sample(values[kind][CHANGE[credit]]) for kind, credit in asked])
    known = [(key, pair) for key, pair in zip(asked, tests, strict=True) if pair and pair.p is not None]
    if not known:
        return ()
    shown = [
        f"{CREDITS[credit].capitalize()} of {name_of(kind, size)} {with_p(pair)}, n = {pair.n}."
        for (kind, credit), pair in known
        if is_shown(pair)
    ]
    verb = "is" if len(shown) < 2 else "are"
    text = f"Of the four critics' {len(known)} changes of a credit over the rounds {len(shown) or 'none'} {verb} shown"
    return (" ".join([f"{text}.", *shown]),)


def _moved(effect: Effect, by: Mapping[tuple[str, str], stats.Paired]) -> str:
    """Say what an effect that is shown does; of an interaction, what variety does at each size.

    by: (cause, measure) -> its test.
    """
    if effect.cause != "interaction":
        return f"{effect.cause} {'lowers' if effect.pair.delta < 0 else 'raises'} {MEASURES[effect.measure]}"
    middle = by["variety", effect.measure].delta
    small, large = (middle + sign * effect.pair.delta / 2 for sign in (-1, 1))
    return (
        f"what variety does to {MEASURES[effect.measure]} depends on the size, {delta(small)} on the smaller base and "
        f"{delta(large)} on the larger"
    )


def _changed(pair: stats.Paired) -> str:
    """Return a difference, with a bound where none is shown."""
    open_ = pair.p is not None and not is_shown(pair)
    return f"{with_p(pair)}, n = {pair.n}" + (f", {with_bound(pair)}" if open_ else "")


def draw(values: Values, size: str) -> Drawing | None:
    """Draw both credits of the four critics; None without any."""
    if not any(values[kind][measure] for kind in values for measure in CREDITS):
        return None
    with style.styled():
        drawing = style.figure(2.4)
        for axes, measure in zip(drawing.subplots(1, 2, sharey=True), CREDITS, strict=True):
            for y, kind in enumerate(values):
                own = list(values[kind][measure].values())
                axes.plot(own, [y] * len(own), "o", color=style.PALETTE[y], alpha=0.5, markersize=4)
                if own:
                    axes.plot([sum(own) / len(own)] * 2, [y - 0.3, y + 0.3], color=style.INK)
            axes.set_title(MEASURES[measure], fontsize=9)
            axes.set_xlim(-0.02, 1.02)
        style.rows(drawing.axes[0], [name_of(kind, size) for kind in values])
        return drawing


def make(context: Context) -> Verdict:
    """Return the page of the two-by-two."""
    truth = {seed: oracle_scores(*traced(context, seed)) for seed in context.models.values()}
    folders = context.critics()
    values = {kind: values_of(context, truth, own) for kind, own in folders.items()}
    found, size = effects(values), context.config.model.size
    said, drawing = (*sentences(found), *own_changes(values, size)), draw(values, size)
    drawn = {} if drawing is None else {"credit": (drawing, CAPTION)}
    page = Page(
        name=context.name,
        title="The self-taught evaluator, two by two",
        menu="Critic 2x2",
        asks="Is it the size of its base, or the variety of the traces it learns from, that limits the critic?",
        blocks=(
            *(Figure(name, caption) for name, (_, caption) in drawn.items()),
            values_grid(values, size),
            effects_grid(found),
            *(Paragraph(text, kind="note") for text in READ),
        ),
        answer=(*map(Paragraph, of_seeds(list(truth))), Listing(said)),
        finding=" ".join([*of_seeds(list(truth)), said[0]]),
        sources=tuple(
            Source(name_of(kind, size), files=tuple(own.values())) for kind, own in folders.items()
        ),
    )
    rows = [
        {"critic": name_of(kind, size), "measure": measure, "seed": seed, "value": value}
        for kind, own in values.items()
        for measure, by_seed in own.items()
        for seed, value in by_seed.items()
    ]
    return Verdict(page, pd.DataFrame(rows, columns=["critic", "measure", "seed", "value"]), drawn, said)
