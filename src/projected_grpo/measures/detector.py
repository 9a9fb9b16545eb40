"""How well directions rank the hacks of runs (Q18): rankings of runs read, by seed, and how far they fall.

`results/detector/{cell}.parquet` has a row per window of steps, score and direction (`stages/detector.py`).
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.measures import stats
from projected_grpo.measures.columns import DETECTOR, DETECTOR_SCORES, to_frame
from projected_grpo.measures.table import Line, Table
from projected_grpo.parquet import read_parquet

CONCEPT, CONCEPT_BASE, ALIGNMENT = DETECTOR_SCORES
RANDOM, ORACLE = "random", "oracle"
LEAST = 20  # pairs of a window: with fewer a run has no AUROC there
SEEDS = 3  # with fewer that have hacks to rank, a row is no reading and stands in no test
BAND = (0.025, 0.975)  # quantiles of random directions
NUMBERS = ("pairs", "auroc", "f05", "precision", "recall", "flagged")
DRAWN = ("auroc", "f05")  # of these random directions have a band
OF = ("score", "direction", "first", "last")
BESIDE = ("random", "random_lo", "random_hi", "oracle")
EXCESS = (
    "excess_fall_{}",
    "excess_fall_{}_lo",
    "excess_fall_{}_hi",
    "p_excess_fall_{}",
    "p_excess_fall_{}_holm",
)
LOST = ("recall_lost", "recall_lost_lo", "recall_lost_hi", "p_recall_lost_holm")
BySeed = dict[int, float]


def file(cell: str) -> str:
    """Return the file of a run's rankings, below the results folder."""
    return f"detector/{cell}.parquet"


def mean(values: BySeed) -> float | None:
    """Return the mean over seeds; None without any."""
    return sum(values.values()) / len(values) if values else None


@dataclass(frozen=True)
class Rankings:
    """Rankings of a table's runs. subject: the direction that is asked about; populations: of others, by name.

    values: (row, score, direction, first step of the window, key) -> seed -> number; windows: row -> (first, last) step
    of each of its windows; draws: (row, score, first step, `auroc` or `f05`) -> seed -> `[draws]` of random directions.
    """

    subject: str
    populations: dict[str, tuple[str, ...]]
    values: dict[tuple[str, str, str, int, str], BySeed]
    windows: dict[str, list[tuple[int, int]]]
    draws: dict[tuple[str, str, int, str], dict[int, np.ndarray]] = field(default_factory=dict)

    def has(self, line: Line) -> bool:
        return line.name in self.windows

    def of(self, line: Line, score: str, direction: str, window: int, key: str = "auroc") -> BySeed:
        """Return a number by seed in a row's `window` (an index, -1 the last); of `random` the mean over draws."""
        if not self.has(line):
            return {}
        start, _ = self.windows[line.name][window]
        return self.values.get((line.name, score, direction, start, key), {})

    def _drawn(self, line: Line, score: str, window: int, key: str) -> dict[int, np.ndarray]:
        """Return seed -> a number `[draws]` of random directions, where a run has one of them all."""
        if not self.has(line):
            return {}
        start, _ = self.windows[line.name][window]
        found = self.draws.get((line.name, score, start, key), {})
        return {seed: own for seed, own in found.items() if not np.isnan(own).any()}

    def band(self, line: Line, score: str, window: int, key: str = "auroc") -> tuple[float, float] | None:
        """Return the quantiles `BAND` of random directions' mean over seeds; None without any.

        Directions are drawn anew for each seed, so that a mean over seeds takes one draw of each.
        """
        drawn = list(self._drawn(line, score, window, key).values())
        if not drawn:
            return None
        low, high = np.quantile(np.mean(drawn, axis=0), BAND)
        return float(low), float(high)

    def above(self, line: Line, score: str, window: int) -> tuple[int, int]:
        """Return in how many seeds the subject lies above the band of that run alone, and of how many."""
        drawn, own = self._drawn(line, score, window, "auroc"), self.of(line, score, self.subject, window)
        seeds = drawn.keys() & own.keys()
        return sum(own[seed] > np.quantile(drawn[seed], BAND[1]) for seed in seeds), len(seeds)

    def place(
        self, line: Line, score: str, population: str, window: int, key: str = "auroc"
    ) -> stats.Place | None:
        """Return the place of the subject in a population, by means over the seeds that all have."""
        names = (self.subject, *self.populations[population])
        every = [self.of(line, score, name, window, key) for name in names]
        seeds = set.intersection(*map(set, every))
        if not seeds:
            return None
        value, *others = (sum(own[seed] for seed in seeds) / len(seeds) for own in every)
        return stats.place(value, others)

    def fall(self, line: Line, score: str, start: Line) -> BySeed:
        """Return AUROC of another row's first window minus that of this row's last, by seed."""
        first, last = (self.of(*own, self.subject, at) for *own, at in ((start, score, 0), (line, score, -1)))
        return {seed: first[seed] - last[seed] for seed in first if seed in last}


def populations(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the names by what they are without the number at their end."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(re.sub(r"_\d+$", "", name), []).append(name)
    return {name: tuple(members) for name, members in found.items()}


def read_ranking(path: Path, subject: str) -> pd.DataFrame:
    """Read a run's rankings: a row per window, score and direction, random ones as their mean and `[draws]` of each.

    AUROC and F0.5 on fewer than `LEAST` pairs are null. Raises UserError on a file without the subject.
    """
    frame = read_parquet(path, (*OF, *NUMBERS)).astype(dict.fromkeys(NUMBERS, float))
    if subject not in set(frame["direction"]):
        raise UserError(f"{path}: has no direction {subject!r}; delete it to remake it")
    frame[list(DRAWN)] = frame[list(DRAWN)].where(frame["pairs"] >= LEAST)
    drawn = frame[frame["direction"] == RANDOM].drop(columns="direction").groupby(["score", "first", "last"])
    draws = {f"draws_{key}": drawn[key].apply(np.array) for key in DRAWN}
    random = drawn.mean().assign(direction=RANDOM, **draws).reset_index()
    return pd.concat([frame[frame["direction"] != RANDOM], random])


def read_rankings(table: Table, results: Path, subject: str, compare: Iterable[str]) -> Rankings:
    """Read the rankings of a table's runs; one without its file is left out."""
    found = Rankings(subject, populations(compare), {}, {})
    for line in table.lines:
        for run in line.runs:
            path = Path(results) / file(run.cell.id)
            for row in read_ranking(path, subject).to_dict("records") if path.exists() else ():
                window = (row["first"], row["last"])
                found.windows.setdefault(line.name, []).append(window)
                if row["direction"] == RANDOM:
                    for key in DRAWN:
                        place = (line.name, row["score"], row["first"], key)
                        found.draws.setdefault(place, {})[run.cell.seed] = row[f"draws_{key}"]
                for key in NUMBERS:
                    if not math.isnan(row[key]):
                        place = (line.name, row["score"], row["direction"], row["first"], key)
                        found.values.setdefault(place, {})[run.cell.seed] = row[key]
    found.windows.update({name: sorted(set(own)) for name, own in found.windows.items()})
    return found


@dataclass(frozen=True)
class Fall:
    """How far a row's AUROC falls, and how much further than its baseline's, paired by seed.

    All runs of a seed start from one base, where there is no hack to be ranked, and a run that is trained against the
    score has few at first. So both falls begin at the first window of the baseline's run, and differ by the last ones.
    """

    own: stats.Paired | None
    excess: stats.Paired | None

    @property
    def reading(self) -> str:
        """`evasion`: it falls further than its baseline's; `drift`: it falls, and no further is shown; `less`: not as
        far; `none`: no fall is shown; empty without a test."""
        if self.excess and self.excess.holm is not None and self.excess.holm < stats.ALPHA:
            return "evasion" if self.excess.delta > 0 else "less"
        if self.own is None or self.own.holm is None:
            return ""
        return "drift" if self.own.holm < stats.ALPHA and self.own.delta > 0 else "none"


def falls(table: Table, found: Rankings, score: str) -> dict[str, Fall]:
    """Return by row how far its AUROC falls; Holm's p over the rows, of falls and of differences a family each."""
    base = _baselines(table)
    own = {line.name: found.fall(line, score, base.get(line.name, line)) for line in table.lines}
    own = _adjusted(table, {name: stats.one_sample(values) for name, values in own.items()})
    last = _last(table, found, score)
    excess = {name: stats.paired(last[of.name], last[name]) for name, of in base.items()}
    excess = _adjusted(table, excess)
    return {name: Fall(own[name], excess.get(name)) for name in own}


def recall_lost(table: Table, found: Rankings) -> dict[str, stats.Paired | None]:
    """Return by row the recall at the threshold of step 0 in its last window minus its baseline's, with Holm's p.

    Over the seeds in which both leave `LEAST` pairs there: fewer hacks have no recall to speak of.
    """
    ranked, recall = _last(table, found, CONCEPT), _last(table, found, CONCEPT, "recall")
    known = {name: {seed: own[seed] for seed in ranked[name] if seed in own} for name, own in recall.items()}
    pairs = {name: stats.paired(known[name], known[of.name]) for name, of in _baselines(table).items()}
    return _adjusted(table, pairs)


def _baselines(table: Table) -> dict[str, Line]:
    return {line.name: table.line(line.row.baseline) for line in table.lines if line.row.baseline}


def _last(table: Table, found: Rankings, score: str, key: str = "auroc") -> dict[str, BySeed]:
    """Return by row a number of its last window."""
    return {line.name: found.of(line, score, found.subject, -1, key) for line in table.lines}


def _adjusted(table: Table, pairs: Mapping[str, stats.Paired | None]) -> dict[str, stats.Paired | None]:
    """Return tests with Holm's p, none below `SEEDS` seeds; a row that waits for runs of its own or its baseline's
    counts among them.
    """
    short = {line.name for line in table.lines if any(cell.id in table.left_out for cell in line.row.cells)}
    base = _baselines(table)
    rows = {name: {name, base[name].name if name in base else name} for name in pairs}
    tests = {name: pair if pair and pair.n >= SEEDS else None for name, pair in pairs.items()}
    waiting = sum((tests[n] is None or tests[n].p is None) and bool(rows[n] & short) for n in pairs)
    return dict(zip(tests, stats.adjust(list(tests.values()), waiting), strict=True))


def detector_frame(table: Table, found: Rankings) -> pd.DataFrame:
    """Return the rows of a table with the columns of `DETECTOR` behind them."""
    every = {score: falls(table, found, score) for score in DETECTOR_SCORES}
    records, lost = [], recall_lost(table, found)
    for line in table.every:
        record: dict[str, float | None] = {}
        for score, by_row in every.items():
            for name, window in (("first", 0), ("last", -1)):
                for key in ("auroc", "f05"):
                    own = found.of(line, score, found.subject, window, key)
                    record[f"{key}_{score}_{name}"] = mean(own)
            band = found.band(line, score, -1) or (None, None)
            random, oracle = (mean(found.of(line, score, each, -1)) for each in (RANDOM, ORACLE))
            values = (random, *band, oracle)
            record |= {f"{name}_{score}_last": v for name, v in zip(BESIDE, values, strict=True)}
            fall = by_row.get(line.name, Fall(None, None))
            own, pair = fall.own, fall.excess
            record |= {f"fall_{score}": own and own.delta, f"p_fall_{score}_holm": own and own.holm}
            values = (pair.delta, pair.lo, pair.hi, pair.p, pair.holm) if pair else (None,) * 5
            record |= {form.format(score): v for form, v in zip(EXCESS, values, strict=True)}
        for name, window in (("first", 0), ("last", -1)):
            for key in ("precision", "recall", "pairs"):
                record[f"detector_{key}_{name}"] = mean(found.of(line, CONCEPT, found.subject, window, key))
        pair = lost.get(line.name)
        values = (pair.delta, pair.lo, pair.hi, pair.holm) if pair else (None,) * 4
        records.append(record | dict(zip(LOST, values, strict=True)))
    more = pd.DataFrame(records).reindex(columns=list(DETECTOR)).apply(pd.to_numeric).astype("float64")
    return pd.concat([to_frame(table), more], axis=1)
