"""What single questions ask besides: pooled folds (Q14), a gate's ratchet (Q3), the teacher's density (Q6), controls
(Q7), routing (Q12), no teacher (Q21).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projected_grpo.measures import stats
from projected_grpo.measures.measure import LAST, MEASURES
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import is_shown, with_bound, with_n, with_p
from projected_grpo.pages.places import content
from projected_grpo.pages.text import listing, p_is, paired_text, rate


def pooled(table: Table) -> list:
    """Return what rows show as one, such as all folds of Q14: the per-seed mean against that of their baselines."""
    lines = [line for line in table.pooled if table.primary in line.to_baseline]
    if not lines:
        return []
    parts = len([row for row in table.question.rows if row.pooled == lines[0].name])
    ns = with_n(line.to_baseline[table.primary] for line in lines)
    lead = f"All {parts} folds as one: the mean by seed of {table.about.words}, informative or not ({ns})."
    found = [
        Paragraph(
            "This test was chosen before the runs of this table, after folds of an earlier small model had suggested "
            "it. The folds stand beside it; Holm's p is over all rows that stand for folds, random axes among them.",
            lead,
        )
    ]
    items = []
    for line in lines:
        own = line.to_baseline[table.primary]
        said = f"`{line.name}` {with_p(own)}" + (f" (raw p {p_is(own.p)})" if own.p is not None else "")
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

    @property
    def is_beyond(self) -> bool:
        """Whether what stays is there, and more than what random axes do."""
        both = is_shown(self.stays) and is_shown(self.rest)
        return both and self.stays.delta * self.rest.delta > 0


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
        said = f"`{half.plain.name}` {paired_text(own)}, flipped {paired_text(other)}: turns {with_p(half.turns)}; "
        said += f"stays {with_p(half.stays)}"
        if half.rest is not None:
            said += f"; that less what `{half.plain.random}` does {with_p(half.rest)}"
        items.append(said)
    if not items:
        return []
    ns = with_n(pair for half in found for pair in (half.stays, half.turns))
    lead = f"Is it where V points, its axes, or the one-sided gate ({ns})?"
    text = (
        "With V flipped, what its direction does turns, and what its axes do either way stays: half the difference, "
        "half the sum. What the gate does by itself it does along random axes, too."
    )
    return [Paragraph(text, lead), Listing(tuple(items))]


def _by_mix(table: Table) -> list[tuple[Line, Line, stats.Paired]]:
    """Return (a row at its smallest mix, the same at its largest, its effect there less its effect here), by seed."""
    groups: dict[str, list[Line]] = {}
    for line in table.lines:
        base = table.line(line.row.baseline) if line.row.baseline else None
        if base is not None and base.row.setting.mix == line.row.setting.mix and line.row.setting.basis:
            key = line.row.setting.model_dump_json(exclude={"mix"})
            groups.setdefault(key, []).append(line)
    ends, tests = [], []
    for lines in groups.values():
        few, *_, many = (
            sorted(lines, key=lambda line: line.row.setting.mix) if len(lines) > 1 else (None, None)
        )
        if few is not None and few.row.setting.mix < many.row.setting.mix:
            weights = {few.name: 1.0, few.row.baseline: -1.0, many.name: -1.0, many.row.baseline: 1.0}
            ends.append((few, many))
            tests.append(stats.one_sample(table.combined(weights, table.primary)))
    every = zip(ends, stats.adjust(tests), strict=True)
    return [(few, many, test) for (few, many), test in every if test is not None]


def density(table: Table) -> list:
    """Say whether the effect of a basis changes with the share of teacher rows."""
    measure, found = table.primary, _by_mix(table)
    items = [
        f"`{few.row.setting.basis}` {paired_text(few.to_baseline[measure])} at {few.row.setting.mix:g}, "
        f"{paired_text(many.to_baseline[measure])} at {many.row.setting.mix:g}: difference {with_p(test)}"
        for few, many, test in found
    ]
    if not items:
        return []
    ns = with_n(test for *_, test in found)
    lead = f"Does the effect on {table.about.words} change with the share of teacher rows ({ns})?"
    return [Paragraph("Each effect is against vanilla of the same mix.", lead), Listing(tuple(items))]


def _density_said(table: Table) -> str:
    """Say of which bases the effect changes with the share of teacher rows."""
    found = [(few, many, test) for few, many, test in _by_mix(table) if few.row.claims]
    if not found:
        return ""
    few, many, _ = found[0]
    ends = f"mix {few.row.setting.mix:g} and {many.row.setting.mix:g}"
    some = sum(is_shown(test) for *_, test in found)
    lead = f"Between {ends} the effect on {table.about.words} is shown to differ for {some} of {len(found)} bases"
    gaps = listing([f"`{few.row.setting.basis}` {with_p(test)}" for few, _, test in found])
    return f"{lead} ({with_n(test for *_, test in found)}). The differences: {gaps}."


def _controls_said(table: Table) -> str:
    """Say what controls do that are held against the one row that claims something; empty where there are none."""
    measure = table.primary
    arms = [line for line in table.lines if line.row.claims and measure in line.to_baseline]
    others = [
        line
        for line in table.lines
        if not line.row.claims and measure in line.to_against and measure in line.to_baseline
    ]
    if len(arms) != 1 or len(others) < 2 or any(line.row.against != arms[0].name for line in others):
        return ""
    effect = arms[0].to_baseline[measure]
    alone = [f"`{line.name}`" for line in others if is_shown(line.to_baseline[measure])]
    apart = [f"`{line.name}`" for line in others if is_shown(line.to_against[measure])]
    said = f"`{arms[0].name}` changes {table.about.words} by {with_p(effect)} ({with_n([effect])})."
    does, differ = (f"{len(names)} ({listing(names)})" if names else "none" for names in (alone, apart))
    return f"{said} Shown to change it, too: {does} of {len(others)} controls; to differ from it: {differ}."


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
            too = f" and by {rate(-real.delta)} in update space" if is_shown(real) else ""
            text = f"Random axes lower it by {rate(-alone.delta)} in gradient space{too}: so much of what a routed row "
            text += "does needs no content."
        else:
            text = "Random axes are not shown to lower it in gradient space: no artefact is shown."
        blocks.append(Paragraph(text))
    return blocks


def headline(table: Table) -> str:
    """Return in a sentence what one of these special tests found; empty where a question has none of them."""
    found = (_pooled_said, content, _halves_said, _density_said, _controls_said, _routing_said)
    return next(filter(None, (said(table) for said in found)), "")


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
    """Say which effects of a one-sided gate turn with the sign of V, and which stay, beyond random axes too."""
    found = [half for half in _halves(table) if half.stays.holm is not None and half.turns.holm is not None]
    if not found:
        return ""

    def of(part: str, holds: Callable[[Half], bool]) -> str:
        names = [f"`{half.plain.name}` {with_p(getattr(half, part))}" for half in found if holds(half)]
        return listing(names) if names else f"none of {len(found)} bases"

    turns, stays = (of(part, lambda half, p=part: is_shown(getattr(half, p))) for part in ("turns", "stays"))
    said = f"What a one-sided gate does turns with the direction of V for {turns} ({with_n(h.turns for h in found)})."
    said += f" A part stays, whichever way V points, for {stays}."
    if any(half.rest for half in found):
        said += f" That is more than random axes do for {of('rest', lambda half: half.is_beyond)}."
    return said


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
