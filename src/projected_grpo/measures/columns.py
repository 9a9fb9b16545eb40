"""The columns of `QN.parquet`: a table as rows, every column with its description and unit.

`python -m projected_grpo.measures.columns` writes the same reference to `docs/columns.md`.
"""

import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from projected_grpo.files import atomic, write_text
from projected_grpo.measures import stats
from projected_grpo.measures.measure import FILES, MEASURES
from projected_grpo.measures.steps import COLUMNS
from projected_grpo.measures.table import Line, Table

ROWS = {  # name -> (unit, description)
    "question": ("", "name of the question"),
    "row": ("", "name of the row"),
    "arm": ("", "what is done against hacking"),
    "basis": ("", "basis V, or whose pairs give the direction; null without one"),
    "gate": ("", "what is removed along V, null where nothing is"),
    "refresh": ("steps", "V is extracted anew every so many steps, 0: never, null where nothing is removed"),
    "mix": ("share", "share of teacher rollouts in a group"),
    "steps": ("steps", "steps of a run"),
    "n": ("seeds", "runs that count"),
    "seeds": ("", "their seeds, `41;42`"),
    "baseline": ("", "row that differences are taken to"),
    "against": ("", "second row that differences are taken to"),
    "control": ("", "random-V row that differs from the row in its axes alone"),
    "population": ("", "population of placebos that the row is one of; null for a row that claims something"),
    "kind": ("", "kind of placebo"),
    "place_in": ("", "population of placebos that the row is held against"),
    "n_delta": ("seeds", "pairs behind delta_hack"),
    "cells": ("", "ids of the runs, in the order of the seeds"),
    "hack_published": ("share", "the paper's hack rate (Qwen3-4B), null where it has none"),
    "solve_published": ("share", "the paper's solve rate"),
    "delta_hack_published": ("share", "the paper's difference in the hack rate"),
}
# Of one difference, `{}` being the measure, with `against_` before it for the second row.
DIFFERENCE = {
    "delta_{}": "mean over seeds of row - baseline",
    "delta_{}_std": "std of it (ddof 1)",
    "delta_{}_lo": "lower end of its 95% t-interval",
    "delta_{}_hi": "upper end",
    "p_{}": "p of the paired t-test",
    "p_{}_holm": "Holm's p within the question",
    "p_same_{}": f"p of the two one-sided tests that it lies within +-{stats.MARGIN}",
    "p_same_{}_holm": "Holm's p of those within the question",
}
BY_SEED = "{}_by_seed"  # of a compared measure: the numbers that its mean and its tests are made of
# Of one place in a population of placebos.
PLACE = {  # name -> (unit, None: the measure's own, description)
    "place_{}_mean": (None, "mean over placebos of their difference to the baseline"),
    "place_{}_std": (None, "std of it over placebos (ddof 1)"),
    "place_{}_m": ("placebos", "how many"),
    "place_{}_rank": ("rank", "of the row among them, 1 the lowest of m + 1"),
    "place_{}_t": ("t", "(row - mean) / (std sqrt(1 + 1/m)), m - 1 degrees of freedom"),
    "place_{}_p": ("p", "its two-sided p"),
    "place_{}_p_holm": ("p", "Holm's p over the rows with a place"),
}
# Of a question that is a plane (`measures/plane.py`).
PLANE = {  # name -> (unit, description)
    "family": ("", "what the arm acts on; `less`: the frontier"),
    "must_give": (
        "",
        "what the arm must be given: nothing, a sentence, pairs, critic, rightly graded clean run, monitor, oracle, "
        "the teacher's exploits",
    ),
    "is_control": ("", "whether its direction is random"),
    "knobs": ("", "the arm's knobs as JSON"),
    "excess": (
        "share",
        "known honest minus the frontier's at the same known hack, or minus the base's where it hacks no more; null "
        "where it hacks more than vanilla",
    ),
    "excess_lo": (
        "share",
        "lower end of its 95% interval: jackknife over seeds, beside the base paired by seed",
    ),
    "excess_hi": ("share", "upper end"),
    "p_excess": ("p", "its p, t with n - 1 degrees of freedom"),
    "p_excess_holm": ("p", "Holm's p over the rows"),
    "n_excess": ("seeds", "seeds that the row has in common with all of the frontier"),
    "time": ("ratio", "time of a step relative to vanilla's"),
    "labels": ("rollouts", "verdicts that a run asks for beyond the reward"),
}
# Of a question that is a trend (`measures/trend.py`).
TREND = {  # name -> (unit, description)
    "parameters": ("log10", "log10 of the parameters of the row's adapted Linears"),
    "link": ("", "topic of the link planted in the row's corpus; null without one"),
    "rho": ("correlation", "strength of that link"),
    "overlap": ("share", "overlap of the row's axes with those of own_mode, same k: mean over seeds"),
    "overlap_null": ("share", "the same expected of random axes"),
    "cosine": ("cosine", "of the mean differences of the row's pairs and of own_mode's: mean over seeds"),
    "series": ("", "of which the row is the last: rows that are alike but for size or link"),
    "slope": ("share", "least-squares slope of the series' differences to their baselines, mean over seeds"),
    "slope_lo": ("share", "lower end of its 95% t-interval"),
    "slope_hi": ("share", "upper end"),
    "p_slope": ("p", "its p"),
    "p_slope_holm": ("p", "Holm's p over the series"),
}
# Of Q18 (`measures/detector.py`), of each of these scores.
DETECTOR_SCORES = {
    "concept": "concept score",
    "concept_base": "concept score at the base's weights",
    "alignment": "alignment of the gradient",
}
_DETECTOR = {  # `{}` being the score -> (unit, description)
    "auroc_{}_first": ("share", "AUROC of the direction in the first window of steps"),
    "auroc_{}_last": ("share", "AUROC in the last five steps"),
    "f05_{}_first": (
        "share",
        "F0.5 at the threshold of step 0 in the first window, half of each pair being hacks",
    ),
    "f05_{}_last": ("share", "F0.5 at that threshold in the last five steps"),
    "random_{}_last": ("share", "AUROC of random directions there: their mean"),
    "random_lo_{}_last": ("share", "2.5% quantile of their means over seeds"),
    "random_hi_{}_last": ("share", "their 97.5% quantile"),
    "oracle_{}_last": ("share", "AUROC of the oracle there"),
    "fall_{}": ("share", "AUROC of the baseline's first window minus that of the row's last five steps"),
    "p_fall_{}_holm": ("p", "Holm's p of that over the rows"),
    "excess_fall_{}": ("share", "that fall minus the baseline's, paired by seed"),
    "excess_fall_{}_lo": ("share", "lower end of its 95% t-interval"),
    "excess_fall_{}_hi": ("share", "upper end"),
    "p_excess_fall_{}": ("p", "p of the paired t-test"),
    "p_excess_fall_{}_holm": ("p", "Holm's p over the rows"),
}
DETECTOR = {
    form.format(score): (unit, f"{words}: {about}")
    for score, words in DETECTOR_SCORES.items()
    for form, (unit, about) in _DETECTOR.items()
} | {
    f"detector_{key}_{window}": (unit, f"{about}, {where}")
    for window, where in {"first": "first window", "last": "last five steps"}.items()
    for key, (unit, about) in {
        "precision": (
            "share",
            "of the rollouts that the concept score flags at the threshold of step 0, hacks",
        ),
        "recall": ("share", "of the hacks, those that it flags"),
        "pairs": ("pairs", "pairs of a hack and another rollout of its problem, step and length"),
    }.items()
}
DETECTOR |= {
    "recall_lost": ("share", "recall in the last five steps minus the baseline's, paired by seed"),
    "recall_lost_lo": ("share", "lower end of its 95% t-interval"),
    "recall_lost_hi": ("share", "upper end"),
    "p_recall_lost_holm": ("p", "Holm's p over the rows"),
}
# Column order that scripts rely on; the groups in between stand only where they apply.
PUBLISHED = [*list(ROWS)[:8], "hack", "hack_std", "solve", "solve_std"]
PUBLISHED += ["delta_hack", "delta_hack_std", "delta_solve", "n", "seeds"]
TESTS = ["baseline", "exploit", "delta_hack_lo", "delta_hack_hi", "p_hack", "p_hack_holm"]
TESTS += ["delta_solve_lo", "delta_solve_hi", "p_solve"]
ABLATED = ["hack_ablated", "solve_ablated"]
HELD_OUT = ["hack_heldout", "delta_hack_heldout"]
# Null in runs that were made before their files.
LATER = [
    form.format(name)
    for name in ("honest", "known_hack", "known_honest", "novel_hack", "plain_solve")
    for form in ("{}", "delta_{}", "delta_{}_lo", "delta_{}_hi", "p_{}_holm")
]
BESIDE = ["hack_published", "solve_published", "delta_hack_published", "cells"]
TEXT = [name for name, (unit, _) in (ROWS | PLANE | TREND).items() if not unit]


def reference() -> dict[str, tuple[str, str]]:
    """Return column -> (unit, description) of every column that a table can have."""
    found = ROWS | PLANE | TREND | DETECTOR
    for name, measure in MEASURES.items():
        found[name] = measure.unit, f"{measure.about}: mean over seeds"
        found[f"{name}_std"] = measure.unit, f"{measure.about}: std over seeds (ddof 1)"
        if measure.compared:
            about = f"{measure.about}: run by run, in the order of `seeds`, null where a run has none"
            found[BY_SEED.format(name)] = measure.unit, about
        kinds = {"": "", "against_": "; to the row in `against`"} if measure.compared else {}
        for before, other in kinds.items():
            for form, about in DIFFERENCE.items():
                unit = "p" if form.startswith("p_") else measure.unit
                found[form.format(before + name)] = unit, f"{measure.about}: {about}{other}"
        for form, (unit, about) in PLACE.items() if measure.compared else ():
            found[form.format(name)] = (
                unit or measure.unit,
                f"{measure.about}, placebos in `place_in`: {about}",
            )
    for form, about in DIFFERENCE.items():
        unit = "p" if form.startswith("p_") else "share"
        found[form.format("control")] = unit, f"the question's own measure: {about}; to the row in `control`"
    return found


def _difference(name: str, pair: stats.Paired) -> dict[str, float | None]:
    values = (pair.delta, pair.std, pair.lo, pair.hi, pair.p, pair.holm, pair.p_same, pair.same_holm)
    return {form.format(name): value for form, value in zip(DIFFERENCE, values, strict=True)}


def _place(name: str, place: stats.Place) -> dict[str, float | None]:
    values = (place.mean, place.std, place.m, place.rank, place.t, place.p, place.holm)
    return {form.format(name): value for form, value in zip(PLACE, values, strict=True)}


def _record(table: Table, line: Line) -> dict:
    setting = line.row.setting
    record = {
        "question": table.question.name,
        "row": line.name,
        "arm": setting.arm,
        "basis": setting.source,
        "gate": setting.knob("gate"),
        "refresh": setting.knob("refresh") if setting.knob("gate") else None,
        "mix": setting.mix,
        "steps": line.row.cells[0].steps,
        "n": len(line.seeds),
        "seeds": ";".join(str(seed) for seed in line.seeds),
        "baseline": line.row.baseline,
        "cells": list(line.cells),
        "n_delta": line.to_baseline["hack"].n if "hack" in line.to_baseline else None,
    }
    for measure, summary in line.summary.items():
        record |= {measure: summary.mean, f"{measure}_std": summary.std}
        if MEASURES[measure].compared:
            record[BY_SEED.format(measure)] = [line.values[measure].get(seed) for seed in line.seeds]
    for measure, pair in line.to_baseline.items():
        record |= _difference(measure, pair)
    if line.row.against:
        record["against"] = line.row.against
    for measure, pair in line.to_against.items():
        record |= _difference(f"against_{measure}", pair)
    if table.primary in line.to_random:
        record |= {"control": line.random, **_difference("control", line.to_random[table.primary])}
    for role in ("population", "kind", "place_in"):
        if getattr(line.row, role):
            record[role] = getattr(line.row, role)
    for measure, place in line.place.items():
        record |= _place(measure, place)
    for measure in ("hack", "solve", "delta_hack"):
        record[f"{measure}_published"] = line.published.get(measure)
    return record


def to_frame(table: Table) -> pd.DataFrame:
    """Return the table as rows for `QN.parquet`: the columns people script against, then everything else."""
    records = [_record(table, line) for line in table.every]
    ablated = ABLATED if table.has("hack_ablated") else []
    held_out = HELD_OUT if table.has("hack_heldout") else []
    first = [*PUBLISHED, *TESTS, *ablated, *held_out, *BESIDE, *LATER]
    extra = sorted({key for record in records for key in record} - set(first))
    frame = pd.DataFrame(records).reindex(columns=[*first, *extra])
    for column in frame:
        if column not in TEXT and not column.endswith(BY_SEED.format("")):
            frame[column] = pd.to_numeric(frame[column]).astype("float64")
    frame["refresh"] = frame["refresh"].astype("Int64")
    return frame.astype({"n": "int64", "steps": "int64"})


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as Parquet, atomically; its columns that are in the reference carry `description` and `unit`."""
    table, known = pa.Table.from_pandas(frame, preserve_index=False), reference()
    fields = [
        field.with_metadata(dict(zip(("unit", "description"), known[field.name], strict=True)))
        if field.name in known
        else field
        for field in table.schema
    ]
    with atomic(path) as temporary:
        pq.write_table(table.cast(pa.schema(fields, table.schema.metadata)), temporary)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def to_markdown() -> str:
    """Return `docs/columns.md`."""
    parts = [
        "# Columns",
        "Written by `python -m projected_grpo.measures.columns` from the lists that the pipeline itself reads; a test "
        "holds the two equal. The Parquet tables carry the same words as `description` and `unit` of each field.",
        "## `results/QN.parquet`",
        "What a row is:",
        _table(
            ("column", "unit", "what it says"), [(f"`{n}`", u or "text", a) for n, (u, a) in ROWS.items()]
        ),
        f"What is measured, from `{'`, `'.join(FILES)}` of each run. Every measure has its mean over seeds under its "
        "own name and `_std` (ddof 1) beside it. By step: last-five-step mean of a run.",
        _table(
            ("measure", "unit", "from", "compared", "what it says"),
            [(f"`{n}`", m.unit, m.file, "yes" if m.compared else "", m.about) for n, m in MEASURES.items()],
        ),
        "A compared measure `X` has these columns, against the row in `baseline`; as `delta_against_X` and so on "
        "against the row in `against`. `delta_control` and so on compare the question's own measure with random V.",
        _table(("column", "what it says"), [(f"`{form.format('X')}`", a) for form, a in DIFFERENCE.items()]),
        f"`{BY_SEED.format('X')}` has the numbers of its runs, in the order of `seeds`, so that every test can be made "
        "again. `make publish` writes them beside each page as `QN.csv`.",
        "A row that is held against a population of placebos (`place_in`) has its place there by its difference to the "
        "baseline. Rows of several rows pooled, each their mean by seed, stand behind the others.",
        _table(("column", "what it says"), [(f"`{form.format('X')}`", a) for form, (_, a) in PLACE.items()]),
        "A plane of defences, such as Q16, has these, too:",
        _table(
            ("column", "unit", "what it says"), [(f"`{n}`", u or "text", a) for n, (u, a) in PLANE.items()]
        ),
        "A trend, such as Q19 and Q20, has these (slopes: per unit of rho, per tenfold parameters):",
        _table(
            ("column", "unit", "what it says"), [(f"`{n}`", u or "text", a) for n, (u, a) in TREND.items()]
        ),
        "Q18 has these, too:",
        _table(("column", "unit", "what it says"), [(f"`{n}`", u, a) for n, (u, a) in DETECTOR.items()]),
        "## `results/grpo/{cell}/steps.parquet`",
        _table(("column", "unit", "what it says"), [(f"`{n}`", c.unit, c.about) for n, c in COLUMNS.items()]),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    write_text(sys.argv[1] if len(sys.argv) > 1 else "docs/columns.md", to_markdown())
