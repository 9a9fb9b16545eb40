"""How numbers are written everywhere: three decimals, a sign on differences, a dash for what is not there."""

import math
import re
from collections.abc import Callable, Iterable

from projected_grpo.measures.stats import ALPHA, MARGIN, Paired

NONE = "–"


def rate(value: float | None) -> str:
    """0.719, or a dash."""
    return NONE if value is None or math.isnan(value) else f"{value:.3f}"


def delta(value: float | None) -> str:
    """+0.012, or a dash."""
    return NONE if value is None or math.isnan(value) else f"{value:+.3f}"


def interval(lo: float | None, hi: float | None) -> str:
    """[-0.123, +0.045], or a dash."""
    return NONE if lo is None or math.isnan(lo) else f"[{lo:+.3f}, {hi:+.3f}]"


def under(form: Callable[..., str], *values: float | None) -> str:
    """What stands below a number in its cell; nothing where there is no value."""
    return "" if values[0] is None or math.isnan(values[0]) else form(*values)


def paired_text(pair: Paired | None) -> str:
    """-0.040 [-0.123, +0.045], without the interval where it has none, or a dash."""
    if pair is None:
        return NONE
    return delta(pair.delta) + ("" if pair.lo is None else f" {interval(pair.lo, pair.hi)}")


def p_value(value: float | None) -> str:
    """0.012 or <0.001, or a dash."""
    if value is None or math.isnan(value):
        return NONE
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def p_is(value: float) -> str:
    """`= 0.012` or `< 0.001`, for a sentence."""
    return "< 0.001" if value < 0.0005 else f"= {value:.3f}"


def seed_list(seeds: tuple[int, ...]) -> str:
    """41-45 for a gapless run of at least three, else 41, 43."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds) or NONE


def short(cells: Iterable[str]) -> list[str]:
    """Return ids with those that differ in their seed alone as one, in a form that a shell expands."""
    rows: dict[str, set[int]] = {}
    for cell in cells:
        name, seed = re.fullmatch(r"(.+?)(?:-s(\d+))?", cell).groups()
        rows.setdefault(name, set()).update([int(seed)] if seed else [])

    def said(name: str, seeds: list[int]) -> str:
        if len(seeds) < 2:
            return "-s".join([name, *map(str, seeds)])
        gapless = seeds == list(range(seeds[0], seeds[-1] + 1))
        inside = f"{seeds[0]}..{seeds[-1]}" if gapless else ",".join(map(str, seeds))
        return f"{name}-s{{{inside}}}"

    return [said(name, sorted(seeds)) for name, seeds in rows.items()]


def listing(items: list[str]) -> str:
    """a; b; and c."""
    return items[0] if len(items) == 1 else "; ".join(items[:-1]) + "; and " + items[-1]


def is_shown(pair: Paired | None) -> bool:
    """Whether a difference is there: Holm's p below 0.05."""
    return pair is not None and pair.holm is not None and pair.holm < ALPHA


def with_p(pair: Paired) -> str:
    """Return a difference with Holm's p, where it has one."""
    return paired_text(pair) + (f", Holm p {p_is(pair.holm)}" if pair.holm is not None else "")


def with_bound(pair: Paired) -> str:
    """Return what a difference that is not shown may still be: within the margin, or beyond a one-sided bound."""
    if pair.same_holm is not None and pair.same_holm < ALPHA:
        return f"equivalent within {rate(MARGIN)} (Holm p {p_is(pair.same_holm)})"
    sides = {"lower": -pair.least, "higher": pair.most}
    side = "lower" if sides["lower"] > 0 else "higher"
    return f"at most {rate(sides[side])} {side} (one-sided 95%, unadjusted)"
