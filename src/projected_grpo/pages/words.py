"""How numbers are written: percent and points in sentences and first tables, three decimals in detailed ones."""

import math
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import chain

NONE = "–"


def _or_dash(write: Callable[..., str]) -> Callable[..., str]:
    """Return a way to write numbers that has a dash for what is missing: None, or NaN."""

    @wraps(write)
    def written(*numbers: float | None) -> str:
        known = [math.nan if number is None else float(number) for number in numbers]
        return NONE if math.isnan(sum(known)) else write(*known)

    return written


@_or_dash
def percent(share: float) -> str:
    """65%, or 0.3% below one percent."""
    return f"{100 * share:.1g}%" if 0 < abs(100 * share) < 0.95 else f"{100 * share:.0f}%"


@_or_dash
def points(difference: float) -> str:
    """-52, or +0.3 below one point: a difference in percentage points."""
    share = 100 * difference
    return f"{share:+.1f}" if 0.05 <= abs(share) < 0.95 else f"{round(share):+d}" if round(share) else "0"


@_or_dash
def size(difference: float) -> str:
    """52, without a sign."""
    return points(abs(difference)).lstrip("+")


@_or_dash
def span(lo: float, hi: float) -> str:
    """-63 to -40, within what two rates can differ by."""
    return f"{points(max(lo, -1))} to {points(min(hi, 1))}"


@_or_dash
def rate(value: float) -> str:
    """0.719."""
    return f"{value:.3f}"


def mean(value: float | None, is_rate: bool) -> str:
    """Write a mean as tables have it: a share in percent."""
    return percent(value) if is_rate else rate(value)


@_or_dash
def signed(value: float) -> str:
    """+0.012."""
    return f"{value:+.3f}"


@_or_dash
def p_value(p: float) -> str:
    """0.012, or <0.001; at 0.05, which decides, one digit more."""
    return "<0.001" if p < 0.0005 else f"{p:.4f}" if round(p, 3) == 0.05 else f"{p:.3f}"


def fraction(share: float) -> str:
    """An eighth, for the shares of a batch that prompts can be divided into; else in percent."""
    return {0: "none", 0.125: "an eighth", 0.25: "a quarter", 0.5: "half"}.get(share) or percent(share)


def change(delta: float | None, lo: float | None, hi: float | None, of_rates: bool = False) -> str:
    """+0.012 [-0.123, +0.045], or without an interval where there is none; that of two rates ends where they do."""
    ends = [signed(min(max(end, -1), 1) if of_rates and end is not None else end) for end in (lo, hi)]
    return signed(delta) if NONE in ends else f"{signed(delta)} [{', '.join(ends)}]"


def seeds(text: str | None) -> list[int]:
    """Return the seeds that a table says as `41;42`."""
    return [int(seed) for seed in (text or "").split(";") if seed]


def seed_list(seeds: Iterable[int]) -> str:
    """41-45, 51, 53: gapless runs of at least three by their ends."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    shown = ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run) for run in runs)
    return ", ".join(chain.from_iterable(shown)) or NONE


def short(cells: Iterable[str]) -> list[str]:
    """Return ids with those that differ in their seed alone as one, in a form that a shell expands.

    What has no seed, such as the name of a question in a plan, stands as it is.
    """
    rows: dict[str, list[int]] = {}
    for cell in cells:
        name, _, seed = cell.rpartition("-s")
        numbered = bool(name) and seed.isdigit()
        rows.setdefault(name if numbered else cell, []).extend([int(seed)] if numbered else [])

    def joined(name: str, seeds: list[int]) -> str:
        if len(seeds) < 2:
            return "-s".join([name, *map(str, seeds)])
        gapless = seeds == list(range(seeds[0], seeds[-1] + 1))
        ends = f"{seeds[0]}..{seeds[-1]}" if gapless else ",".join(map(str, seeds))
        return f"{name}-s{{{ends}}}"

    return [joined(name, sorted(seeds)) for name, seeds in rows.items()]


def code(names: Iterable[str]) -> str:
    """Return names as code, one after the other."""
    return ", ".join(f"`{name}`" for name in names)


FILTERS = {
    write.__name__: write
    for write in (percent, fraction, points, size, rate, mean, signed, seeds, seed_list, short, code)
}
FILTERS |= {"p": p_value}
