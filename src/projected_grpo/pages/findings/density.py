"""Whether the effect of a basis changes with the share of teacher rows (Q6)."""

from projected_grpo.measures import stats
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import is_shown, with_n, with_p
from projected_grpo.pages.text import listing, paired_text


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


def said(table: Table) -> str:
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
