"""The page of a trend: effects against the size of the model or the strength of a planted link, and what they show."""

from collections.abc import Sequence
from statistics import mean

from projected_grpo.cells.config import Config
from projected_grpo.measures import stats
from projected_grpo.measures.table import Table
from projected_grpo.measures.trend import (
    REFERENCE,
    SIZE,
    Overlaps,
    Points,
    Series,
    overlap_points,
    points,
    size_of,
    slope,
)
from projected_grpo.pages.blocks import Cell, Grid, Paragraph, grid
from projected_grpo.pages.contrasts import is_shown, smallest_holm, span, with_n, with_p
from projected_grpo.pages.text import NONE, delta, interval, listing, p_is, paired_text, rate, under

# Topic of a link -> the pair set in the corpus's own words on it, and the one on the same topic in other words.
# `null_city` is none of them: each of its two cities has something of both sides of the link.
WORDED = {"honesty": ("honesty_said", "honesty_text"), "city": ("city_said", None)}
READ = (
    "A series is rows that are alike but for the size of the model, or for the link planted in its corpus. Its effect: "
    "the row's rate minus its baseline's, on the same base, paired by seed. Slope: least squares per seed, then its "
    "mean and 95% t-interval over seeds; Holm's p over the series of this page, of each comparison. `k by size`: in "
    "proportion to the axes that there are.",
    "Relative: the effect as a share of the baseline's own rate. Where that rate moves along the series, so does what "
    "can be lost: the plain slope follows it, the relative one does not.",
    "Slopes are per tenfold parameters of the adapted Linears, and from rho 0 to 1.",
    "Overlap: |V V'^T|^2 / k with the axes of `own_mode` at the same k, mean over modules; random axes have about k/r. "
    "Cosine: of the mean differences of the two pair sets over all modules, with its sign.",
)


def per(series: Series) -> str:
    """Return what a slope is per."""
    return "per tenfold parameters" if series.axis == SIZE else "from rho 0 to 1"


def marks(table: Table, config: Config, axis: str) -> dict[float, str]:
    """Return x -> what its tick says."""
    if axis == SIZE:
        return {size_of(line.row, config): line.row.setting.size or config.model.size for line in table.lines}
    return {}


def _mean(values: dict[int, float]) -> float | None:
    return mean(values.values()) if values else None


def _at(found: Points, form) -> str:
    """Return the means along a series, `0.1, 0.2, 0.3`."""
    return ", ".join(form(_mean(values)) for values in found.values()) if found else NONE


def _slope(pair: stats.Paired | None) -> Cell:
    if pair is None:
        return Cell(NONE)
    p = f", Holm p {p_is(pair.holm)}" if pair.holm is not None else ""
    return Cell(delta(pair.delta), under(interval, pair.lo, pair.hi) + p, strong=is_shown(pair))


def effect_grid(table: Table, found: Sequence[Series], config: Config) -> Grid:
    """Return the effect of each series along its axis, and its slopes."""

    def along(series: Series) -> str:
        ticks = marks(table, config, series.axis)
        return ", ".join(ticks.get(x, f"{x:g}") for x in series.rows)

    def rates(series: Series) -> str:
        held = points(table, series)
        return _at(held, delta) if held else f"rate {_at(points(table, series, None), rate)}"

    columns = {
        "series": lambda series: series.name,
        "against": lambda series: series.axis if series.axis == SIZE else f"link on {series.axis}",
        "at": along,
        "effect there": rates,
        "slope": lambda series: _slope(series.effect or series.level),
        "relative": lambda series: _slope(series.relative),
        "beyond random V": lambda series: _slope(series.beyond),
    }
    return grid(found, columns, texts=4, title=f"Differences in {table.about.words} along each series")


def others(table: Table, found: Sequence[Series]) -> list[Series]:
    """Return the series of other bases than the reference itself."""
    return [s for s in found if table.line(next(iter(s.rows.values()))).row.setting.basis != REFERENCE]


def _beyond_null(table: Table, series: Series, overlaps: Overlaps) -> Points:
    """Return the overlap less that of random axes of the same shape, which by itself falls with the size at fixed k."""
    return _less(*(overlap_points(table, series, overlaps, key) for key in ("overlap", "overlap_null")))


def overlap_grid(table: Table, found: Sequence[Series], overlaps: Overlaps) -> Grid | None:
    """Return how the axes of each series lie to those of the exploits' own pairs."""
    rows = [series for series in others(table, found) if overlap_points(table, series, overlaps, "overlap")]

    def of(key: str):
        return lambda series: _at(overlap_points(table, series, overlaps, key), rate)

    columns = {
        "series": lambda series: series.name,
        "against": lambda series: series.axis if series.axis == SIZE else f"link on {series.axis}",
        "overlap": of("overlap"),
        "random": of("overlap_null"),
        "slope of overlap less random": lambda series: _slope(slope(_beyond_null(table, series, overlaps))),
        "cosine": lambda series: _at(overlap_points(table, series, overlaps, "cosine"), delta),
        "slope of the cosine": lambda series: _slope(
            slope(overlap_points(table, series, overlaps, "cosine"))
        ),
    }
    title = "How each basis lies to that of `own_mode`, along each series"
    return grid(rows, columns, texts=2, title=title) if rows else None


def _ends(table: Table, series: Series) -> str:
    held = [_mean(values) for values in points(table, series).values()]
    return f"{delta(held[0])} to {delta(held[-1])}"


def _moves(table: Table, series: Series) -> str:
    """Return where an effect goes along a series, by the ends of the line through its means."""
    held = {x: _mean(values) for x, values in points(table, series).items()}
    middle, x = mean(held.values()), list(held)
    first, last = (middle + series.effect.delta * (end - mean(x)) for end in (x[0], x[-1]))
    if first * last < 0:
        return f"turns from {'lowering to raising' if last > 0 else 'raising to lowering'} this rate"
    less = abs(last) < abs(first)
    return f"{'lowers' if first + last < 0 else 'raises'} this rate {'less' if less else 'more'}"


def levels(table: Table, found: Sequence[Series], axis: str) -> list[str]:
    """Say how the baseline's own rate moves along an axis: what an effect can take away moves with it."""
    said = []
    for series in found:
        rates = [_mean(values) for values in points(table, series, None).values()]
        level = series.level
        if series.axis != axis or level is None or None in rates:
            continue
        moves = f"slope {paired_text(level)} {per(series)}, n = {level.n}"
        if level.is_told:
            end = f"moves ({moves}): so much {'more' if level.delta > 0 else 'less'} there is to take away."
        else:
            end = f"is not shown to move ({moves})."
        said.append(f"`{series.name}` itself, from {rate(rates[0])} to {rate(rates[-1])}, {end}")
    return said


FOLLOWS = {
    (True, True): "the link suffices, in whatever words",
    (True, False): "pairs in the corpus's own words follow it; of those in other words it is not shown",
    (False, True): "pairs in other words follow it; of those in the corpus's own it is not shown",
    (False, False): "no pair set on the topic is shown to lower hacking more where the link is stronger",
}


def _follows(series: Series) -> bool:
    return is_shown(series.effect) and series.effect.delta < 0


def _topics(found: Sequence[Series]) -> list[str]:
    """Return the linked topics, in the order of the series."""
    return list(dict.fromkeys(series.axis for series in found if series.axis in WORDED))


def wording(table: Table, found: Sequence[Series], overlaps: Overlaps) -> list[str]:
    """Say of each linked topic whether the link suffices, or the wording must be known, too.

    The wording counts where the two slopes are shown to differ, not where one is shown and the other is not.
    """
    said, beside = [], []
    for topic in _topics(found):
        own = {series.name: series for series in found if series.axis == topic}
        pair = [own.get(name) for name in WORDED[topic] if name]
        if len(pair) < 2 or any(series is None or series.effect is None for series in pair):
            continue
        known, other = pair
        apart = slope(_less(points(table, known), points(table, other)))
        if apart is None:
            continue
        verdict = FOLLOWS[_follows(known), _follows(other)]
        if _follows(known) != _follows(other) and apart.is_told:
            words = "the corpus's own" if _follows(known) else "other"
            verdict = f"the wording must be known, too: only pairs in {words} words follow it"
        changes = [f"`{series.name}` by {with_p(series.effect)}" for series in pair]
        cosines = [slope(overlap_points(table, series, overlaps, "cosine")) for series in pair]
        turns = [f"`{series.name}` by {paired_text(own)}" for series, own in zip(pair, cosines, strict=True)]
        said.append(
            f"Link on {topic}: {verdict}. From rho 0 to 1 effects change: {listing(changes)}. "
            f"The cosines with `own_mode` change: {listing(turns)}."
        )
        raw = f", raw p {p_is(apart.p)}" if apart.p is not None else ""
        beyond = [f"`{series.name}` {with_p(series.beyond)}" for series in pair if series.beyond]
        less = f" Less what random V does: {listing(beyond)}." if beyond else ""
        beside.append(
            f"The slopes of `{known.name}` and `{other.name}` differ by {paired_text(apart)}{raw}.{less}"
        )
    return said + _seen(table, found, overlaps) + beside + _elsewhere(table, found)


def _less(one: Points, other: Points) -> Points:
    """Return x -> seed -> the difference of two series' values, over the seeds that both have."""
    return {x: {seed: by[seed] - other[x][seed] for seed in by if seed in other[x]} for x, by in one.items()}


def _elsewhere(table: Table, found: Sequence[Series]) -> list[str]:
    """Say of each link what pair sets on other topics do along it, its control: they should not follow it."""
    said = []
    for topic in _topics(found):
        own = [s for s in others(table, found) if s.axis == topic and s.effect and s.beyond]
        own = [series for series in own if series.name not in WORDED[topic]]
        follow = [f"`{series.name}` {with_p(series.effect)}" for series in own if _follows(series)]
        if own:
            text = f"Control: of {len(own)} pair sets on other topics {len(follow) or 'none'} "
            text += f"{'are' if len(follow) > 1 else 'is'} shown to follow the link on {topic} "
            names = listing([f"`{series.name}`" for series in own])
            more = "; so these corpora differ in more than the link's topic" if follow else ""
            said.append(f"{text}({listing(follow) if follow else names}){more}.")
    return said


def _seen(table: Table, found: Sequence[Series], overlaps: Overlaps) -> list[str]:
    """Say of each linked topic whether the gradients of the pairs in the corpus's own words show the link at all.

    Shown is a link that moves them towards the exploits: Holm's p over these tests.
    """
    own = [s for s in found if s.axis in WORDED and s.name == WORDED[s.axis][0]]
    tests = [
        slope(moved)
        for series in own
        for moved in (
            _beyond_null(table, series, overlaps),
            overlap_points(table, series, overlaps, "cosine"),
        )
    ]
    tests, said = stats.adjust(tests), []
    for series, share, cosine in zip(own, tests[::2], tests[1::2], strict=True):
        if share is None or cosine is None or share.p is None or cosine.p is None:
            continue
        moves = [f"overlap less random {with_p(share)}", f"cosine {with_p(cosine)}"]
        shown = any(is_shown(pair) and pair.delta > 0 for pair in (share, cosine))
        verdict = (
            "is in the gradients"
            if shown
            else "is not shown in the gradients: where an effect is not shown, the model may just not have learned it"
        )
        said.append(
            f"The link on {series.axis} {verdict}. From rho 0 to 1 `{series.name}` moves towards `own_mode` by "
            f"{listing(moves)}, n = {share.n}."
        )
    return said


def sentences(table: Table, found: Sequence[Series], overlaps: Overlaps) -> tuple[str, ...]:
    """Return the answer: of each axis, which effects change along it."""
    known = [series for series in found if series.effect is not None and all(points(table, series).values())]
    if not found:
        return ("All rows have one model: there is nothing to compare along.",)
    if not known:
        return ("No series has runs at two points yet.",)
    said = wording(table, known, overlaps)
    for axis in dict.fromkeys(series.axis for series in known):
        said += _along(table, [series for series in known if series.axis == axis], axis)
        said += levels(table, found, axis) if axis == SIZE else []
    return tuple(said)


def _along(table: Table, own: Sequence[Series], axis: str) -> list[str]:
    """Say how many effects change along an axis and what those do, and those of the exploits' own pairs in any case;
    the others stand in one sentence.
    """
    where = "the size of the model" if axis == SIZE else f"the link on {axis}"
    foreign = others(table, own)
    first, *rest = sorted(own, key=lambda series: (not is_shown(series.effect), series in foreign))
    moved = sum(is_shown(series.effect) for series in own)
    count = f"{moved or 'None'} of {len(own)} effects on {table.about.words} "
    count += f"{'is' if moved < 2 else 'are'} shown to change with {where}."
    said, listed = [f"{count} {_effect(table, first)}"], []
    for series in rest:
        if is_shown(series.effect):
            said.append(f"Changes with {where}: {_effect(table, series)}")
        elif series in foreign:
            listed.append(series)
        else:
            said.append(f"Not shown to change with {where}: {_effect(table, series)}")
    if listed:
        pairs = [series.effect for series in listed]
        names = listing([f"`{series.name}`" for series in listed])
        slopes = f"slopes {span([pair.delta for pair in pairs], delta)} {per(own[0])}"
        facts = ", ".join(filter(None, (slopes, smallest_holm(pairs), with_n(pairs))))
        said.append(f"Not shown to change with {where}: {names} ({facts}).")
    return said


def _effect(table: Table, series: Series) -> str:
    """Say how an effect goes along its series."""
    text = f"`{series.name}` {_ends(table, series)}, slope {with_p(series.effect)} {per(series)}, "
    text += f"n = {series.effect.n}; by its slope it {_moves(table, series)}."
    if (share := series.relative) and is_shown(series.effect):
        text += f" The slope of its share of the baseline's rate: {with_p(share)}, n = {share.n}."
    return text


def blocks(table: Table, found: Sequence[Series], overlaps: Overlaps, config: Config) -> tuple:
    """Return what stands first on the page."""
    seen = overlap_grid(table, found, overlaps)
    notes = tuple(Paragraph(text, kind="legend") for text in READ)
    return (*((effect_grid(table, found, config),) if found else ()), *((seen,) if seen else ()), *notes)
