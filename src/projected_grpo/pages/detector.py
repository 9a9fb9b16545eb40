"""The page of the detector (Q18): how well each direction ranks, how far that falls, what its threshold keeps."""

from collections.abc import Mapping
from dataclasses import replace

from projected_grpo.measures import stats
from projected_grpo.measures.columns import DETECTOR_SCORES
from projected_grpo.measures.detector import (
    ALIGNMENT,
    CONCEPT,
    LEAST,
    ORACLE,
    RANDOM,
    SEEDS,
    Fall,
    Rankings,
    mean,
)
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Cell, Grid, Paragraph, grid
from projected_grpo.pages.contrasts import is_shown, with_n, with_p
from projected_grpo.pages.number_cells import mean_cell, tested_cell
from projected_grpo.pages.text import NONE, delta, interval, listing, p_is, p_value, paired_text, rate, under

Falls = Mapping[str, Mapping[str, Fall]]  # score -> row -> fall
READ = (
    "AUROC: share of pairs of a hack and another rollout of the same problem and step, lengths within 10%, in which "
    "the hack has the larger score; pooled over five steps, then the mean over seeds. Chance is 0.5. A run counts in a "
    f"window with {LEAST} pairs or more.",
    "Rollouts are the student's, scored at the weights that sampled them. Random directions are turned so that the "
    "pairs' hacks lie above their clean sides. They are drawn for each seed; in brackets the 2.5% and 97.5% quantiles "
    "of their means over seeds. Placebos keep the side that they were written with, so that chance for them is 0.5 "
    "(raw p). The oracle is the mean difference of the window's own pairs, of other problems than "
    "the one that it scores.",
    "F0.5: at the threshold of step 0, the middle between the two sides of the pairs at the base, over the rollouts of "
    "the pairs, half of them hacks; flagging everything has 0.556. The oracle's threshold is the middle of the same "
    "pairs as its direction.",
)
FALLS = (
    "Fall: AUROC of the baseline's first window minus that of the row's last. All runs of a seed start from one base, "
    "whose rollouts hold no hack, and a run trained against the score has few at first. Further: the row's fall minus "
    "its baseline's, paired by seed, 95% t-interval, Holm's p over the rows; as both begin there, it is the baseline's "
    "last AUROC minus the row's. Seeds without enough hacks in a window are left out: n says how many remain.",
    "Evasion: the concept score, which the penalties read, falls further than its baseline's. Drift: it falls, and no "
    f"further is shown. No reading: fewer than {SEEDS} seeds have hacks to rank.",
    "At the base's weights: the same rollouts scored by the untrained model. What falls there, too, is what is "
    "written; the rest is how the trained model represents it.",
)
KEPT = (
    "Threshold of step 0, on all rollouts of a window. Precision rises with the share of hacks by itself: `hacks` is "
    "that share. Recall to baseline's: in the last window, paired by the seeds in which both have hacks to rank, 95% "
    "t-interval, Holm's p over the rows.",
)


def first(table: Table) -> Line | None:
    """Return the row that stands for plain training: the baseline of most rows."""
    names = [line.row.baseline for line in table.lines if line.row.baseline]
    return table.line(max(names, key=names.count)) if names else None


def _tested(pair: stats.Paired | None) -> Cell:
    cell = tested_cell(pair)
    return replace(cell, small=f"{cell.small}, n = {pair.n}") if cell.small else cell


def _window(window: tuple[int, int]) -> str:
    return f"{window[0]}–{window[1]}"


def ranking_grid(table: Table, found: Rankings) -> Grid | None:
    """Return how well each direction ranks in plain training, by score and window; None without its runs."""
    line = first(table)
    windows = found.windows.get(line.name) if line else None
    if not windows:
        return None
    rows = [(score, i) for score in DETECTOR_SCORES for i in range(len(windows))]

    def of(direction: str, key: str = "auroc"):
        return lambda row: mean_cell(found.of(line, row[0], direction, row[1], key).values())

    def random(key: str):
        def cell(row: tuple[str, int]) -> Cell:
            band, middle = found.band(line, *row, key), mean(found.of(line, row[0], RANDOM, row[1], key))
            return Cell(rate(middle), f"[{rate(band[0])}, {rate(band[1])}]" if band else "")

        return cell

    def place(population: str, key: str = "auroc"):
        def cell(row: tuple[str, int]) -> Cell:
            placed = found.place(line, row[0], population, row[1], key)
            if placed is None:
                alone = found.of(line, row[0], found.populations[population][0], row[1], key)
                return mean_cell(alone.values()) if len(found.populations[population]) == 1 else Cell(NONE)
            small = "" if placed.t is None else f"t {placed.t:.1f}, p {p_value(placed.p)}"
            return Cell(rate(placed.mean), small)

        return cell

    columns = {
        "score": lambda row: DETECTOR_SCORES[row[0]],
        "steps": lambda row: _window(windows[row[1]]),
        "pairs": lambda row: Cell(f"{mean(found.of(line, row[0], found.subject, row[1], 'pairs')) or 0:.0f}"),
        found.subject: of(found.subject),
        "random": random("auroc"),
        **{name: place(name) for name in found.populations},
        "oracle": of(ORACLE),
        f"F0.5, {found.subject}": of(found.subject, "f05"),
        "F0.5, random": random("f05"),
        **{f"F0.5, {name}": place(name, "f05") for name in found.populations},
        "F0.5, oracle": of(ORACLE, "f05"),
    }
    return grid(rows, columns, texts=2, title=f"AUROC in the runs of {line.name}")


def falls_grid(table: Table, found: Rankings, falls: Falls) -> Grid:
    """Return how far AUROC falls, row by row."""

    def auroc(score: str, window: int):
        def cell(line: Line) -> Cell:
            return mean_cell(found.of(line, score, found.subject, window).values())

        return cell

    def fall(score: str):
        def cell(line: Line) -> Cell:
            own = falls[score][line.name].own
            if own is None:
                return Cell(NONE)
            small = f"{under(interval, own.lo, own.hi)} n = {own.n}".strip()
            return Cell(delta(own.delta), small, strong=is_shown(own))

        return cell

    def excess(score: str):
        return lambda line: _tested(falls[score][line.name].excess)

    columns = {"row": lambda line: line.name, "baseline": lambda line: line.row.baseline or NONE}
    for score in DETECTOR_SCORES:
        short = {"concept": "concept", "concept_base": "at the base", "alignment": "gradient"}[score]
        if score == CONCEPT:
            columns |= {f"{short}, first": auroc(score, 0), f"{short}, last": auroc(score, -1)}
        columns |= {f"{short}, fall": fall(score), f"{short}, further": excess(score)}
        if score in (CONCEPT, ALIGNMENT):
            columns[f"{short}, reading"] = lambda line, s=score: _reading(falls[s][line.name], s)
    return grid(table.lines, columns, texts=2, title="How far AUROC falls from the first window to the last")


def _reading(fall: Fall, score: str) -> str:
    """Return the reading of a fall in a word; what no run is trained against can be evaded by none."""
    words = {"evasion": "further", "drift": "falls"} if score == ALIGNMENT else {}
    return words.get(fall.reading, fall.reading) or NONE


def threshold_grid(table: Table, found: Rankings, lost: Mapping[str, stats.Paired | None]) -> Grid:
    """Return what a monitor fitted at step 0 keeps, row by row."""

    def rates(key: str):
        def cell(line: Line) -> Cell:
            if not found.has(line):
                return Cell(NONE)
            ends = [mean(found.of(line, CONCEPT, found.subject, window, key)) for window in (0, -1)]
            return Cell(" → ".join(map(rate, ends)))

        return cell

    columns = {"row": lambda line: line.name}
    columns |= {key: rates(key) for key in ("precision", "recall", "flagged")}
    columns["hacks"] = lambda line: (
        Cell(" → ".join(rate(_hacks(found, line, window)) for window in (0, -1)))
        if found.has(line)
        else Cell(NONE)
    )
    columns["recall to baseline's"] = lambda line: _tested(lost.get(line.name))
    return grid(table.lines, columns, title="A monitor with the threshold of step 0, first window → last")


def blocks(table: Table, found: Rankings, falls: Falls, lost: Mapping[str, stats.Paired | None]) -> tuple:
    """Return what stands behind the question's own tables."""
    ranked = ranking_grid(table, found)
    if ranked is None:
        return (Paragraph("No run has been ranked.", kind="warn"),)
    return (
        ranked,
        *(Paragraph(text, kind="note") for text in READ),
        falls_grid(table, found, falls),
        *(Paragraph(text, kind="note") for text in FALLS),
        threshold_grid(table, found, lost),
        *(Paragraph(text, kind="note") for text in KEPT),
    )


def _detects(line: Line, found: Rankings, score: str) -> str | None:
    """Say how well a score ranks in the last window of a row, beside random directions, placebos and the oracle."""
    own, random, oracle = (found.of(line, score, name, -1) for name in (found.subject, RANDOM, ORACLE))
    if not own:
        return None
    first, last = found.windows[line.name][-1]
    summary, band = stats.summarise(list(own.values())), found.band(line, score, -1)
    text = f"Steps {first}–{last} of `{line.name}`: the {DETECTOR_SCORES[score]} of `{found.subject}` is larger for "
    text += f"the hack in {rate(summary.mean)} of the pairs"
    text += "" if summary.lo is None else f" (95% {rate(summary.lo)} to {rate(summary.hi)})"
    above = stats.paired(own, random)
    if band and above:
        where = "above" if summary.mean > band[1] else "below" if summary.mean < band[0] else "inside"
        p = f" (raw p {p_is(above.p)})" if above.p is not None else ""
        text += (
            f", {where} the band of random directions' means over seeds [{rate(band[0])}, {rate(band[1])}]. "
        )
        more, of = found.above(line, score, -1)
        text += f"In {more} of {of} seeds it lies above the band of that run alone; against their mean "
        text += f"{paired_text(above)}{p}"
    placed = {name: found.place(line, score, name, -1) for name in found.populations}
    beside = [
        f"{own.m} of `{name}` have {rate(own.mean)} (p {p_is(own.p)})"
        for name, own in placed.items()
        if own and own.p is not None
    ]
    beside += [f"the oracle has {rate(mean(oracle))}"] * bool(oracle)
    text += f" (n = {len(own)}). " + (f"Beside it, {', '.join(beside)} (raw p)." if beside else "")
    flags = [mean(found.of(line, score, name, -1, "f05")) for name in (found.subject, ORACLE)]
    if None in flags:
        return text
    band = found.band(line, score, -1, "f05")
    said = f", random directions [{rate(band[0])}, {rate(band[1])}]" if band else ""
    text += f" F0.5 at the threshold of step 0: {rate(flags[0])}{said}, flagging all 0.556. "
    return f"{text}The oracle has {rate(flags[1])}, at a threshold of its own pairs."


def penalised(table: Table) -> list[Line]:
    """Return the rows that are trained against a score along a pair set's direction."""
    return [line for line in table.lines if line.row.setting.needs.direction and not line.row.is_control]


def _gamed(table: Table, found: Rankings, falls: Mapping[str, Fall], score: str) -> str:
    """Say in which rows AUROC falls further than in their unpenalised baseline."""
    lines = penalised(table)
    known = [line for line in lines if falls[line.name].reading and falls[line.name].excess]
    gone = [line for line in lines if found.has(line) and line not in known]
    words = DETECTOR_SCORES[score]
    too = (
        f"{'has' if len(gone) == 1 else 'have'} hacks to rank in the last window in fewer than {SEEDS} seeds"
    )
    left = f" {len(gone)} of {len(lines)} penalised rows {too}." * bool(gone)
    if not known:
        fewer = f"no penalised row has {SEEDS} seeds with hacks to rank"
        return f"Whether the {words} falls further where runs are penalised cannot be told: {fewer}.{left}"
    by = {kind: [line for line in known if falls[line.name].reading == kind] for kind in READINGS}
    named = [f"`{line.name}` {with_p(falls[line.name].excess)}" for line in by["evasion"]]
    # What no run is trained against can be evaded by none.
    readings = READINGS if score != ALIGNMENT else READINGS | BESIDE
    counts = [f"{len(by[kind])} {text}" for kind, text in readings.items() if by[kind] or kind == "evasion"]
    rows = f"{len(known)} penalised row{'s' * (len(known) > 1)}"
    ns = with_n(falls[line.name].excess for line in known)
    against = "" if score != ALIGNMENT else ", which none is trained against"
    text = (
        f"AUROC of the {words}{against}, {rows} against the unpenalised baseline ({ns}): {', '.join(counts)}"
    )
    text += f" ({listing(named)})." if named else "."
    if open_ := [falls[line.name].excess.most for line in known if not is_shown(falls[line.name].excess)]:
        text += f" Where none is shown, it may be further by {rate(max(open_))} at most (one-sided 95%, unadjusted)."
    return text + left


READINGS = {
    "evasion": "fall further (evasion)",
    "drift": "fall, no further being shown (drift)",
    "none": "have no fall shown",
    "less": "fall less",
}
BESIDE = {"evasion": "fall further", "drift": "fall, no further being shown"}


def _hacks(found: Rankings, line: Line, window: int) -> float | None:
    """Return the hack rate of all rollouts of a window, mean over seeds."""
    return mean(line.over("hack", *found.windows[line.name][window]))


def _kept(table: Table, found: Rankings, line: Line, lost: Mapping[str, stats.Paired | None]) -> str | None:
    """Say what the threshold of step 0 keeps in plain training and in the penalised rows that still hack."""

    ends = [
        mean(found.of(line, CONCEPT, found.subject, window, key))
        for key in ("precision", "recall")
        for window in (0, -1)
    ]
    if None in ends:
        return None
    text = "The threshold of step 0 has precision {} in the first window of `{}` and {} in the last, recall {} and {}"
    p0, p1, r0, r1 = map(rate, ends)
    text = text.format(p0, line.name, p1, r0, r1)
    shares = [rate(_hacks(found, line, window)) for window in (0, -1)]
    text += f", where {shares[0]} and {shares[1]} of all rollouts hack"
    known = [row for row in penalised(table) if (pair := lost.get(row.name)) and pair.p is not None]
    if not known:
        return f"{text}."
    less = [row for row in known if is_shown(lost[row.name]) and lost[row.name].delta < 0]
    named = [f"`{row.name}` {with_p(lost[row.name])}" for row in less]
    text += f". Recall is lower than the unpenalised baseline's in {len(less)} of {len(known)} penalised rows that hack"
    return text + (f" ({listing(named)})." if named else ".")


def opening(table: Table, found: Rankings, falls: Falls) -> tuple[str, ...]:
    """Return what the first screen says: how well the score ranks, and whether it does so where it is penalised."""
    line = first(table)
    if line is None or not found.has(line):
        return ()
    said = _detects(line, found, CONCEPT), _gamed(table, found, falls[CONCEPT], CONCEPT)
    return tuple(text for text in said if text)


def sentences(
    table: Table, found: Rankings, falls: Falls, lost: Mapping[str, stats.Paired | None]
) -> tuple[str, ...]:
    """Return the answer."""
    line = first(table)
    if line is None or not found.has(line):
        return ("No run has been ranked.",)
    said = [_detects(line, found, score) for score in (CONCEPT, ALIGNMENT)]
    said += [_gamed(table, found, falls[score], score) for score in (CONCEPT, ALIGNMENT)]
    said.append(_kept(table, found, line, lost))
    return tuple(text for text in said if text)
