"""Effects against a number that rows differ in: the size of the model (Q20), the strength of a planted link (Q19).

A series is rows that are alike but for that number. Each seed gives a slope, by least squares over the points of its
series; seeds are the unit, as everywhere.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from projected_grpo.cells.cell import Row
from projected_grpo.cells.config import Config
from projected_grpo.cells.setting import Setting
from projected_grpo.measures import stats
from projected_grpo.measures.estimates import Comparison
from projected_grpo.measures.measured import Measured
from projected_grpo.measures.names import SLOPE
from projected_grpo.model.recipes import BaseRecipe

SIZE = "size"


def weights(recipe: BaseRecipe) -> int:
    """Return the parameters of a model's adapted Linears: all but embedding and norms."""
    attention = 2 * recipe.head_dim * (recipe.heads + recipe.kv_heads)  # q and o, k and v
    return recipe.layers * recipe.hidden * (attention + 3 * recipe.mlp)


def slope(points: Mapping[float, Mapping[int, float]]) -> stats.Tested | None:
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
    """Rows that are alike but for one number: x -> row's name, by growing x; axis: `size`, or the topic of a link."""

    name: str
    axis: str
    rows: dict[float, str]


def alike(setting: Setting, *but: str) -> str:
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


def label(row: Row) -> str:
    """Return what a row's series is called: its pair set, else its arm."""
    return "random V" if row.is_control else row.setting.source or row.setting.arm


def _series(axis: str, by_x: Mapping[float, Row], more: str = "") -> Series:
    row = next(iter(by_x.values()))
    return Series(label(row) + more, axis, {x: by_x[x].name for x in sorted(by_x)})


def series_of(own: Measured, config: Config) -> list[Series]:
    """Return all series of a question."""
    rows = tuple(own.rows.values())
    return [*by_link(rows, config), *by_size(rows, config)]


def by_link(rows: Sequence[Row], config: Config) -> Iterator[Series]:
    """Yield the series of each linked topic; a row without a link is at 0 of every topic."""
    links = {row.name: link_of(row, config) for row in rows}
    for axis in dict.fromkeys(topic for topic, _ in links.values() if topic):
        groups: dict[str, dict[float, Row]] = {}
        for row in (row for row in rows if links[row.name][0] in (None, axis)):
            groups.setdefault(alike(row.setting, "variant"), {}).setdefault(links[row.name][1], row)
        yield from (_series(axis, by_rho) for by_rho in groups.values() if len(by_rho) > 1)


def by_size(rows: Sequence[Row], config: Config) -> Iterator[Series]:
    """Yield the series over sizes: with the k of the default size everywhere, and with a k that moves with it."""
    home = math.log10(weights(config.small.of(config.model.size).recipe))
    groups: dict[str, dict[int | None, dict[float, Row]]] = {}  # what is alike -> k -> size
    for row in rows:
        use, by_k = row.cells[0].use, groups.setdefault(alike(row.setting, SIZE, "k"), {})
        by_k.setdefault(use.k if use else None, {}).setdefault(size_of(row, config), row)
    for by_k in groups.values():
        fixed = next((k for k, by_size in by_k.items() if home in by_size), None)
        same = by_k.pop(fixed, {})
        moving = {x: row for by_size in by_k.values() for x, row in by_size.items() if x != home}
        if len(same) > 1:
            yield _series(SIZE, same, f", k {fixed}" if moving else "")
        if moving:
            yield _series(SIZE, moving | ({home: same[home]} if home in same else {}), ", k by size")


def slopes(own: Measured, config: Config) -> list[Comparison]:
    """Return the slope of each series of a trend, of its differences to the baseline; a baseline has none."""
    found, about = [], own.about
    for one in series_of(own, config):
        rows = {x: own.rows[name] for x, name in one.rows.items()}
        if any(row.baseline is None for row in rows.values()):
            continue
        pairs = {x: {row.name: 1.0, str(row.baseline): -1.0} for x, row in rows.items()}
        test = slope({x: own.combined(pair, about.name) for x, pair in pairs.items()})
        waits = any(map(own.waits, pairs.values()))
        name = one.name if one.axis == SIZE else f"{one.name} on {one.axis}"
        claim = own.claims.issuperset(one.rows.values())
        found.append(Comparison(name, SLOPE, one.axis, about.name, test, None, claim, about.better, waits))
    return found
