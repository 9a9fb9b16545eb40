"""Effects against a number that rows differ in: the size of the model (Q20), the strength of a planted link (Q19).

A series is rows that are alike but for that number. Each seed gives a slope, by least squares over the points of its
series; seeds are the unit, as everywhere.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from projected_grpo.cells.cell import Question, Row
from projected_grpo.cells.config import Config
from projected_grpo.cells.knobs import Use
from projected_grpo.cells.setting import Setting
from projected_grpo.measures import stats
from projected_grpo.measures.columns import TREND, to_frame
from projected_grpo.measures.estimates import Comparison, Measured, is_claim
from projected_grpo.measures.table import Line, Table
from projected_grpo.model.recipes import BaseRecipe

SIZE = "size"
REFERENCE = "own_mode"  # the pairs of the exploits themselves, which every other set is held against
OVERLAPS = ("overlap", "overlap_null", "cosine")
Points = dict[float, dict[int, float]]  # x -> seed -> value
Overlaps = Mapping[str, Sequence[Mapping]]  # model -> what `stages.contrast.overlaps` measured there


def uses(question: Question, model: str, config: Config) -> list[tuple[str, Use]]:
    """Return the basis and its use of each row on a model whose axes come from pairs, each once, sorted."""
    found = {
        (cell.setting.basis, cell.settings.use)
        for cell in question.cells
        if cell.model == model and cell.basis and cell.setting.adapter == "antipasto"
    }
    real = [(basis, use) for basis, use in found if not config.knobs(basis).is_seeded]
    return sorted(real, key=lambda pair: (pair[0], pair[1].k, pair[1].drop_bottom_frac))


def weights(recipe: BaseRecipe) -> int:
    """Return the parameters of a model's adapted Linears: all but embedding and norms."""
    attention = 2 * recipe.head_dim * (recipe.heads + recipe.kv_heads)  # q and o, k and v
    return recipe.layers * recipe.hidden * (attention + 3 * recipe.mlp)


def slope(points: Mapping[float, Mapping[int, float]]) -> stats.Paired | None:
    """Test the least-squares slope of values against x, one a seed, over the seeds that have a value at every x.

    None below two points, or without such a seed.
    """
    x = np.array(sorted(points))
    if len(x) < 2:
        return None
    seeds = sorted(set.intersection(*(set(own) for own in points.values())))
    off = x - x.mean()
    return stats.one_sample(
        {seed: float(off @ [points[at][seed] for at in x] / (off @ off)) for seed in seeds}
    )


@dataclass(frozen=True)
class Series:
    """Rows that are alike but for one number: x -> row's name, by growing x; axis: `size`, or the topic of a link.

    slopes: of each row's difference to its baseline, of that as a share of the baseline's rate, of its difference to
    its random V; of the baseline's own rate where it is one.
    """

    name: str
    axis: str
    rows: dict[float, str]
    effect: stats.Paired | None = None
    relative: stats.Paired | None = None
    beyond: stats.Paired | None = None
    level: stats.Paired | None = None


def _alike(setting: Setting, *but: str) -> str:
    """Return what tells a row's series from others, without the settings and knobs `but`."""
    knobs = setting.knobs.model_dump(exclude=set(but))
    return f"{setting.model_dump(exclude={'knobs', *but})} {knobs}"


def size_of(row: Row, config: Config) -> float:
    """Return log10 of the parameters of a row's model."""
    return math.log10(weights(config.small.of(row.setting.size or config.model.size).recipe))


def link_of(row: Row, config: Config) -> tuple[str | None, float]:
    """Return the topic and the strength of the link in a row's corpus; (None, 0) without one."""
    link = config.small.corpus(row.setting.variant)[1]
    return (link.topic, link.rho) if link and link.rho else (None, 0.0)


def _name(row: Row) -> str:
    return "random V" if row.is_control else row.setting.source or row.setting.arm


def series_of(own: Measured, config: Config) -> list[Series]:
    """Return all series of a question."""
    rows = tuple(own.rows.values())
    return [*by_link(rows, config), *by_size(rows, config)]


def by_link(rows: Sequence[Row], config: Config) -> list[Series]:
    """Return the series of each linked topic; a row without a link is at 0 of every topic."""
    places = {row.name: link_of(row, config) for row in rows}
    found = []
    for axis in dict.fromkeys(topic for topic, _ in places.values() if topic):
        groups: dict[str, dict[float, Row]] = {}
        for row in rows:
            topic, rho = places[row.name]
            if topic in (None, axis):
                groups.setdefault(_alike(row.setting, "variant"), {}).setdefault(rho, row)
        found += [(axis, "", lines) for lines in groups.values() if len(lines) > 1]
    return [_series(*one) for one in found]


def by_size(rows: Sequence[Row], config: Config) -> list[Series]:
    """Return the series over sizes: with the k of the default size everywhere, and with a k that moves with it."""
    default = config.small.of(config.model.size).recipe
    home = math.log10(weights(default))
    groups: dict[str, dict[int | None, dict[float, Row]]] = {}
    for row in rows:
        use, own = row.cells[0].settings.use, _alike(row.setting, SIZE, "k")
        by_k = groups.setdefault(own, {}).setdefault(use and use.k, {})
        by_k.setdefault(size_of(row, config), row)
    found = []
    for by_k in groups.values():
        fixed = next((k for k, lines in by_k.items() if home in lines), None)
        moving = {x: line for k, lines in by_k.items() if k != fixed for x, line in lines.items()}
        same = by_k.get(fixed, {})
        if len(same) > 1:
            found.append((SIZE, f", k {fixed}" if moving else "", same))
        if moving:
            found.append((SIZE, ", k by size", moving | ({home: same[home]} if home in same else {})))
    return [_series(*one) for one in found]


def _series(axis: str, more: str, lines: Mapping[float, Row]) -> Series:
    ordered = {x: lines[x].name for x in sorted(lines)}
    return Series(_name(next(iter(lines.values()))) + more, axis, ordered)


def points(table: Table, series: Series, other: str | None = "baseline") -> Points:
    """Return x -> seed -> the row's own measure minus that of its `baseline` or its `random` V; None: the rate itself.

    Empty where a row has no such other row.
    """
    found = {}
    for x, name in series.rows.items():
        line = table.line(name)
        held = {"baseline": line.row.baseline, "random": line.random, None: None}[other]
        if other and held is None:
            return {}
        weights = {name: 1.0} | ({held: -1.0} if held else {})
        found[x] = table.combined(weights, table.primary)
    return found


def shares(table: Table, series: Series) -> Points:
    """Return x -> seed -> the row's difference to its baseline as a share of the baseline's rate, unless that is 0."""
    held = points(table, series)
    base = (
        {x: table.line(table.line(name).row.baseline).values for x, name in series.rows.items()}
        if held
        else {}
    )
    return {
        x: {seed: value / own for seed, value in by_seed.items() if (own := base[x][table.primary][seed]) > 0}
        for x, by_seed in held.items()
    }


def trends(table: Table, config: Config) -> list[Series]:
    """Return all series of a table with their slopes; Holm's p is over the series, of each comparison."""
    rows = [line.row for line in table.lines]
    found = [*by_link(rows, config), *by_size(rows, config)]
    slopes = {
        key: [slope(points(table, series, other)) for series in found]
        for key, other in (("effect", "baseline"), ("beyond", "random"), ("level", None))
    }
    slopes["relative"] = [slope(shares(table, series)) for series in found]
    short = set(table.left_out)
    late = [
        any(cell.id in short for name in series.rows.values() for cell in table.line(name).row.cells)
        for series in found
    ]
    for key in ("effect", "relative", "beyond"):
        waiting = sum(pair is None and missing for pair, missing in zip(slopes[key], late, strict=True))
        slopes[key] = stats.adjust(slopes[key], waiting)
    own = [dict(zip(slopes, tests, strict=True)) for tests in zip(*slopes.values(), strict=True)]
    return [
        replace(series, **tests | ({"level": None} if tests["effect"] else {}))
        for series, tests in zip(found, own, strict=True)
    ]


def overlap_points(table: Table, series: Series, overlaps: Overlaps, key: str) -> Points:
    """Return x -> seed -> how the row's basis lies to the reference's at the same k; empty where that is unknown."""
    found = {x: seen for x, name in series.rows.items() if (seen := seen_of(table.line(name), overlaps, key))}
    return found if len(found) == len(series.rows) else {}


def seen_of(line: Line, overlaps: Overlaps, key: str) -> dict[int, float]:
    """Return seed -> how a row's basis lies to the reference's; key: of `OVERLAPS`."""
    found = {}
    for cell in line.row.cells:
        for one in overlaps.get(cell.model, ()):
            if cell.basis == one["basis"] and cell.settings.use.k == one["k"]:
                found[cell.seed] = one[key]
    return found


SLOPE = "slope"


def slopes(own: Measured, config: Config) -> list[Comparison]:
    """Return the slope of each series of a trend, of its differences to the baseline; a baseline has none."""
    found, measure = [], own.about.name
    for one in series_of(own, config):
        held = points_of(own, one, measure)
        if not held:
            continue
        rows = [own.rows[name] for name in one.rows.values()]
        waits = any(not own.short.isdisjoint((row.name, row.baseline)) for row in rows)
        claim = all(is_claim(row) for row in rows)
        found.append(
            Comparison(one.name, SLOPE, one.axis, measure, slope(held), None, claim, own.about.better, waits)
        )
    return found


def points_of(own: Measured, series: Series, measure: str, baseline: bool = True) -> Points:
    """Return x -> seed -> a row's difference to its baseline, or its own number; empty where a row has no baseline."""
    names = series.rows.items()
    if baseline and any(own.rows[name].baseline is None for _, name in names):
        return {}
    more = {x: {own.rows[name].baseline: -1.0} if baseline else {} for x, name in names}
    return {x: own.combined({name: 1.0} | more[x], measure) for x, name in names}


def trend_frame(table: Table, config: Config, found: Sequence[Series], overlaps: Overlaps) -> pd.DataFrame:
    """Return the rows of any table, then those of `TREND`; a slope stands in the row of the largest x of its series."""
    ends = {series.rows[max(series.rows)]: series for series in found}
    records = []
    for line in table.every:
        series = ends.get(line.name)
        topic, rho = link_of(line.row, config)
        pair = series and series.effect
        seen = [list(seen_of(line, overlaps, key).values()) for key in OVERLAPS]
        record = (config.is_replicated and size_of(line.row, config), topic, rho)
        record += tuple(float(np.mean(values)) if values else None for values in seen)
        record += (
            series and series.name,
            *((pair.delta, pair.lo, pair.hi, pair.p, pair.holm) if pair else (None,) * 5),
        )
        records.append(record)
    more = pd.DataFrame(records, columns=list(TREND))
    for name, (unit, _) in TREND.items():
        if unit:
            more[name] = pd.to_numeric(more[name]).astype("float64")
    return pd.concat([to_frame(table), more], axis=1)
