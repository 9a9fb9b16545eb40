"""R7's verdict: does the contrastive GRPO loss give a better basis than the NLL, and how do the two differ?"""

from collections.abc import Mapping

from projected_grpo.measures import stats
from projected_grpo.pages.markdown import grid
from projected_grpo.pages.table import Table
from projected_grpo.pages.text import NONE, listing, p_value, paired_text, rate
from projected_grpo.verdicts.probe_twins import Sight, compare_t, t4_grid
from projected_grpo.verdicts.twins import Twins

# Spans that overlap by 1 - SAME or more count as the same: rounding alone changes the bits of a tensor.
SAME = 1e-3


def hack_sentence(table: Table, pair: Twins) -> str:
    """Compare the hack rates of a twin row."""
    found = stats.paired(
        table.line(pair.other.name).values.get("hack", {}),
        table.line(pair.reference.name).values.get("hack", {}),
    )
    if found is None:
        return f"`{pair.other.name}`: runs are missing"
    p = f", p {p_value(found.p)}" if found.p is not None else ""
    return f"`{pair.other.name}` against `{pair.reference.name}`: hack {paired_text(found)}{p}"


def _mean(overlaps: Mapping[int, dict], key: str) -> float | None:
    values = [found[key] for found in overlaps.values() if found[key] is not None]
    return sum(values) / len(values) if values else None


def differ(found: dict) -> bool:
    """Whether two bases span different subspaces, beyond rounding."""
    return found["overlap"] < 1 - SAME


def differ_sentence(overlaps: Mapping[str, Mapping[int, dict]]) -> str:
    """Say per pair of bases on how many replications the two differ."""
    parts = []
    for name, by_seed in overlaps.items():
        n, different = len(by_seed), sum(map(differ, by_seed.values()))
        where = "every replication" if different == n else f"{different} of {n} replications"
        parts.append(f"{name} differ on {where}" if different else f"{name} do NOT differ on any replication")
    return (
        f"Tensors (different: the spans overlap by less than {1 - SAME}): {listing(parts)}." if parts else ""
    )


def overlap_grid(overlaps: Mapping[str, Mapping[int, dict]]) -> tuple[list[str], list[list[str]]]:
    """Return header and text cells of the comparison of tensors; overlaps: pair of bases -> seed -> measured."""
    header = ["bases", "overlap", "random", "NLL reweighted by length", "by pair alone", "largest difference"]
    header += ["tokens hack", "tokens clean", "hack / clean", "spans differ", "hashes differ"]
    rows = []
    for name, by_seed in overlaps.items():
        hashes = sum(found["hash_nll"] != found["hash_grpo"] for found in by_seed.values())
        spans = sum(map(differ, by_seed.values()))
        low = min(found["length_ratio_min"] for found in by_seed.values())
        high = max(found["length_ratio_max"] for found in by_seed.values())
        keys = ("overlap", "overlap_null", "overlap_reweighted", "overlap_pair_weights", "largest_difference")
        tokens = (_mean(by_seed, key) for key in ("tokens_hack", "tokens_clean"))
        rows.append(
            [name, *(rate(_mean(by_seed, key)) for key in keys)]
            + [f"{value:.1f}" for value in tokens]
            + [f"{low:.2f} to {high:.2f}", *(f"{count} of {len(by_seed)}" for count in (spans, hashes))]
        )
    return header, rows


def length_sentence(overlaps: Mapping[str, Mapping[int, dict]]) -> str:
    """Say how much of the difference between the two bases is length weighting."""
    parts = []
    for name, by_seed in overlaps.items():
        overlap, explained = _mean(by_seed, "overlap"), _mean(by_seed, "overlap_reweighted")
        null = _mean(by_seed, "overlap_null")
        if None in (overlap, explained, null):
            parts.append(f"{name}: {NONE}")
            continue
        gap = 1 - overlap
        if gap <= SAME:
            parts.append(f"{name}: the spans overlap {rate(overlap)}, there is no difference to explain")
            continue
        share = (explained - overlap) / gap
        parts.append(
            f"{name}: the spans overlap {rate(overlap)} (random: {rate(null)}), with the NLL gradients reweighted by "
            f"completion length {rate(explained)}, so length weighting explains {100 * share:.0f}% of the difference"
        )
    return f"Subspaces, mean over replications: {listing(parts)}." if parts else ""


def sections(
    table: Table, pairs: list[Twins], sights: Mapping[str, Sight], overlaps: Mapping[str, Mapping[int, dict]]
) -> list[str]:
    """Return the Markdown that follows R7's table."""
    compared = [
        compare_t(sights[pair.other.setting.basis], sights[pair.reference.setting.basis]) for pair in pairs
    ]
    met = []
    for pair in pairs:
        other, reference = sights[pair.other.setting.basis], sights[pair.reference.setting.basis]
        found = stats.paired(other.t, reference.t)
        word = "not tested" if found is None else "met" if found.delta >= 0 else "not met"
        met.append(f"`{pair.other.setting.basis}` {word}")
    return [
        "## Verdict",
        f"T4 t at least that of the NLL basis (mean over pools): {listing(met)}. "
        f"{differ_sentence(overlaps)} "
        f"Hack reduction beside it: {listing([hack_sentence(table, pair) for pair in pairs])}.",
        "**T4 on the same pools.** " + ". ".join(compared) + ".",
        grid(*t4_grid(sights)),
        "**The two bases.** The contrastive loss sums a completion's token losses where the NLL takes their mean, so "
        "the two differ by length weighting alone; reweighting the NLL gradients by hand must give the GRPO basis back "
        "(overlap 1). By pair alone: both sides of a pair weighted by their mean length. Hashes differ by rounding "
        "alone, too. " + length_sentence(overlaps),
        grid(*overlap_grid(overlaps)),
    ]
