"""The page of a question: one template, filled from its table of estimates and from nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.fingerprint import ROOT
from projected_grpo.measures import estimates as table
from projected_grpo.measures import plane as planes
from projected_grpo.measures import stats, trend
from projected_grpo.measures.columns import wide
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.measured import Measured, measured
from projected_grpo.measures.numbers import of_tree
from projected_grpo.measures.published import published as published_figures
from projected_grpo.pages import words
from projected_grpo.pages.answer import Estimated, answer, corrected, of_first_seeds
from projected_grpo.pages.context import Context, banner, spreads
from projected_grpo.pages.figures.differences import forest, places
from projected_grpo.pages.figures.doses import dose, doses
from projected_grpo.pages.figures.plane import plane as plane_of
from projected_grpo.pages.page import Page, address, render
from projected_grpo.records import commit

ROWS = 8  # of a first table
# A tag, and the hash of the code behind a run there, by arm.
FROZEN = ROOT.parents[1] / "docs" / "results" / "frozen.txt"
AFTER_TRAINING = ("known_hack", "known_honest", "known_honest_no_attempt", "novel_hack", "plain_solve")
LATE = range(46, 51)  # seeds that were run after 41-45 had been looked at
RATES = ("hack", "solve", "honest", "hack_compiled", "hack_heldout", *AFTER_TRAINING)
# What stands beside a measure: the honest rate of the same rollouts, in training else; none of a held-out loophole's.
SECOND = {
    "known_hack": "known_honest",
    "hack_ablated": "known_honest",
    "hack_heldout": "",
    "auroc_last": "known_hack",
}
CONTRASTS = {  # title of its table
    table.BASELINE: "Against the baseline",
    table.RANDOM: "Against random axes of the same shape",
    table.POOLED: "Mean over the parts, against plain training",
    table.POOLED_RANDOM: "Mean over the parts, against random axes",
    table.AGAINST: "Row against row",
    table.PLACE: "Among the placebos of its format",
    planes.FRONTIER: "Above training less, at equal hacking",
    trend.SLOPE: "Slope of the effect",
    table.ITSELF: "Against zero",
}


def estimated(
    question: Question, frame: pd.DataFrame, config: Config, why: Mapping[str, str] | None = None
) -> Estimated:
    """Return a question with its table of estimates; why: of each run left out. UserError like `numbers.check`."""
    own = measured(question, frame, why, config.floors.get(config.model.name))
    more = {"plane": lambda: planes.above_frontier(own), "trend": lambda: trend.slopes(own, config)}
    primary = config.primary
    frame = table.estimates(own, more.get(question.kind, list)(), primary.dates, primary.seeds)
    return Estimated(own, frame)


def first_rows(made: Estimated) -> list[str]:
    """Return the rows of the first table: those that the question names, else baselines, answers, largest effects."""
    own, wording = made.own, made.own.question
    if wording.shown:
        named = [name for name in wording.shown if name in own.rows]
        return [name for name in named if own.values.get(name)] or named
    claims = [line["row"] for line in made.claims()]
    said = [one.row for one in wording.says if one.row in own.rows]
    controls = [name for name, row in own.rows.items() if row.is_control]
    lead = dict.fromkeys([*said, *claims[: ROWS - 2], *controls[:1]])
    bases = dict.fromkeys(own.rows[name].baseline for name in lead if own.rows[name].baseline)
    kept = list(dict.fromkeys([*bases, *lead]))[:ROWS]
    return [name for name in own.rows if name in kept] if kept else list(own.rows)[:ROWS]


def compared(made: Estimated) -> dict[str, list[dict]]:
    """Return the lines of each contrast on the question's own measures, by the title of their table."""
    question = made.own.question
    titles = CONTRASTS | {name: name.capitalize() for name in question.contrasts}
    measures = {made.own.about.name, *question.measures, *(says.measure for says in question.says)}
    asked = [e for e in made.lines if e["measure"] in measures or e["contrast"] == planes.FRONTIER]
    found = {
        title: [e for e in asked if e["contrast"] == name and e["n"] > 0] for name, title in titles.items()
    }
    return {title: lines for title, lines in found.items() if lines}


def late(made: Estimated) -> dict[str, stats.Tested]:
    """Return the change of each row's own measure on seeds 46-50 alone, where these are some of several."""
    own, found = made.own, {}
    if set(own.seeds) <= set(LATE):
        return {}
    for line in made.changes():
        by_seed = own.combined({line["row"]: 1.0, line["to"]: -1.0}, own.about.name)
        if test := stats.one_sample({seed: by_seed[seed] for seed in by_seed.keys() & set(LATE)}):
            found[line["row"]] = test
    return found


def wrecked(made: Estimated, honest: str) -> list[str]:
    """Return the rows where hacking falls and honest work with it, to less than half of the baseline's.

    It falls by an uncorrected p, as this is a warning: a claim is warned of as soon as a control is.
    """
    held = made.changes() if honest and made.own.about.better < 0 else []
    fell = [e["row"] for e in held if e["delta"] < 0 and e["p"] is not None and e["p"] < stats.ALPHA]
    lines = (made.change(name, honest) for name in fell)
    return [e["row"] for e in lines if e["after"] is not None and e["after"] < (e["before"] or 0) / 2]


def broken(made: Estimated) -> list[str]:
    """Return the rows after whose training fewer than half of the answers compile."""
    rates = {name: stats.mean(made.own.of(name, "known_compile")) for name in made.own.rows}
    return [name for name, rate in rates.items() if rate is not None and rate < 0.5]


def figure(made: Estimated, config: Config) -> dict[str, Figure]:
    """Return the figure that a question asks for, by its kind; a forest where its own has no number to draw."""
    asked = made.own.question.figure
    measure, kind, drawing = asked.measure or made.own.about.name, asked.kind, None
    if kind == "plane":
        drawing = plane_of(made, asked.labels)
    elif kind == "places":
        drawing = places(made)
    elif kind == "dose":
        drawing = dose(made, asked.x, config, measure) if asked.x else doses(made)
    if drawing is None and kind != "plane":
        kind, drawing = "forest", forest(made, measure)
    return {kind: drawing} if drawing else {}


def page(
    made: Estimated,
    config: Config,
    provenance: Mapping,
    published: bool = False,
    earlier: Mapping[str, str] | None = None,
) -> Page:
    """Return the page of a question.

    provenance: what stands at its end (`provenance`); earlier: Holm's p that rows had in other families.
    """
    own, question, about = made.own, made.own.question, made.own.about
    drawings = figure(made, config)
    second = SECOND.get(about.name, "honest")
    measures = {line["measure"] for line in made.lines}
    shown = [about.name, *({second} & measures)]
    there = [name for name in own.rows if own.values.get(name)]
    unrun = {cell.id for name, row in own.rows.items() if name not in there for cell in row.cells}
    gaps = {cell: why for cell, why in own.left_out.items() if cell not in unrun or why != table.MISSING}
    barren = made.frame[made.frame["verdict"].eq(table.UNINFORMATIVE)]
    asked = [one for one in config.primary.outcomes if one.question == question.name]
    plane: dict = {"others": ()}
    if question.kind == "plane":
        front = planes.frontier_of(own)
        known = {planes.BASE, *own.rows}
        others = [one for one in planes.other_groups().to_dict("records") if one["row"] in known]
        plane = {"others": others, "doses": front.names if front else (), "must_give": planes.must_give}
        plane |= {"defending": planes.defending(own), "recovered": planes.recovered(own)}
        parts = planes.panels(own)
        plane |= {"panels": parts, "paired": all(map(planes.are_paired, parts))}
    sides = {}
    if matrix := question.matrix:
        sides = {
            row: [made.of(matrix.of(row, one), table.BASELINE) for one in matrix.columns]
            for row in matrix.rows
        }
    n = max([0, *made.frame["n"][made.frame["measure"].eq(about.name)]])
    changes = {name: made.change(name) for name in first_rows(made)}
    text = render(
        "question.md.j2",
        q=question,
        made=made,
        banner=banner(config),
        answer=answer(made),
        corrected=corrected(made),
        first_seeds=of_first_seeds(made),
        late=late(made),
        earlier={row: p for row, p in (earlier or {}).items() if row in own.claims},
        lost=[one["row"] for one, _ in made.lost],
        kind=next(iter(drawings), ""),
        address=address(question.name),
        published=published,
        first=changes,
        fewer=[name for name, line in changes.items() if 0 < (line["n"] or 0) < n],
        shown=[MEASURES[name] for name in shown],
        sides=sides,
        compared=compared(made),
        rated=[MEASURES[name] for name in dict.fromkeys((*RATES, *question.measures)) if name in measures],
        there=there,
        absent=_absent(own, there),
        unknown=[MEASURES[name].head for name in question.measures if name not in measures],
        wrecked=wrecked(made, second),
        broken=broken(made),
        paper=published_figures(own),
        n=n,
        teacher_steps={config.grpo.presets[row.setting.preset].teacher_steps for row in question.rows},
        named_seeds=config.primary.seeds,
        primary=[line for line in made.lines if line["primary"]],
        waiting=[one.choice for one in asked if one.row is None and one.choice],
        power=_power(made, config),
        barren=_barren(made, barren),
        tuned=set(barren["measure"]) <= set(own.floors),
        organism=config.is_small,
        came_from=provenance,
        left_out=[
            f"{name} ({why})"
            for why in dict.fromkeys(gaps.values())
            for name in words.short(cell for cell, of in gaps.items() if of == why)
        ],
        **plane,
    )
    frames = {".parquet": wide(own, made.frame), ".estimates.parquet": made.frame}
    log = tuple(f"left out: {cell} ({why})" for cell, why in own.left_out.items())
    return Page(question.name, text, drawings, frames, log)


def make(context: Context) -> Page:
    """Return the page of a question of a results tree; runs that do not count are left out and named."""
    frame, (_, why) = of_tree(context.config, [context.question])
    made = estimated(context.question, frame, context.config, why)
    return page(made, context.config, provenance(frame, made.own, commit()))


def _barren(made: Estimated, lines: pd.DataFrame) -> list[str]:
    """Return each measure that is uninformative, with the baselines that it is so in where that is not all of them."""
    found = []
    for name, some in lines.groupby("measure", sort=False):
        held = made.frame[made.frame["measure"].eq(name) & made.frame["contrast"].isin(some["contrast"])]
        own = list(dict.fromkeys(some.loc[some["contrast"].eq(table.BASELINE), "to"]))
        whole = len(some) == int(held["delta"].notna().sum())
        found.append(MEASURES[str(name)].words + ("" if whole else f" (of {', '.join(own)})"))
    return found


def _absent(own: Measured, there: Sequence[str]) -> list[str]:
    """Return the rows without a run, of the placebos of a format how many."""
    gone = [row for name, row in own.rows.items() if name not in there]
    placebos = Counter(row.population for row in gone)
    names = (f"{placebos[kind]} placebos ({kind})" if (kind := row.population) else row.name for row in gone)
    return list(dict.fromkeys(names))


def _power(made: Estimated, config: Config) -> float | None:
    """Return the smallest difference that one test finds with 80% power at this n, by the spread of a pilot."""
    pilots = [spreads(config).get(row.setting.mix, {}) for row in made.own.rows.values()]
    spread = max((pilot.get(made.own.about.name, 0.0) for pilot in pilots), default=0.0)
    ns = [line["n"] for line in made.claims() if line["n"] > 1]
    return stats.detectable(spread, min(ns)) if spread and ns else None


def provenance(frame: pd.DataFrame, own: Measured, drawn: str) -> dict[str, object]:
    """Return where a page's numbers come from: runs, seeds, the commits that made them and the tag of their code.

    drawn: the commit that draws the page; code: hashes that are not those of the tag.
    """
    ids = {cell.id for row in own.rows.values() for cell in row.cells}
    runs = frame[frame["cell"].isin(ids)].drop_duplicates("cell")
    made, code = (sorted(map(str, runs[key].dropna().unique())) for key in ("made", "code"))
    tag, *frozen = FROZEN.read_text().splitlines() if FROZEN.exists() else [""]
    tagged = set(code) & {line.rsplit(" ", 1)[1] for line in frozen}
    return {
        "runs": len(runs), "seeds": words.seed_list(own.seeds), "drawn": drawn, "made": made,
        "tag": tag if tagged else None, "code": [one for one in code if one not in tagged],
    }  # fmt: skip
