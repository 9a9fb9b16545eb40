"""How numbers are written: percent and points in sentences and first tables, three decimals in detailed ones."""

import math
from collections.abc import Iterable

NONE = "–"


def _known(value: float | None) -> float:
    """Return a number; what is missing is NaN."""
    return math.nan if value is None else float(value)


def percent(value: float | None) -> str:
    """65%, 0.3% below one percent, or a dash."""
    share = 100 * _known(value)
    if math.isnan(share):
        return NONE
    return f"{share:.1g}%" if 0 < abs(share) < 0.95 else f"{share:.0f}%"


def points(value: float | None) -> str:
    """-52, +0.3 below one point, or a dash: a difference in percentage points."""
    share = 100 * _known(value)
    if math.isnan(share):
        return NONE
    return f"{share:+.1f}" if 0 < abs(share) < 0.95 else f"{round(share):+d}" if round(share) else "0"


def size(value: float | None) -> str:
    """52, without a sign."""
    return points(abs(_known(value))).lstrip("+")


def span(lo: float | None, hi: float | None) -> str:
    """-63 to -40, within what two rates can differ by, or a dash."""
    ends = _known(lo), _known(hi)
    return NONE if math.isnan(sum(ends)) else f"{points(max(ends[0], -1))} to {points(min(ends[1], 1))}"


def rate(value: float | None) -> str:
    """0.719, or a dash."""
    return NONE if math.isnan(_known(value)) else f"{value:.3f}"


def signed(value: float | None) -> str:
    """+0.012, or a dash."""
    return NONE if math.isnan(_known(value)) else f"{value:+.3f}"


def interval(lo: float | None, hi: float | None) -> str:
    """[-0.123, +0.045], or nothing."""
    return "" if math.isnan(_known(lo) + _known(hi)) else f"[{lo:+.3f}, {hi:+.3f}]"


def p_value(value: float | None) -> str:
    """0.012 or <0.001, or a dash."""
    p = _known(value)
    return NONE if math.isnan(p) else "<0.001" if p < 0.0005 else f"{p:.3f}"


def seed_list(seeds: Iterable[int]) -> str:
    """41-45 for a gapless run of at least three, else 41, 43."""
    seeds = sorted(seeds)
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds)) or NONE


def short(cells: Iterable[str]) -> list[str]:
    """Return ids with those that differ in their seed alone as one, in a form that a shell expands."""
    rows: dict[str, set[int]] = {}
    for cell in cells:
        name, found, seed = cell.rpartition("-s")
        numbered = bool(found) and seed.isdigit()
        rows.setdefault(name if numbered else cell, set()).update([int(seed)] if numbered else [])

    def said(name: str, seeds: list[int]) -> str:
        if len(seeds) < 2:
            return "-s".join([name, *map(str, seeds)])
        gapless = seeds == list(range(seeds[0], seeds[-1] + 1))
        inside = f"{seeds[0]}..{seeds[-1]}" if gapless else ",".join(map(str, seeds))
        return f"{name}-s{{{inside}}}"

    return [said(name, sorted(seeds)) for name, seeds in rows.items()]


def cell(text: object) -> str:
    """Return a text as a cell of a Markdown table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head: Iterable[str], rows: Iterable[Iterable[object]], texts: int = 1) -> str:
    """Return a Markdown table; its first `texts` columns are text, the others numbers."""
    head = list(head)
    rule = ["---" if i < texts else "---:" for i in range(len(head))]
    lines = [head, rule, *([cell(each) for each in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


FILTERS = {
    "percent": percent,
    "points": points,
    "size": size,
    "rate": rate,
    "signed": signed,
    "p": p_value,
    "seed_list": seed_list,
    "short": short,
}
