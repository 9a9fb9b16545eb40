"""What of routing is the artefact of its quarantine's own optimizer (Q12)."""

from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import is_shown, with_n, with_p
from projected_grpo.pages.text import listing, paired_text, rate


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


def said(table: Table) -> str:
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
