"""What a one-sided gate does along V and along -V (Q3): its direction, its axes, the gate itself."""

from dataclasses import dataclass

from projected_grpo.measures import stats
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import is_shown, with_n, with_p
from projected_grpo.pages.text import delta, paired_text


def _flipped(table: Table) -> list[tuple[Line, Line]]:
    """Return (row, the same row with V flipped)."""
    signs = [line for line in table.lines if line.row.setting.knob("sign") == -1]
    found = []
    for line in signs:
        setting = line.row.setting
        plain = setting.model_copy(update={"knobs": setting.knobs.model_copy(update={"sign": 1})})
        found += [(other, line) for other in table.lines if other.row.setting == plain]
    return found


@dataclass(frozen=True)
class Half:
    """What a one-sided gate does along V and along -V: `stays` is half the sum, `turns` half the difference.

    The two gates remove the two sides of the same axes, so what stays is that of the axes, whichever way they point.
    `rest`: what stays less what the gate does along random axes; None without a row of these.
    """

    plain: Line
    flipped: Line
    stays: stats.Paired
    turns: stats.Paired
    rest: stats.Paired | None


def _halves(table: Table) -> list[Half]:
    """Split the effects of one-sided gates in two, by seed; Holm's p over all of these tests."""
    rows, tests = _flipped(table), []
    for plain, flipped in rows:
        half = {plain.name: 0.5, flipped.name: 0.5}
        combined = [
            half | {plain.row.baseline: -1.0},
            half | {flipped.name: -0.5},
            half | {plain.random: -1.0} if plain.random else {},
        ]
        tests += [
            stats.one_sample(table.combined(weights, table.primary)) if weights else None
            for weights in combined
        ]
    tests = stats.adjust(tests)
    every = zip(rows, tests[::3], tests[1::3], tests[2::3], strict=True)
    return [
        Half(plain, flipped, stays, turns, rest)
        for (plain, flipped), stays, turns, rest in every
        if stays is not None and turns is not None and table.primary in flipped.to_baseline
    ]


def ratchet(table: Table) -> list:
    """Say what of a one-sided gate's effect stays when V is flipped, and what turns with it."""
    measure, found = table.primary, _halves(table)
    items = []
    for half in found:
        own, other = half.plain.to_baseline[measure], half.flipped.to_baseline[measure]
        said = f"`{half.plain.name}` {paired_text(own)}, flipped {paired_text(other)}: of its direction "
        said += f"{with_p(half.turns)}; of its axes {with_p(half.stays)}"
        if half.rest is not None:
            said += f"; that less what `{half.plain.random}` does {with_p(half.rest)}"
        items.append(said)
    if not items:
        return []
    ns = with_n(pair for half in found for pair in (half.stays, half.turns))
    lead = f"Is it where V points, its axes, or the one-sided gate ({ns})?"
    text = (
        "Half the difference between V and V flipped is what its direction does; half their sum is what its axes do on "
        "average over both. What the gate does by itself it does along random axes, too."
    )
    return [Paragraph(text, lead), Listing(tuple(items))]


def said(table: Table) -> str:
    """Say of the bases that claim something what a one-sided gate does along V and V flipped, and what of it is whose.

    Empty where no row has a flipped one.
    """
    measure, sentences = table.primary, []
    for half in _halves(table):
        if not half.plain.row.claims or half.stays.holm is None or half.turns.holm is None:
            continue
        own, other = (delta(line.to_baseline[measure].delta) for line in (half.plain, half.flipped))
        parts = {
            "Of its direction": half.turns,
            "of its axes": half.stays,
            "of these less random ones": half.rest,
        }
        said = [
            f"{name} {with_p(pair)}{'' if is_shown(pair) else ', not shown'}"
            for name, pair in parts.items()
            if pair is not None and pair.holm is not None
        ]
        lead = f"With V flipped `{half.plain.name}` changes {table.about.words} by {other} instead of {own}"
        sentences.append(f"{lead} ({with_n([half.turns])}). {'; '.join(said)}.")
    return " ".join(sentences)
