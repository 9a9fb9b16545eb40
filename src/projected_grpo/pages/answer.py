"""The sentences of a question, filled from its estimates: a wording for each verdict, chosen by the verdict."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from projected_grpo.cells.cell import TEACHERS
from projected_grpo.cells.wording import Says
from projected_grpo.measures import estimates as table
from projected_grpo.measures.estimates import Measured, is_claim
from projected_grpo.measures.measure import MEASURES
from projected_grpo.pages.page import environment

KEYS = ["row", "contrast", "measure"]


@dataclass
class Estimated:
    """The lines of a question's table of estimates, by row, contrast and measure."""

    own: Measured
    frame: pd.DataFrame

    def line(self, row: str, contrast: str, measure: str | None = None) -> Mapping | None:
        """Return a line of the table with the means of both its rows as `before` and `after`; None without one."""
        measure = measure or self.own.about.name
        found = self._index.get((row, contrast, measure))
        if found is None:
            return None
        rates = [self._index.get((name, table.RATE, measure)) for name in (found["to"], row)]
        before, after = (None if one is None else one["mean"] for one in rates)
        return found | {"before": before, "after": after, "words": MEASURES[measure].words}

    def known(self, rows: Iterable[str], contrast: str, measure: str | None = None) -> list[Mapping]:
        """Return the lines of rows that have a difference there."""
        lines = (self.line(name, contrast, measure) for name in rows)
        return [line for line in lines if line is not None and not pd.isna(line["delta"])]

    @cached_property
    def _index(self) -> dict:
        return {tuple(one[key] for key in KEYS): one for one in self.frame.to_dict("records")}

    def claims(self, contrast: str = table.BASELINE) -> list[Mapping]:
        """Return the lines of the question's own measure whose rows claim something, the largest difference first."""
        found = [self.line(name, contrast) for name, row in self.own.rows.items() if is_claim(row)]
        return sorted(filter(None, found), key=lambda line: -abs(np.nan_to_num(line["delta"])))


def _said(macro: str, *values: object) -> str:
    """Return one of the sentences that a question has no words of its own for."""
    return str(getattr(environment().get_template("sentences.j2").module, macro)(*values)).strip()


def _name(own: Measured, row: str) -> str:
    """Return a row as sentences name it: with whose exploits its pairs are, where they are the teacher's."""
    known = own.rows.get(row)
    return f"`{row}`" + (" (the teacher's own exploits)" if known and known.exploits == TEACHERS else "")


def sentence(made: Estimated, says: Says, outcomes: pd.DataFrame | None = None) -> str:
    """Return one sentence: the wording of the verdict that the table has, filled from the table.

    outcomes: as of `caution`; where their joint correction leaves less of a difference, the wording is that of less.
    """
    line = made.line(says.row, says.contrast, says.measure)
    verdict = line["verdict"] if line else table.MISSING
    if line and any(all(one[key] == line[key] for key in KEYS) for one in lost(made, outcomes)):
        verdict = table.NOT_SHOWN
    own = getattr(says, verdict.replace(" ", "_"))
    if own:
        return _filled(made, own, line, says.row)
    return _said(verdict.replace(" ", "_"), _name(made.own, says.row), line)


def _filled(made: Estimated, text: str, line: Mapping | None, row: str) -> str:
    def of(row: str, contrast: str = table.RATE, measure: str | None = None) -> Mapping:
        found = made.line(row, contrast, measure)
        return found or {key: None for key in (*table.COLUMNS, "before", "after")} | {
            "verdict": table.MISSING
        }

    values = dict(line or {}) | {"of": of, "seeds_n": line["n"] if line else 0}
    return environment().from_string(text).render(values).strip()


def sentences(made: Estimated, outcomes: pd.DataFrame | None = None) -> list[str]:
    """Return the answer: what the question says, else what its largest claim does; outcomes: as of `caution`."""
    said = made.own.question.says
    if said:
        return [sentence(made, one, outcomes) for one in said]
    claims = made.claims()
    if not claims:
        return [_said("nothing")]
    best = claims[0]
    first = _said(best["verdict"].replace(" ", "_"), _name(made.own, best["row"]), best)
    shown = sum(line["verdict"] in (table.EFFECT, table.OPPOSITE) for line in claims)
    return [first, *([_said("count", shown, len(claims), best["words"])] if len(claims) > 1 else [])]


def caution(made: Estimated, outcomes: pd.DataFrame | None) -> str:
    """Return what fresh seeds, or the correction over all primary outcomes, make of an answer; empty where it stands.

    outcomes: of all questions, corrected together (`estimates.primary_outcomes`); None: other questions are not known.
    """
    if fresh := [one for one, line in _primary(made, outcomes) if one["seeds"] != line["seeds"]]:
        return _said("confirmed", fresh)
    gone = lost(made, outcomes)
    return _said("together", gone) if gone else ""


def lost(made: Estimated, outcomes: pd.DataFrame | None) -> list[Mapping]:
    """Return the primary outcomes of a question that its page shows by itself, but not all of them together."""
    told = _primary(made, outcomes)
    return [one for one, line in told if one["seeds"] == line["seeds"] and line["verdict"] != one["verdict"]]


def _primary(made: Estimated, outcomes: pd.DataFrame | None) -> list[tuple[Mapping, Mapping]]:
    """Return each primary outcome of a question, as corrected together, with its line on the question's own page."""
    if outcomes is None:
        return []
    own = outcomes[outcomes["question"].eq(made.own.question.name)].to_dict("records")
    lines = ((one, made.line(one["row"], one["contrast"], one["measure"])) for one in own)
    return [(one, line) for one, line in lines if line]


def is_answered(made: Estimated) -> bool:
    """Whether each sentence that a question has words for has its number."""
    lines = (made.line(one.row, one.contrast, one.measure) for one in made.own.question.says)
    return all(line is not None and line["verdict"] != table.MISSING for line in lines)
