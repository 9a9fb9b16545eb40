"""Every comparison of a question as one tidy table: a line a row, contrast and measure, from the numbers by run.

`estimates(measured)` is a function of the numbers and of `questions.yaml` alone. Contrasts: `rate` (the row itself),
`baseline`, `against`, `random` (random axes of the same shape), `pooled` (several rows as one), `place` (among the
placebos of its format), `itself` (a measure that is a difference already, against zero), and what a question declares
in `contrasts`. Pages draw and say nothing that does not stand here or in the numbers.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from projected_grpo.cells.cell import Row
from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES, Measure
from projected_grpo.measures.measured import Measured
from projected_grpo.measures.names import (
    AGAINST,
    BASELINE,
    ITSELF,
    PLACE,
    POOLED,
    POOLED_RANDOM,
    RANDOM,
    RATE,
)

EFFECT, OPPOSITE, NOT_SHOWN = "effect", "opposite", "not shown"
UNINFORMATIVE, MISSING = "uninformative", "missing"
COLUMNS = {  # name -> (unit, description)
    "question": ("", "name of the question"),
    "row": ("", "name of the row, or of a combination of rows"),
    "contrast": ("", "rate, baseline, against, random, place, itself, frontier, slope, or a declared one"),
    "to": ("", "what it is compared with: a row, a population of placebos, the frontier"),
    "measure": ("", "name of the measure"),
    "n": ("seeds", "seeds behind the line"),
    "seeds": ("", "which, `41;42`"),
    "mean": ("", "mean of the row's own number, or of the combination, over the seeds of the line"),
    "std": ("", "std over seeds (ddof 1) of what `mean` or, in a contrast, `delta` is the mean of"),
    "delta": ("", "mean difference, paired by seed; of a place: to the mean of the placebos"),
    "lo": ("", "lower end of its 95% t-interval"),
    "hi": ("", "upper end"),
    "p": ("p", "two-sided p of the paired t-test, m - 1 degrees of freedom for a place"),
    "p_signflip": ("p", "p of the exact sign-flip test"),
    "p_holm": ("p", "Holm's p over the claims of one measure and one contrast; null for what is no claim"),
    "p_same": ("p", f"p of the two one-sided tests that the difference is within +-{stats.MARGIN}"),
    "primary": ("", "whether it is a primary outcome"),
    "named": ("", "when a primary outcome was named; `afterwards` on seeds that may have been seen before"),
    "verdict": ("", ", ".join((EFFECT, OPPOSITE, NOT_SHOWN, UNINFORMATIVE, MISSING))),
}


def random_of(rows: Mapping[str, Row], row: Row) -> str | None:
    """Return the name of the random-V row that differs from this row in its axes alone; None where there is none."""
    if row.baseline is None or row.is_control or row.population:
        return None
    same = (r for r in rows.values() if r.is_control and r.baseline == row.baseline)
    return next((r.name for r in same if not row.cells[0].unlike(r.cells[0])), None)


@dataclass(frozen=True)
class Comparison:
    """One line of the table before its family is adjusted."""

    row: str
    contrast: str
    to: str
    measure: str
    test: stats.Tested | None
    mean: float | None
    claim: bool  # of its family
    sign: int  # of the difference that the measure calls better; 0: none
    waits: bool = False  # for runs that are missing
    barren: bool = False  # too little to lower


def comparisons(own: Measured, names: Iterable[str]) -> Iterator[Comparison]:
    """Yield every comparison of a question on these measures: those of each row, then those that it declares.

    A declared combination is a hypothesis where one of its rows is, and has a baseline.
    """
    for measure in (MEASURES[name] for name in names):
        for row in own.rows.values():
            yield from _of_row(own, row, measure)
        for contrast, combinations in own.question.contrasts.items():
            for name, weights in combinations.items():
                if own.rows.keys() >= weights.keys():  # else it is of a row that this config has not
                    claim = any(row in own.claims and own.rows[row].baseline for row in weights)
                    yield _tested(own, name, contrast, "0", measure, weights, claim=claim)


def _tested(
    own: Measured,
    row: str,
    contrast: str,
    to: str,
    measure: Measure,
    weights: Mapping[str, float],
    **more: Any,
) -> Comparison:
    """Test a weighted sum of rows by seed against zero."""
    test = stats.one_sample(own.combined(weights, measure.name))
    mean = mean_of(own, row, measure.name, test) if to in own.rows else test and test.delta
    said = {"mean": mean, "sign": measure.better, "waits": own.waits(weights)} | more
    return Comparison(row, contrast, to, measure.name, test, **said)


def mean_of(own: Measured, row: str, measure: str, test: stats.Tested | None) -> float | None:
    """Return the mean of a row over the seeds of a test of it; over all of its seeds without one."""
    by_seed = own.of(row, measure)
    return stats.mean({seed: by_seed[seed] for seed in test.seeds} if test else by_seed)


def _of_row(own: Measured, row: Row, measure: Measure) -> Iterator[Comparison]:
    claims = row.name in own.claims

    def less(contrast: str, other: str, claim: bool, **more: Any) -> Comparison:
        weights = {row.name: 1.0, other: -1.0}
        return _tested(own, row.name, contrast, other, measure, weights, claim=claim, **more)

    if row.baseline in own.rows:
        barren = own.is_barren(row, measure.name)
        single = any(row is one for one in own.question.rows)
        yield less(BASELINE if single else POOLED, row.baseline, claims and not barren, barren=barren)
        if random := random_of(own.rows, row):
            contrast = RANDOM if single else POOLED_RANDOM
            yield less(contrast, random, claims and not barren, barren=barren)
        if row.place_in:
            yield _placed(own, row, measure, claims)
    if row.against in own.rows:
        theirs = row.against in own.claims
        held = claims or not theirs  # a control is held against the claim
        yield less(AGAINST, row.against, claims or theirs, sign=measure.better if held else -measure.better)
    if measure.signed:
        yield _tested(own, row.name, ITSELF, "0", measure, {row.name: 1.0}, claim=claims)


def among_placebos(own: Measured, row: Row, measure: str) -> tuple[tuple[int, ...], dict[str, float]]:
    """Return the seeds that a row and the placebos of its format share, and each one's difference to the baseline.

    The row stands first. There are none while a placebo has no run: few of them say little of where others would lie.
    """
    found = {
        name: own.combined({name: 1.0, str(row.baseline): -1.0}, measure) for name in _with_placebos(own, row)
    }
    seeds = tuple(sorted(set.intersection(*map(set, found.values()))))
    means = {name: float(np.mean([by[seed] for seed in seeds])) for name, by in found.items() if seeds}
    return seeds, means


def _with_placebos(own: Measured, row: Row) -> list[str]:
    return [row.name, *(r.name for r in own.rows.values() if r.population == row.place_in)]


def _placed(own: Measured, row: Row, measure: Measure, claim: bool) -> Comparison:
    """Place a row among the placebos of its format, as one more draw from them (`stats.placed`)."""
    seeds, means = among_placebos(own, row, measure.name)
    test = None
    if seeds:
        value, *others = means.values()
        test = stats.placed(value, others, seeds)
    mean, waits = mean_of(own, row.name, measure.name, test), own.waits(_with_placebos(own, row))
    return Comparison(
        row.name, PLACE, str(row.place_in), measure.name, test, mean, claim, measure.better, waits
    )


def judged(found: Iterable[Comparison], family: Sequence[str]) -> pd.DataFrame:
    """Return comparisons, a line each: the fields of each and of its test, Holm's p and the verdict.

    family: the columns that a family has in common. Claims alone are hypotheses; those that wait for runs count, too.
    """
    nothing = {"n": 0, "seeds": ()}
    columns = [*Comparison.__dataclass_fields__, *stats.Tested.__dataclass_fields__]
    records = [vars(one) | (vars(one.test) if one.test else nothing) for one in found]
    frame = pd.DataFrame(records, columns=columns).assign(p_holm=np.nan)
    for _, claims in frame[frame["claim"].eq(True)].groupby(list(family)):
        waiting = int((claims["p"].isna() & claims["waits"]).sum())
        frame.loc[claims.index, "p_holm"] = stats.holm(claims["p"], waiting)
    return frame.assign(verdict=[_verdict(line) for line in frame.to_dict("records")])


def _verdict(line: Mapping) -> str:
    """Return a comparison's verdict in a word.

    A claim is judged by Holm's p. A control is no hypothesis: its own p says whether it does something, which is
    what counts against a claim.
    """
    if line["test"] is None:
        return MISSING
    if line["barren"]:
        return UNINFORMATIVE
    p = line["p_holm"] if line["claim"] else line["p"]
    if p is None or not p < stats.ALPHA:  # NaN, where there is no test
        return NOT_SHOWN
    return OPPOSITE if line["delta"] * (line["sign"] or 1) < 0 else EFFECT


# question, row, measure, contrast -> the date it was named at
Primary = Mapping[tuple[str, str, str, str], str]


def estimates(
    own: Measured,
    more: Iterable[Comparison] = (),
    primary: Primary | None = None,
    fresh: Collection[int] = (),
) -> pd.DataFrame:
    """Return the table of estimates of a question, its columns `COLUMNS`.

    more: comparisons of measures/plane.py and measures/trend.py; primary: outcomes that were named; fresh: the seeds
    that confirm them: on others numbers may have been seen before, so that an outcome counts as named afterwards.
    """
    question, about = own.question, own.about.name
    there = [name for name in MEASURES if any(name in values for values in own.values.values())] or [about]
    rates = [
        {"row": row, "contrast": RATE, "to": "", "measure": measure, "seeds": values}
        | vars(stats.summarise(list(values.values())))
        | {"verdict": "" if values else MISSING}
        for measure in there
        for row in own.rows
        if (values := own.of(row, measure)) or measure == about
    ]
    asked = [name for name in there if MEASURES[name].compared or name in question.measures]
    found = [*comparisons(own, dict.fromkeys([about, *asked])), *more]
    lines = [*rates, *judged(found, ("contrast", "measure")).to_dict("records")]
    for line in lines:
        contrast = BASELINE if line["contrast"] == POOLED else line["contrast"]
        date = (primary or {}).get((question.name, line["row"], line["measure"], contrast))
        before = line["n"] and set(line["seeds"]) <= set(fresh)
        named = (date if before else f"afterwards, {date}") if date else ""
        seeds = ";".join(map(str, sorted(line["seeds"])))
        line |= {"question": question.name, "seeds": seeds, "primary": date is not None, "named": named}
    floats = ("mean", "std", "delta", "lo", "hi", "p", "p_signflip", "p_holm", "p_same")
    types = dict.fromkeys(floats, float) | {"n": int, "primary": bool}
    return pd.DataFrame(lines, columns=list(COLUMNS)).astype(types)


def primary_outcomes(frames: Iterable[pd.DataFrame], asked: int) -> pd.DataFrame:
    """Return the primary outcomes of all questions, their `p_holm` over all that were `asked` for.

    One that several frames have is the first one's with a test. Those that are not chosen yet, or have no test, count
    as not rejected.
    """
    kept = [frame[frame["primary"]] for frame in frames]
    kept = [frame for frame in kept if len(frame)] or [pd.DataFrame(columns=list(COLUMNS))]
    found = pd.concat(kept, ignore_index=True).sort_values("p", key=pd.isna, kind="stable")
    found = found.drop_duplicates(["question", "row", "measure", "contrast"]).sort_index(ignore_index=True)
    found["p_holm"] = stats.holm(found["p"], asked - found["p"].count())
    shown = found["verdict"].isin([EFFECT, OPPOSITE]) & ~(found["p_holm"] < stats.ALPHA)
    return found.assign(verdict=found["verdict"].where(~shown, NOT_SHOWN))
