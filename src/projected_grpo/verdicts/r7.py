"""R7: does the contrastive GRPO loss give a better basis than the NLL, and how do the two differ?"""

from collections.abc import Mapping, Sequence

from projected_grpo.files import read_json
from projected_grpo.measures import stats
from projected_grpo.measures.table import Table
from projected_grpo.pages.blocks import Grid, Listing, Paragraph, Source, grid
from projected_grpo.pages.contrasts import with_p
from projected_grpo.pages.text import NONE, p_is, paired_text, rate
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.figures import t4_strip
from projected_grpo.verdicts.twins import (
    Sight,
    Twins,
    difference,
    read,
    replay_files,
    sources,
    t4_blocks,
    twins,
)
from projected_grpo.verdicts.verdict import Verdict, of_table

KNOB = "loss"
# Spans that overlap by 1 - SAME or more count as the same: rounding alone changes the bits of a tensor.
SAME = 1e-3
LOSSES = (
    "The contrastive loss sums a completion's token losses where the NLL takes their mean, so the two bases differ by "
    "length weighting alone. Reweighting the NLL gradients by hand must give the GRPO basis back (overlap 1).",
    "By pair alone: both sides of a pair are weighted by their mean length. Hashes differ by rounding alone, too.",
)
Overlaps = Mapping[str, Mapping[int, dict]]  # pair of bases -> seed -> what `stages.contrast` measured


def overlap_files(context: Context) -> dict[str, dict[int, str]]:
    """Return pair of bases -> seed -> file below the results folder, for the twin rows."""
    found: dict[str, dict[int, str]] = {}
    for pair in twins(context, KNOB):
        by_path = {
            f"probe/{a.model}/{a.basis}-vs-{b.basis}.json": a.seed
            for a, b in zip(pair.reference.cells, pair.other.cells, strict=True)
        }
        found[" and ".join(pair.bases)] = {seed: path for path, seed in by_path.items()}
    return found


def needs(context: Context) -> list[str]:
    """The twins' replays, and the comparison of their tensors."""
    overlaps = (path for by_seed in overlap_files(context).values() for path in by_seed.values())
    return context.below(*replay_files(context, KNOB), *overlaps)


def _mean(overlaps: Mapping[int, dict], key: str) -> float | None:
    values = [found[key] for found in overlaps.values() if found[key] is not None]
    return sum(values) / len(values) if values else None


def differ(found: dict) -> bool:
    """Whether two bases span different subspaces, beyond rounding."""
    return found["overlap"] < 1 - SAME


def differ_sentences(overlaps: Overlaps) -> list[str]:
    """Say per pair of bases on how many replications the two differ."""
    said = []
    for name, by_seed in overlaps.items():
        n, different = len(by_seed), sum(map(differ, by_seed.values()))
        where = "every replication" if different == n else f"{different} of {n} replications"
        verdict = f"differ on {where}" if different else "do NOT differ on any replication"
        said.append(f"Tensors of {name} {verdict} (different: the spans overlap by less than {1 - SAME}).")
    return said


def length_sentences(overlaps: Overlaps) -> list[str]:
    """Say how much of the difference between the two bases is length weighting."""
    said = []
    for name, by_seed in overlaps.items():
        keys = ("overlap", "overlap_null", "overlap_reweighted")
        overlap, null, explained = (_mean(by_seed, key) for key in keys)
        if None in (overlap, explained, null):
            said.append(f"{name}: {NONE}.")
        elif 1 - overlap <= SAME:
            said.append(f"{name}: the spans overlap {rate(overlap)}, there is no difference to explain.")
        else:
            share = (explained - overlap) / (1 - overlap)
            said.append(
                f"{name}: the spans overlap {rate(overlap)} (random: {rate(null)}), with the NLL gradients reweighted "
                f"by length {rate(explained)}. So length weighting explains {100 * share:.0f}% of the difference."
            )
    return said


def overlap_grid(overlaps: Overlaps) -> Grid:
    """Return the comparison of tensors."""

    def mean(key: str, form=rate):
        return lambda item: form(_mean(item[1], key))

    def count(holds):
        return lambda item: f"{sum(map(holds, item[1].values()))} of {len(item[1])}"

    def lengths(item) -> str:
        found = item[1].values()
        return f"{min(f['length_ratio_min'] for f in found):.2f} to {max(f['length_ratio_max'] for f in found):.2f}"

    columns = {
        "bases": lambda item: item[0],
        "overlap": mean("overlap"),
        "random": mean("overlap_null"),
        "NLL reweighted by length": mean("overlap_reweighted"),
        "by pair alone": mean("overlap_pair_weights"),
        "largest difference": mean("largest_difference"),
        "tokens hack": mean("tokens_hack", "{:.1f}".format),
        "tokens clean": mean("tokens_clean", "{:.1f}".format),
        "hack / clean": lengths,
        "spans differ": count(differ),
        "hashes differ": count(lambda found: found["hash_nll"] != found["hash_grpo"]),
    }
    return grid(overlaps.items(), columns, title="The two bases, mean over replications")


def t4_sentence(pair: Twins, sights: Mapping[str, Sight]) -> str:
    """Say whether the contrastive basis's t is at least the NLL's, over pools."""
    reference, other = (sights[basis] for basis in pair.bases)
    found = stats.paired(other.t, reference.t)
    word = "not tested" if found is None else "met" if found.delta >= 0 else "not met"
    said = (
        "" if found is None else f" ({paired_text(found)}{'' if found.p is None else f', p {p_is(found.p)}'})"
    )
    return f"T4 t at least that of the NLL basis, by the mean over pools: `{other.basis}` {word}{said}."


def hack_sentences(table: Table, pairs: Sequence[Twins]) -> list[str]:
    """Compare the hack rates of each twin row, with Holm's p over these."""
    lines = [(table.line(pair.other.name), table.line(pair.reference.name)) for pair in pairs]
    tests = stats.adjust([difference(*both, "hack") for both in lines])
    return [
        f"`{other.name}`: runs are missing."
        if found is None
        else f"`{other.name}` against `{reference.name}`: hack {with_p(found)}."
        for (other, reference), found in zip(lines, tests, strict=True)
    ]


def make(context: Context) -> Verdict:
    """Return R7's page."""
    (table, pairs, sights), files = read(context, KNOB), overlap_files(context)
    overlaps = {
        name: {seed: read_json(context.results / path) for seed, path in by_seed.items()}
        for name, by_seed in files.items()
    }
    said = (
        *(t4_sentence(pair, sights) for pair in pairs),
        *differ_sentences(overlaps),
        *hack_sentences(table, pairs),
    )
    notes = (Paragraph(text, kind="note") for text in LOSSES)
    lengths = Listing(tuple(length_sentences(overlaps)))
    blocks = (*t4_blocks(pairs, sights), *notes, lengths, overlap_grid(overlaps))
    measured = (Source(name, files=tuple(by_seed.values())) for name, by_seed in files.items())
    drawn = {"t4": (t4_strip({name: sight.t for name, sight in sights.items()}), "T4 of both losses' bases.")}
    behind = (*sources(context, KNOB), *measured)
    return of_table(context, table, (Listing(said),), blocks, behind, drawn, said)
