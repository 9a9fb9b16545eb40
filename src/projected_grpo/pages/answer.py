"""The sentences of a question, filled from its estimates: a wording for each verdict, chosen by the verdict."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import pandas as pd
from jinja2 import TemplateError

from projected_grpo.cells.cell import TEACHERS
from projected_grpo.cells.wording import Says
from projected_grpo.errors import UserError
from projected_grpo.measures import estimates as table
from projected_grpo.measures import plane, stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.measured import Measured
from projected_grpo.pages import words
from projected_grpo.pages.page import environment

SHOWN = (table.EFFECT, table.OPPOSITE)
NO_LINE = dict.fromkeys((*table.COLUMNS, "before", "after")) | {"verdict": table.MISSING}


@dataclass(frozen=True)
class Estimated:
    """The lines of a question's table of estimates, by row, contrast and measure.

    outcomes: the primary ones of all questions, corrected together (`estimates.primary_outcomes`); None: others are not
    known. fresh: the same question on seeds that confirm it, where it is asked there.
    """

    own: Measured
    frame: pd.DataFrame
    outcomes: pd.DataFrame | None = None
    fresh: "Estimated | None" = None

    @cached_property
    def lines(self) -> list[dict]:
        """Return the table with the means of both rows of a line, over its seeds, as `before` and `after`.

        None for what is missing.
        """
        found = self.frame.astype(object).where(self.frame.notna(), None).to_dict("records")
        for line in found:
            line |= self.both(line, line["measure"]) | {"words": MEASURES[line["measure"]].words}
        return found

    def both(self, line: Mapping, measure: str) -> dict:
        """Return the means of a measure in both rows of a line, over those of its seeds that both have."""
        own = [self.own.of(line[row], measure) for row in ("to", "row")]
        seeds = set(words.seeds(line["seeds"])).intersection(*filter(None, own))
        before, after = (stats.mean({seed: by[seed] for seed in seeds & by.keys()}) for by in own)
        return {"before": before, "after": after}

    @property
    def mixes(self) -> list[float]:
        """Return the shares of a teacher's rollouts that rows have, those without a teacher aside."""
        return sorted({row.setting.mix for row in self.own.question.rows} - {0})

    @cached_property
    def lost(self) -> list[tuple[Mapping, Mapping]]:
        """Return the primary outcomes that the question shows by itself, but not all of them together.

        Each as corrected together, with the line of the question's own.
        """
        every = [] if self.outcomes is None else self.outcomes.to_dict("records")
        own = [one for one in every if one["question"] == self.own.question.name]
        lines = ((one, self.of(one["row"], one["contrast"], one["measure"])) for one in own)
        alike = [(one, line) for one, line in lines if one["seeds"] == line["seeds"]]
        return [(one, line) for one, line in alike if line["verdict"] != one["verdict"]]

    @cached_property
    def _index(self) -> dict:
        return {(line["row"], line["contrast"], line["measure"]): line for line in self.lines}

    def line(self, row: str, contrast: str, measure: str | None = None) -> Mapping | None:
        """Return a line of the table, by default of the question's own measure; None without one."""
        return self._index.get((row, contrast, measure or self.own.about.name))

    def of(self, row: str, contrast: str = table.RATE, measure: str | None = None) -> Mapping:
        """Return the same for templates, where a line that is missing has None everywhere."""
        return self.line(row, contrast, measure) or NO_LINE

    def told(self, says: Says) -> Mapping:
        """Return the line that a sentence is of."""
        return self.of(says.row, says.contrast, says.measure)

    def beside(self, told: Mapping) -> Callable[..., Mapping]:
        """Return `of` for the sentence of a line: means are over its seeds, where a row has them all."""
        seeds = set(words.seeds(told["seeds"]))

        def of(row: str, contrast: str = table.RATE, measure: str | None = None) -> Mapping:
            line = self.of(row, contrast, measure)
            by = self.own.of(row, line["measure"]) if contrast == table.RATE else {}
            if not seeds or not seeds <= by.keys():
                return line
            return {**line, "mean": stats.mean({seed: by[seed] for seed in seeds}), "seeds": told["seeds"]}

        return of

    def rate(self, row: str, measure: str) -> str:
        """Return the mean of a row, or of the base before training, as tables have it: a share in percent."""
        base = stats.mean(self.own.base.get(measure, {})) if row == plane.BASE else None
        mean = self.of(row, table.RATE, measure)["mean"]
        return words.mean(base if mean is None else mean, MEASURES[measure].is_rate)

    def known(self, rows: Iterable[str], contrast: str, measure: str | None = None) -> list[Mapping]:
        """Return the lines of rows that have a difference there."""
        lines = (self.of(name, contrast, measure) for name in rows)
        return [line for line in lines if line["delta"] is not None]

    def change(self, row: str, measure: str | None = None) -> Mapping:
        """Return the line of a row, or of one that is several parts, against plain training."""
        return self.line(row, table.BASELINE, measure) or self.of(row, table.POOLED, measure)

    def changes(self, measure: str | None = None) -> list[Mapping]:
        """Return those lines that have a difference."""
        lines = (self.change(row, measure) for row in self.own.rows)
        return [line for line in lines if line["delta"] is not None]

    def claims(self) -> list[Mapping]:
        """Return the lines of the question's own measure whose rows claim something, the largest difference first."""
        found = [self.line(name, table.BASELINE) for name in self.own.rows if name in self.own.claims]
        return sorted(filter(None, found), key=lambda line: -abs(line["delta"] or 0))


def _plain(wording: str, *values: object) -> str:
    """Return one of the sentences that a question has no words of its own for."""
    macro = getattr(environment().get_template("sentences.j2").module, wording.replace(" ", "_"))
    return str(macro(*values)).strip()


def _name(own: Measured, row: str) -> str:
    """Return a row as sentences name it: with whose exploits its pairs are, where they are the teacher's."""
    known = own.rows.get(row)
    return f"`{row}`" + (" (the teacher's own exploits)" if known and known.exploits == TEACHERS else "")


def sentence(made: Estimated, says: Says) -> str:
    """Return one sentence: the wording of the verdict that the table has, filled from the table.

    Where the joint correction of primary outcomes leaves less of a difference, the wording is that of less.
    """
    line = made.told(says)
    verdict = table.NOT_SHOWN if any(line is own for _, own in made.lost) else line["verdict"]
    wording = getattr(says, verdict.replace(" ", "_"))
    if not wording:
        return _plain(verdict, _name(made.own, says.row), line)
    try:
        return environment().from_string(wording).render(line, of=made.beside(line)).strip()
    except (TemplateError, TypeError) as error:
        name = made.own.question.name
        raise UserError(f"{name}: says of {says.row!r}, {verdict}: {wording!r}: {error}") from error


def sentences(made: Estimated) -> list[str]:
    """Return the answer: what the question says, else what its largest claim does."""
    if said := made.own.question.says:
        return [sentence(made, one) for one in said]
    claims = made.claims()
    if not claims:
        return [_plain("nothing")]
    first = _plain(claims[0]["verdict"], _name(made.own, claims[0]["row"]), claims[0])
    shown = sum(line["verdict"] in SHOWN for line in claims)
    return [first, *([_plain("count", shown, len(claims))] if len(claims) > 1 else [])]


def _apart(made: Estimated) -> list[str]:
    """Return the sentences, each of other seeds than the first beginning with those."""
    of = [made.told(says)["seeds"] for says in made.own.question.says]
    first, *more = sentences(made)
    return [first] + [
        _plain("elsewhere", words.seed_list(words.seeds(seeds)), text) if seeds and seeds != of[0] else text
        for text, seeds in zip_longest(more, of[1:])
    ]


def _of_seeds(wording: str, made: Estimated) -> list[str]:
    """Return the sentences, the first one beginning with the seeds that it is of."""
    first, *more = _apart(made)
    says = made.own.question.says
    line = made.told(says[0]) if says else NO_LINE
    seeds = words.seeds(line["seeds"]) or made.own.seeds
    return [_plain(wording, words.seed_list(seeds), first, line["named"]), *more]


def answer(made: Estimated) -> list[str]:
    """Return the sentences: those of the fresh seeds that confirm a question, else its own."""
    return _apart(made) if made.fresh is None else _of_seeds("fresh", made.fresh)


def n_of_answer(made: Estimated) -> int:
    """Return the number of seeds that the first sentence is of; where it has none, the largest of a difference."""
    answering = made.fresh or made
    said = [answering.told(one) for one in answering.own.question.says]
    first, *_ = said or answering.claims() or [NO_LINE]
    differences = (line["n"] for line in made.lines if line["contrast"] != table.RATE)
    return int(first["n"] or max(differences, default=0))


def of_first_seeds(made: Estimated) -> list[str]:
    """Return the sentences of the seeds before the fresh ones; none where no others confirm a question."""
    return [] if made.fresh is None else _of_seeds("first", made)


def corrected(made: Estimated) -> list[str]:
    """Return what the correction over all primary outcomes makes of each change that the answer's seeds show alone."""
    answering = made.fresh or made
    return [
        _plain("together", _name(answering.own, line["row"]), {**line, "p_holm": one["p_holm"]})
        for one, line in answering.lost
    ]


def is_known(made: Estimated, number: int = 0) -> bool:
    """Return whether the table has what the answer, or one sentence of it by its number, is of."""
    says = made.own.question.says[number - 1 : number] if number else made.own.question.says
    lines = [made.told(one) for one in says]
    return not lines or any(line["verdict"] != table.MISSING for line in lines)


def said(made: Estimated, number: int = 0) -> str:
    """Return the answer as one text, or one sentence of it by its number; "" where the table has not what it is of."""
    if not is_known(made, number):
        return ""
    return sentences(made)[number - 1] if number else " ".join(answer(made))
