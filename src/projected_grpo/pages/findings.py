"""What single questions ask besides: pooled folds (Q14), a gate's ratchet (Q3), routing (Q12), no teacher (Q21)."""

import numpy as np

from projected_grpo.measures import stats
from projected_grpo.measures.measure import LAST, MEASURES
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import is_shown, with_bound, with_n, with_p
from projected_grpo.pages.places import content
from projected_grpo.pages.text import listing, paired_text, rate


def pooled(table: Table) -> list:
    """Return what rows show as one, such as all folds of Q14: the per-seed mean against that of their baselines."""
    lines = [line for line in table.pooled if table.primary in line.to_baseline]
    if not lines:
        return []
    parts = len([row for row in table.question.rows if row.pooled == lines[0].name])
    ns = with_n(line.to_baseline[table.primary] for line in lines)
    lead = f"All {parts} folds as one: the mean by seed of {table.about.words}, informative or not ({ns})."
    found = [
        Paragraph("This test was chosen before the runs of this table; the folds stand beside it.", lead)
    ]
    items = []
    for line in lines:
        said = f"`{line.name}` {with_p(line.to_baseline[table.primary])}"
        if (beyond := line.to_random.get(table.primary)) is not None:
            said += f"; against `{line.random}` {with_p(beyond)}"
        if not is_shown(line.to_baseline[table.primary]):
            said += f"; {with_bound(line.to_baseline[table.primary])}"
        items.append(said)
    return [*found, Listing(tuple(items))]


def _flipped(table: Table) -> list[tuple[Line, Line]]:
    """Return (row, the same row with V flipped)."""
    signs = [line for line in table.lines if line.row.setting.knob("sign") == -1]
    found = []
    for line in signs:
        setting = line.row.setting
        plain = setting.model_copy(update={"knobs": setting.knobs.model_copy(update={"sign": 1})})
        found += [(other, line) for other in table.lines if other.row.setting == plain]
    return found


def _halves(table: Table) -> list[tuple[Line, Line, stats.Paired, stats.Paired]]:
    """Split what a one-sided gate does in two: what stays when V is flipped, and what turns with it.

    Per seed, with d the difference to the baseline: (d + d') / 2 and (d - d') / 2. Returns (row, flipped row, stays,
    turns) where all have runs.
    """
    measure, pairs = table.primary, []
    for plain, flipped in _flipped(table):
        for sign in (1, -1):
            weights = {plain.name: 0.5, flipped.name: 0.5 * sign}
            weights |= {plain.row.baseline: -1.0} if sign == 1 else {}
            pairs.append(stats.one_sample(table.combined(weights, measure)))
    tests = stats.adjust(pairs)
    every = zip(_flipped(table), tests[::2], tests[1::2], strict=True)
    return [
        (plain, flipped, stays, turns)
        for (plain, flipped), stays, turns in every
        if stays is not None and turns is not None and measure in flipped.to_baseline
    ]


def ratchet(table: Table) -> list:
    """Say what of a one-sided gate's effect stays when V is flipped, and what turns with it."""
    measure, found = table.primary, _halves(table)
    items = []
    for plain, flipped, stays, turns in found:
        own, other = plain.to_baseline[measure], flipped.to_baseline[measure]
        items.append(
            f"`{plain.name}` {paired_text(own)}, flipped {paired_text(other)}: "
            f"stays {with_p(stays)}; turns {with_p(turns)}"
        )
    if not items:
        return []
    ns = with_n(pair for *_, stays, turns in found for pair in (stays, turns))
    lead = f"Is it the content, or the ratchet of the one-sided gate ({ns})?"
    text = (
        "With V flipped an effect of content turns, one of the gate stays: half the sum, half the difference."
    )
    return [Paragraph(text, lead), Listing(tuple(items))]


def _spaces(table: Table) -> list[tuple[Line, Line]]:
    """Return (a routed row in gradient space, the same in update space)."""
    routed = {
        (line.row.setting.basis, line.row.setting.knob("space")): line
        for line in table.lines
        if line.row.setting.defence.family == "quarantine" and line.row.setting.knob("space")
    }
    bases = dict.fromkeys(basis for basis, _ in routed)
    every = [(routed.get((basis, "gradient")), routed.get((basis, "update"))) for basis in bases]
    return [(a, b) for a, b in every if a is not None and b is not None]


def _kept(table: Table, line: Line) -> str:
    """Say whether the kept policy is the baseline's, seed by seed."""
    own, base = (each.values.get("hack_kept", {}) for each in (line, table.line(line.row.baseline)))
    common = own.keys() & base.keys()
    if common and all(own[seed] == base[seed] for seed in common):
        return f"equal to `{line.row.baseline}` in each of {len(common)} seeds"
    return paired_text(line.to_baseline.get("hack_kept"))


def routing(table: Table) -> list:
    """Say what of routing in gradient space is the artefact of its quarantine's own optimizer."""
    found = _spaces(table)
    items = []
    for gradient, update in found:
        if not all("hack_ablated" in line.to_baseline for line in (gradient, update)):
            continue
        parts = [
            f"{space} space kept {_kept(table, line)}, ablated {with_p(line.to_baseline['hack_ablated'])}"
            for space, line in (("gradient", gradient), ("update", update))
        ]
        items.append(f"`{gradient.row.setting.basis}`: {'; '.join(parts)}")
    if not items:
        return []
    gaps = [
        stats.one_sample(table.combined({gradient.name: 1.0, update.name: -1.0}, "hack_ablated"))
        for gradient, update in found
    ]
    names = [f"`{gradient.row.setting.basis}`" for gradient, _ in found]
    more = [
        f"{name} {with_p(gap)}"
        for name, gap in zip(names, stats.adjust(gaps), strict=True)
        if gap is not None
    ]
    blocks = [
        Paragraph(
            "In gradient space the quarantine's own AdamW blows a small part up to full-size steps. In update space "
            "one step is split, so that the kept policy is the baseline's by construction.",
            "What of published routing is an artefact?",
        ),
        Listing(tuple(items)),
        Paragraph(
            f"{MEASURES['hack_ablated'].words.capitalize()}, gradient less update space "
            f"({with_n(gap for gap in gaps if gap is not None)}): what the space and that optimizer add."
        ),
        Listing(tuple(more)),
    ]
    for gradient, update in found:
        if not gradient.row.is_control or "hack_ablated" not in gradient.to_baseline:
            continue
        alone, real = gradient.to_baseline["hack_ablated"], update.to_baseline.get("hack_ablated")
        if is_shown(alone) and alone.delta < 0:
            left = "and still do in update space" if is_shown(real) else "and not shown to in update space"
            text = f"Random axes lower it in gradient space {left}: as much of routing's effect is no sign of content."
        else:
            text = "Random axes are not shown to lower it in gradient space: no artefact is shown."
        blocks.append(Paragraph(text))
    return blocks


def headline(table: Table) -> str:
    """Return in a sentence what one of these special tests found; empty where a question has none of them."""
    return _pooled_said(table) or content(table) or _halves_said(table) or _routing_said(table)


def _pooled_said(table: Table) -> str:
    """Say what all folds as one show, beside random axes."""
    lines = [line for line in table.pooled if line.row.claims and table.primary in line.to_baseline]
    if not lines:
        return ""
    line = lines[0]
    own, beyond = line.to_baseline[table.primary], line.to_random.get(table.primary)
    words = table.about.words
    said = (
        f"changes {words} by {with_p(own)}"
        if is_shown(own)
        else f"is not shown to change {words} ({with_p(own)})"
    )
    if beyond is not None:
        apart = "differs" if is_shown(beyond) else "is not shown to differ"
        said += f"; from `{line.random}` it {apart}, by {with_p(beyond)}"
    return f"All folds as one, `{line.name}` {said} ({with_n([own])})."


def _halves_said(table: Table) -> str:
    """Say which effects of a one-sided gate turn with the sign of V, and which stay."""
    found = [half for half in _halves(table) if half[2].holm is not None and half[3].holm is not None]
    if not found:
        return ""

    def of(place: int) -> str:
        names = [f"`{half[0].name}` {with_p(half[place])}" for half in found if is_shown(half[place])]
        return listing(names) if names else f"none of {len(found)} directions"

    ns = with_n(half[3] for half in found)
    content = f"The one-sided gate's effect has a part that turns with V, the content's, for {of(3)}."
    return f"{content} A part that stays, the gate's own, for {of(2)} ({ns})."


def _routing_said(table: Table) -> str:
    """Say what routing along random axes does in each space, and what it does along real ones in update space."""
    measure, alone, real, pairs = "hack_ablated", [], [], []
    for gradient, update in _spaces(table):
        for space, line in (("gradient", gradient), ("update", update)):
            if measure not in line.to_baseline or not (line.row.is_control or space == "update"):
                continue
            pairs.append(line.to_baseline[measure])
            into = alone if line.row.is_control else real
            into.append(f"{with_p(pairs[-1])} in {space} space" if into is alone else _along(line, pairs[-1]))
    if not alone or not real:
        return ""
    words = MEASURES[measure].words
    return (
        f"Routing along random axes changes {words} by {' and by '.join(alone)} ({with_n(pairs)}). "
        f"In update space real ones change it by {listing(real)}."
    )


def _along(line: Line, pair: stats.Paired) -> str:
    return f"{with_p(pair)} (`{line.row.setting.basis}`)"


def _hack_at(line: Line, until: int) -> dict[int, float]:
    """Return seed -> hack rate in training, mean of the last steps up to `until`."""
    every = {run.cell.seed: MEASURES["hack"].by_step(run)[:until][-LAST:] for run in line.runs}
    return {seed: float(np.nanmean(values)) for seed, values in every.items()}


def without_teacher(table: Table) -> list:
    """Say how hacking in training goes on where the teacher's rows end: from its last steps to those of the run.

    Beside it rows without any teacher, from their first step on.
    """
    found = []
    for line in table.lines:
        training, taught = line.row.cells[0].training, line.row.setting.mix > 0
        if line.runs and (since := training.teacher_steps if taught else 1):
            found.append((line, since, _hack_at(line, since), _hack_at(line, training.steps)))
    if not any(line.row.setting.mix for line, *_ in found):
        return []
    pairs = stats.adjust([stats.paired(end, start) for _, _, start, end in found])
    items = []
    for (line, since, *values), pair in zip(found, pairs, strict=True):
        start, end = (rate(float(np.mean(list(own.values())))) for own in values)
        when = f"up to step {since}" if line.row.setting.mix else "at step 1"
        items.append(f"`{line.name}` from {start} {when} to {end}: {with_p(pair)}")
    text = (
        f"Hack rate in training: the last {LAST} steps against the last {LAST} with the teacher's rows, or against the "
        "first step where there never were any; paired by seed."
    )
    return [Paragraph(text, "Does hacking go on without a teacher?"), Listing(tuple(items))]
