"""The page of a question: its table, further tables, figures, the published figures and the answer."""

from collections.abc import Callable

from matplotlib.figure import Figure as Drawing

from projected_grpo.measures import stats
from projected_grpo.measures.measure import GROUPS, MEASURES
from projected_grpo.measures.panels import base_file
from projected_grpo.measures.table import Line, Table, published_delta
from projected_grpo.pages import headline, places
from projected_grpo.pages.answers import answer
from projected_grpo.pages.blocks import Cell, Details, Figure, Grid, Listing, Page, Paragraph, Source, grid
from projected_grpo.pages.contrasts import arm_measures, is_shown, uninformative
from projected_grpo.pages.deployed import ABOUT, BASE, deployed_grid
from projected_grpo.pages.standing import standing, stands, tuned
from projected_grpo.pages.text import NONE, delta, interval, p_value, rate, seed_list, under

Column = Callable[[Line], Cell]
READ = (
    "Mean of the last five steps of each run, then over seeds (below it or in brackets: std, ddof 1).",
    "Differences are paired by seed with the row named under an arm: their 95% t-interval, Holm's p within the "
    "question, the raw p below it.",
    f"p, same: of two one-sided tests, below {stats.ALPHA} where the difference is within {stats.MARGIN} (Holm's over "
    "the rows).",
    "The reward pays hack and solve alike.",
)
PAPER = (
    "Published: Qwen3-4B, trained on `run_tests` alone; its Δ as printed there, else the difference of its means. Rows "
    "of four loopholes are of another setting than it"
)
MAIN = [name for name, measure in MEASURES.items() if measure.group == "main"]


def _mean(measure: str) -> Column:
    def cell(line: Line) -> Cell:
        summary = line.summary.get(measure)
        return Cell(NONE) if summary is None else Cell(rate(summary.mean), under(rate, summary.std))

    return cell


def pair_cells(pair: stats.Paired | None) -> tuple[Cell, Cell, Cell]:
    """Return a difference with its interval, Holm's p with the raw one, and Holm's p of its being none."""
    if pair is None:
        return (Cell(NONE),) * 3
    p = Cell(p_value(pair.holm), under(lambda p: f"p {p_value(p)}", pair.p))
    return Cell(delta(pair.delta), under(interval, pair.lo, pair.hi)), p, Cell(p_value(pair.same_holm))


def _difference(measure: str, part: int, strong: bool = False) -> Column:
    def cell(line: Line) -> Cell:
        pair = line.to_baseline.get(measure)
        found = pair_cells(pair)[part]
        fewer = part == 0 and pair is not None and pair.n < len(line.seeds)
        small = ", ".join(filter(None, [found.small, f"n = {pair.n}" if fewer else ""]))
        return Cell(found.text, small, strong=strong and is_shown(pair))

    return cell


def columns(table: Table) -> dict[str, Column]:
    """Return head -> cell of a line: the question's own measure first with its test, then the rates of every table."""
    own = [name for name in (table.primary, *table.about.beside) if name not in MAIN]
    found: dict[str, Column] = {}
    for name in dict.fromkeys((table.primary, "hack", *own, *MAIN)):
        head, primary = MEASURES[name].head, name == table.primary
        found[head] = _mean(name)
        if MEASURES[name].delta or name in own or primary:
            found[f"Δ {head}"] = _difference(name, 0, strong=primary)
        if primary or name == "hack":
            found[f"Holm p, {head}"] = _difference(name, 1)
        if primary:
            found["p, same"] = _difference(name, 2)
    return found


def _row_cell(table: Table) -> Column:
    def cell(line: Line) -> Cell:
        notes = [f"against {line.row.baseline}"] if line.row.baseline else []
        notes += ["uninformative fold"] if uninformative(table, line) else []
        return Cell(line.name, "; ".join(notes))

    return cell


def _n(line: Line) -> Cell:
    pair = line.to_baseline.get("hack")
    fewer = pair is not None and pair.n < len(line.seeds)
    return Cell(str(len(line.seeds)) + (f" ({pair.n} paired)" if fewer else ""), seed_list(line.seeds))


def main_grid(table: Table) -> Grid:
    """Return the table with the question's own measure and the rates of every question."""
    return grid(table.lines, {"row": _row_cell(table), **columns(table), "seeds": _n})


def pooled_grid(table: Table) -> tuple[Grid, ...]:
    """Return the rows that stand for several rows each."""
    title = "Folds as one: the mean of the rows by seed"
    found = {"row": _row_cell(table), **columns(table), "seeds": _n}
    return (grid(table.pooled, found, title=title),) if table.pooled else ()


def _group(table: Table, group: str) -> Details | None:
    """Return a further table: the measures of one group, with the differences that the main table lacks."""
    shown, heads = (
        [name for name in MEASURES if MEASURES[name].group == group and table.has(name)],
        columns(table),
    )
    lines = [line for line in table.lines if any(name in line.summary for name in shown)]
    if not lines or (group == "modes" and len(shown) < 2):
        return None
    found: dict[str, Column] = {"row": lambda line: Cell(line.name)}
    for name in shown:
        head = MEASURES[name].head
        found[head] = _mean(name)
        paired = any(name in line.to_baseline for line in lines)
        if paired and f"Δ {head}" not in heads:
            found |= {f"Δ {head}": _difference(name, 0), f"Holm p, {head}": _difference(name, 1)}
    about = (f"{MEASURES[name].head}: {MEASURES[name].about}." for name in shown)
    notes = (Listing(tuple(about)),) if group == "basis" else ()
    return Details(GROUPS[group], (*notes, grid(lines, found)))


def _arms(table: Table) -> Details | None:
    """Return arm against arm, on the measures that the question is about."""
    pairs = [
        (line, measure, line.to_against[measure])
        for measure in arm_measures(table)
        for line in table.lines
        if measure in line.to_against
    ]
    found = {
        "row": lambda row: row[0].name,
        "against": lambda row: row[0].row.against,
        "measure": lambda row: row[1],
        "Δ": lambda row: pair_cells(row[2])[0],
        "Holm p": lambda row: pair_cells(row[2])[1],
        "p, same": lambda row: pair_cells(row[2])[2],
        "n": lambda row: str(row[2].n),
    }
    caption = "Arm against arm, paired by seed (Holm's p over the rows of one measure here)"
    return Details(caption, (grid(pairs, found, texts=3),)) if pairs else None


def published_grid(table: Table) -> Grid | None:
    """Return the published figures beside ours; None where the paper has none."""

    def ours(measure: str) -> Column:
        return lambda line: Cell(
            delta(line.to_baseline[measure].delta if measure in line.to_baseline else None)
        )

    found: dict[str, Column] = {"row": lambda line: Cell(line.name)}
    for measure in ("hack", "solve"):
        found |= {
            measure: _mean(measure),
            f"{measure}, paper": lambda line, m=measure: Cell(rate(line.published[m])),
            f"Δ {measure}": ours(measure),
            f"Δ {measure}, paper": lambda line, m=measure: Cell(delta(published_delta(table, line, m))),
        }
    found["n, paper"] = lambda line: Cell(
        str(int(line.published["n"])), line.published["seeds"].replace(";", ", ")
    )
    lines = [line for line in table.lines if line.published]
    return grid(lines, found, title=PAPER) if lines else None


def sources(table: Table) -> tuple[Source, ...]:
    """Return what stands behind each row: its runs."""
    lines = (*table.lines, *table.pooled)
    models = dict.fromkeys(cell.model for line in lines for cell in line.row.cells)
    base = (Source(BASE, files=tuple(map(base_file, models))),) if table.base else ()
    return (*(Source(line.name, line.cells) for line in lines), *places.sources(table), *base)


def to_page(
    table: Table,
    drawn: dict[str, tuple[Drawing, str]],
    verdict: tuple = (),
    blocks: tuple = (),
    behind: tuple[Source, ...] = (),
) -> Page:
    """Return the page of a question.

    drawn: name -> (figure, caption); verdict: what a special question answers, its tests of each row then stand
    below the tables; blocks: what it adds to the page; behind: what stands behind the tables of these.
    """
    question, tests = table.question, answer(table)
    judged = deployed_grid(table)
    extras = [judged, judged and Paragraph(ABOUT, kind="legend"), _arms(table)]
    extras += [_group(table, group) for group in GROUPS]
    paper = published_grid(table) or Paragraph("The paper has no figures for this question.", kind="note")
    return Page(
        name=question.name,
        title=f"{question.name}. {question.title}",
        menu=question.name,
        asks=question.asks,
        blocks=(
            *(Figure(name, caption) for name, (_, caption) in drawn.items() if name != "summary"),
            *(Paragraph(text, kind="warn" if tuned(table) else "note") for text in standing(table)),
            *(Paragraph(text, kind="legend") for text in READ),
            *pooled_grid(table),
            main_grid(table),
            *places.blocks(table),
            *(extra for extra in extras if extra is not None),
            *blocks,
            *((Details("Every test in words", tests),) if verdict else ()),
            paper,
        ),
        answer=(*map(Paragraph, standing(table)), *(verdict or tests)),
        sources=(*sources(table), *behind),
        left_out=tuple(table.left_out.items()),
        finding=stands(table, headline.finding(table)),
        top=(
            Paragraph(headline.short(table)),
            *(Figure(name, drawn[name][1]) for name in ("places", "summary") if name in drawn),
        )[:2],
        overview=headline.overview(table),
        squares=headline.squares(table),
    )
