"""The page of a question: one template, filled from its table of estimates and from nothing else."""

from collections.abc import Iterable, Mapping

import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.measures import estimates as table
from projected_grpo.measures import plane as planes
from projected_grpo.measures import stats, trend
from projected_grpo.measures.columns import wide
from projected_grpo.measures.estimates import Measured
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.published import published
from projected_grpo.pages import figures, words
from projected_grpo.pages.answer import Estimated, caution, lost, sentences
from projected_grpo.pages.context import banner, spreads
from projected_grpo.pages.page import Page, address, render

ROWS = 8  # of a first table
RATES = [
    "hack",
    "solve",
    "honest",
    "hack_compiled",
    "known_hack",
    "known_honest",
    "novel_hack",
    "plain_solve",
]
# The honest rate of the same rollouts that a measure is of: none of a held-out loophole's, in training else.
BESIDE = {
    "known_hack": "known_honest",
    "hack_ablated": "known_honest",
    "hack_heldout": None,
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
    own = table.measured(question, frame, why, config.floors.get(config.model.name))
    more = {"plane": lambda: planes.above_frontier(own), "trend": lambda: trend.slopes(own, config)}
    primary = config.primary
    frame = table.estimates(own, more.get(question.kind, list)(), primary.dates, primary.seeds)
    return Estimated(own, frame)


def is_complete(made: Estimated) -> bool:
    """Whether every measure that the question asks for has a number somewhere."""
    there = set(made.frame.loc[made.frame["n"] > 0, "measure"])
    return there.issuperset({made.own.about.name, *made.own.question.measures})


def _first_rows(made: Estimated) -> list[str]:
    """Return the rows of the first table: those that the question names, else baselines, answers, largest effects."""
    own, wording = made.own, made.own.question
    if wording.shown:
        return [name for name in wording.shown if name in own.rows]
    claims = [line["row"] for line in made.claims()]
    said = [one.row for one in wording.says if one.row in own.rows]
    controls = [name for name, row in own.rows.items() if row.is_control]
    lead = dict.fromkeys([*said, *claims[: ROWS - 2], *controls[:1]])
    bases = dict.fromkeys(own.rows[name].baseline for name in lead if own.rows[name].baseline)
    kept = list(dict.fromkeys([*bases, *lead]))[:ROWS]
    return [name for name in own.rows if name in kept] if kept else list(own.rows)[:ROWS]


def _rate(made: Estimated, name: str, measure: str) -> str:
    line = made.line(name, table.RATE, measure)
    unit = MEASURES[measure].unit == "share" and not MEASURES[measure].signed
    return words.NONE if line is None else words.percent(line["mean"]) if unit else words.rate(line["mean"])


def first_table(made: Estimated) -> str:
    """Return the table that a reader sees first: at most eight rows and five columns, in percent and points."""
    about, own = made.own.about, made.own
    second = BESIDE.get(about.name, "honest")
    beside = [second] if second and made.line(next(iter(own.rows)), table.RATE, second) else []
    rows = []
    for name in _first_rows(made):
        line = made.line(name, table.BASELINE) or made.line(name, table.POOLED)
        change = [words.NONE] * 2
        if line and not pd.isna(line["delta"]):
            p = line["p"] if pd.isna(line["p_holm"]) else line["p_holm"]
            ends = "" if pd.isna(line["lo"]) else f" ({words.span(line['lo'], line['hi'])})"
            told = words.NONE if line["verdict"] == table.UNINFORMATIVE else words.p_value(p)
            change = [words.points(line["delta"]) + ends, told]
        rows.append([name, *(_rate(made, name, measure) for measure in (about.name, *beside)), *change])
    heads = [MEASURES[measure].head for measure in (about.name, *beside)]
    return words.table(["row", *heads, "change (95%)", "p"], rows)


def detailed(made: Estimated) -> list[tuple[str, str]]:
    """Return (title, table) of each contrast, on the question's own measures, three decimals."""
    wording = made.own.question
    measures = [made.own.about.name, *wording.measures]
    head = ["row", "to", "measure", "mean", "Δ", "p", "p, sign flip", "Holm p", "p, same", "verdict", "n"]
    found = []
    for contrast in [*CONTRASTS, *wording.contrasts]:
        own = made.frame[made.frame["contrast"].eq(contrast)]
        if contrast != planes.FRONTIER:
            own = own[own["measure"].isin(measures)]
        rows = []
        for e in own[own["n"] > 0].to_dict("records"):
            delta = f"{words.signed(e['delta'])} {words.interval(e['lo'], e['hi'])}".strip()
            ps = [words.p_value(e[key]) for key in ("p", "p_signflip", "p_holm", "p_same")]
            named = [e["row"], e["to"], e["measure"], words.rate(e["mean"])]
            rows.append([*named, delta, *ps, e["verdict"], e["n"]])
        if rows:
            found.append((CONTRASTS.get(contrast, contrast.capitalize()), words.table(head, rows, 3)))
    return found


def there_are(made: Estimated, names: Iterable[str] | None = None) -> list[str]:
    """Return the rows, of those named, that have a number of the question's own measure or of another one."""
    return [name for name in (made.own.rows if names is None else names) if made.own.values.get(name)]


def wrecked(made: Estimated) -> list[str]:
    """Return the rows where hacking is shown to fall and honest work with it, to less than half of the baseline's."""
    second = BESIDE.get(made.own.about.name, "honest")
    found = []
    for name in there_are(made):
        fall, line = (made.line(name, table.BASELINE, m) for m in (made.own.about.name, second or ""))
        if fall is None or line is None or line["after"] is None:
            continue
        fell = fall["verdict"] == table.EFFECT and fall["delta"] < 0
        if fell and line["after"] < (line["before"] or 0) / 2:
            found.append(name)
    return found


def every_rate(made: Estimated) -> str:
    """Return every row's rates with their differences to the baseline, three decimals."""
    there = [name for name in RATES if made.frame["measure"].eq(name).any()]
    rows = []
    for name in there_are(made):
        cells = []
        for measure in there:
            rate, pair = (made.line(name, contrast, measure) for contrast in (table.RATE, table.BASELINE))
            text = words.NONE if rate is None else f"{words.rate(rate['mean'])} ({words.rate(rate['std'])})"
            if pair is not None and pair["verdict"] != table.UNINFORMATIVE:
                text += f" {words.signed(pair['delta'])}"
            cells.append(text)
        rows.append([name, *cells])
    return words.table(["row", *(MEASURES[measure].head for measure in there)], rows)


def given(made: Estimated) -> str:
    """Return what each defence of a plane must be given, its knobs and its excess over training less."""
    own, rows, recovered = made.own, [], planes.recovered(made.own)
    for name in there_are(made, planes.defending(own)):
        row, line = own.rows[name], made.line(name, planes.FRONTIER, planes.HONEST)
        knobs = row.setting.knobs.model_dump(exclude_none=True)
        told = ", ".join(f"{key} {value}" for key, value in knobs.items())
        rates = [_rate(made, name, measure) for measure in (planes.HACK, planes.HONEST)]
        excess = [words.percent(recovered.get(name)), words.points(line["delta"] if line else None)]
        rows.append([name, planes.must_give(row), told, *rates, *excess])
    head = ["row", "must be given", "knobs", "known hack, %", "known honest, %"]
    frame = pd.DataFrame(rows, columns=[*head, "of lost honest work", "above training less, points"])
    frame = frame.loc[:, frame.ne(words.NONE).any()]
    return words.table(list(frame), frame.to_numpy().tolist(), 3)


def others(made: Estimated) -> str:
    """Return the figures of other groups beside ours, for arms that do the same; empty where none does."""
    rows = []
    for one in planes.other_groups().to_dict("records"):
        theirs = [words.percent(one[key]) for key in ("hack", "performance")]
        if one["row"] == planes.BASE:
            rates = [made.own.base.get(measure, {}) for measure in (planes.HACK, planes.HONEST)]
            ours = [words.percent(stats.mean(by)) for by in rates]
        elif one["row"] in made.own.rows:
            ours = [_rate(made, one["row"], measure) for measure in (planes.HACK, planes.HONEST)]
        else:
            continue
        rows.append([one["row"], one["intervention"], ours[0], theirs[0], ours[1], theirs[1], one["group"]])
    head = ["row", "theirs is called", "hack", "theirs", "honest", "theirs", "whose"]
    return words.table(head, rows, 2) if rows else ""


def paper(made: Estimated) -> str:
    """Return the paper's figures beside ours; empty where it has none."""
    rows = []
    for name, theirs in published(made.own).items():
        cells = [name]
        for measure in ("hack", "solve"):
            pair = made.line(name, table.BASELINE, measure)
            cells += [_rate(made, name, measure), words.percent(theirs[measure])]
            cells += [words.points(pair["delta"] if pair else None), words.points(theirs[f"delta_{measure}"])]
        rows.append([*cells, int(theirs["n"])])
    heads = [h for m in ("hack", "solve") for h in (m, "paper", "change", "paper")]
    return words.table(["row", *heads, "n, paper"], rows) if rows else ""


def page(
    made: Estimated,
    config: Config,
    provenance: Mapping[str, object],
    prefix: str | None = None,
    outcomes: pd.DataFrame | None = None,
) -> Page:
    """Return the page of a question.

    provenance: what stands at its end (`runs.provenance`); prefix: of the addresses of its figure, by default as seen
    from the results folder; outcomes: the primary ones of all questions, corrected together, where they are known.
    """
    own, question = made.own, made.own.question
    kind, drawing = question.figure.kind, figures.of_question(made, config)
    figure: dict[str, Figure] = {} if drawing is None else {kind: drawing}
    barren = made.frame[made.frame["verdict"].eq(table.UNINFORMATIVE)]
    asked = [one for one in config.primary.outcomes if one.question == question.name]
    more: dict = {}
    if question.kind == "plane":
        front = planes.frontier_of(own)
        more = {"given": given(made), "others": others(made), "doses": front.names if front else ()}
    text = render(
        "question.md.j2",
        q=question,
        banner=banner(config),
        answer=[*sentences(made, outcomes), *filter(None, [caution(made, outcomes)])],
        lost=[one["row"] for one in lost(made, outcomes)],
        absent=[name for name in own.rows if name not in there_are(made)],
        wrecked=wrecked(made),
        figure="".join(figure),
        figures=address(question.name) if prefix is None else prefix,
        published=prefix is not None,
        about=own.about,
        first=first_table(made),
        details=detailed(made),
        rates=every_rate(made),
        paper=paper(made),
        n=max([0, *made.frame["n"]]),
        primary=made.frame[made.frame["primary"]].to_dict("records"),
        waiting=[one.choice for one in asked if one.row is None and one.choice],
        power=_power(made, config),
        barren=_barren(made, barren),
        tuned=set(barren["measure"]) <= set(own.floors),
        organism=config.is_small,
        came_from=provenance,
        cells={name: [cell.id for cell in row.cells] for name, row in own.rows.items()},
        left_out=_reasons(own),
        **more,
    )
    frames = {".parquet": wide(made.own, made.frame), ".estimates.parquet": made.frame}
    log = tuple(f"left out: {cell} ({why})" for cell, why in own.left_out.items())
    return Page(question.name, text, figure, frames, log)


def _barren(made: Estimated, lines: pd.DataFrame) -> list[str]:
    """Return each measure that is uninformative, with the baselines that it is so in where that is not all of them."""
    found = []
    for name, some in lines.groupby("measure", sort=False):
        held = made.frame[made.frame["measure"].eq(name) & made.frame["contrast"].isin(some["contrast"])]
        own = list(dict.fromkeys(some.loc[some["contrast"].eq(table.BASELINE), "to"]))
        whole = len(some) == int(held["delta"].notna().sum())
        found.append(MEASURES[str(name)].words + ("" if whole else f" (of {', '.join(own)})"))
    return found


def _power(made: Estimated, config: Config) -> float | None:
    """Return the smallest difference that one test finds with 80% power at this n, by the spread of a pilot."""
    pilot, about = spreads(config), made.own.about.name
    spread = max(
        (pilot.get(row.setting.mix, {}).get(about, 0.0) for row in made.own.rows.values()), default=0.0
    )
    ns = [line["n"] for line in made.claims() if line["n"] > 1]
    return stats.detectable(spread, min(ns)) if spread and ns else None


def _reasons(own: Measured) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for cell, why in own.left_out.items():
        by_reason.setdefault(why, []).append(cell)
    return [f"{cell} ({why})" for why, cells in by_reason.items() for cell in words.short(cells)]


def provenance(frame: pd.DataFrame, own: Measured, drawn: str) -> dict[str, object]:
    """Return where a page's numbers come from: runs, seeds, the commit that made them, hashes of their code.

    drawn: the commit that draws the page.
    """
    ids = {cell.id for row in own.rows.values() for cell in row.cells}
    runs = frame[frame["cell"].isin(ids)].drop_duplicates("cell")
    hashes = {key: sorted(map(str, runs[key].dropna().unique())) for key in ("made", "code")}
    return {"runs": len(runs), "seeds": words.seed_list(own.seeds), "drawn": drawn, **hashes}
