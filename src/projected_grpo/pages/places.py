"""Content against placebos: where a row lies in the population of pair sets of its format that hold no hack."""

from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Cell, Grid, Listing, Paragraph, Source, grid
from projected_grpo.pages.contrasts import is_shown, named, with_n
from projected_grpo.pages.text import NONE, delta, interval, listing, p_is, p_value, rate

READ = (
    "Placebos are pair sets without a hack, ten of text and ten of code; each has a run of its own in every "
    "replication. A row's place: its mean difference to the baseline as one more draw from the placebos of its format, "
    "t = (row - mean) / (std sqrt(1 + 1/m)), Holm's p over the rows with a place."
)


def populations(table: Table) -> dict[str, list[Line]]:
    """Return the lines of each population that have runs."""
    found: dict[str, list[Line]] = {}
    for line in table.placebos:
        if table.primary in line.to_baseline:
            found.setdefault(line.row.population, []).append(line)
    return found


def kinds(lines: list[Line]) -> dict[str, list[Line]]:
    """Return a population's lines by the kind of placebo, where it has several."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.row.kind or "", []).append(line)
    return found if len(found) > 1 else {}


def _deltas(lines: list[Line], measure: str) -> list[float]:
    return [line.to_baseline[measure].delta for line in lines if measure in line.to_baseline]


def is_placed(line: Line, measure: str) -> bool:
    """Whether a row lies outside its population: Holm's p below 0.05."""
    place = line.place.get(measure)
    return place is not None and place.holm is not None and place.holm < stats.ALPHA


def _place(line: Line, measure: str) -> str:
    place = line.place[measure]
    said = f"`{line.name}` {delta(place.value)} among `{line.row.place_in}` {delta(place.mean)} (std {rate(place.std)})"
    test = "" if place.t is None else f", t = {place.t:+.2f}, Holm p {p_is(place.holm)}"
    return f"{said}, rank {place.rank} of {place.m + 1}{test}"


def _kind(name: str, lines: list[Line], measure: str) -> list[str]:
    """Say whether the kinds of one population differ."""
    found = kinds(lines)
    if len(found) > 2:
        p = stats.anova([_deltas(own, measure) for own in found.values()])
        apart = "differ" if p is not None and p < stats.ALPHA else "are not shown to differ"
        said = f"The {len(found)} kinds of {name} placebos {apart} (analysis of variance over {len(lines)} sets, p"
        return [] if p is None else [f"{said} {p_is(p)})."]
    if len(found) < 2:
        return []
    (one, a), (other, b) = ((kind, _deltas(own, measure)) for kind, own in found.items())
    test = stats.welch(a, b)
    if test is None:
        return []
    gap, low, high, p = test
    apart = "differ" if p < stats.ALPHA else "are not shown to differ"
    return [
        f"Of the {name} placebos, {one} {apart} from {other}: {delta(gap)} {interval(low, high)} "
        f"(Welch over {len(a)} and {len(b)} sets, p {p_is(p)})."
    ]


def places(table: Table) -> list:
    """Return blocks on every row with a place: outside its population, or not told apart from it."""
    measure = table.primary
    lines = [line for line in table.lines if measure in line.place]
    if not lines:
        return []
    words = MEASURES[measure].words
    ns = with_n(line.place[measure] for line in lines)
    lead = f"Does content decide? The place of {words} among placebos of the same format ({ns})."
    blocks = [Paragraph("", lead)]
    for sign, side in ((-1, "Lower"), (1, "Higher")):
        group = [
            line for line in lines if is_placed(line, measure) and _below(line.place[measure]) == (sign < 0)
        ]
        if group:
            blocks.append(Paragraph(f"{side} than its placebos:"))
            blocks.append(Listing(tuple(_place(line, measure) for line in group)))
    rest = [line for line in lines if not is_placed(line, measure)]
    if rest:
        blocks.append(Paragraph("Not told apart from a pair set without a hack:"))
        blocks.append(Listing(tuple(_place(line, measure) for line in rest)))
    said = [text for name, own in populations(table).items() for text in _kind(name, own, measure)]
    if without := [
        line for line in table.lines if line.row.claims and line.row.baseline and measure not in line.place
    ]:
        said.append(
            f"{len(without)} other rows have no placebos of their setting or format, and claim no content."
        )
    return blocks + ([Paragraph(" ".join(said))] if said else [])


def content(table: Table) -> str:
    """Say in a sentence which pair sets do more than the placebos of their format; empty where no row has a place."""
    measure = table.primary
    lines = [line for line in table.lines if line.row.claims and measure in line.place]
    if not lines:
        return ""
    words = MEASURES[measure].words
    beyond = sorted(
        (line for line in lines if _lowers(line, measure)),
        key=lambda line: line.place[measure].value,
    )
    ns = with_n(line.place[measure] for line in lines)
    if not beyond:
        return f"None of {len(lines)} pair sets is shown to lower {words} more than placebos of its format do ({ns})."
    said = listing([f"{named(line)} {_among(line.place[measure])}" for line in beyond[:2]])
    more = f"; {len(beyond) - 2} more" if len(beyond) > 2 else ""
    verb = "lowers" if len(beyond) == 1 else "lower"
    return (
        f"{len(beyond)} of {len(lines)} pair sets {verb} {words} more than placebos do: {said}{more} ({ns})."
    )


def _lowers(line: Line, measure: str) -> bool:
    """Whether a row lowers a measure, and does so more than its placebos: beside higher ones, none is yet lower."""
    own = line.to_baseline.get(measure)
    falls = own is not None and is_shown(own) and own.delta < 0
    return falls and is_placed(line, measure) and _below(line.place[measure])


def _below(place: stats.Place) -> bool:
    return place.value < place.mean


def _among(place: stats.Place) -> str:
    return f"{delta(place.value)}, placebos {delta(place.mean)}, Holm p {p_is(place.holm)}"


def population_grid(table: Table) -> Grid | None:
    """Return mean, spread and range of each population of placebos, and of its kinds."""
    measures = dict.fromkeys(
        (table.primary, *table.about.beside, *(m for m in MEASURES if MEASURES[m].spoken))
    )
    rows = []
    for name, lines in populations(table).items():
        rows.append((f"{name} placebos", lines))
        rows += [(f"{name} placebos, {kind}", own) for kind, own in kinds(lines).items()]

    def spread(measure: str):
        def cell(row: tuple[str, list[Line]]) -> Cell:
            found = _deltas(row[1], measure)
            if not found:
                return Cell(NONE)
            summary = stats.summarise(found)
            between = f"{delta(min(found))} to {delta(max(found))}"
            return Cell(
                delta(summary.mean), between if summary.std is None else f"{rate(summary.std)}; {between}"
            )

        return cell

    heads = {f"Δ {MEASURES[m].head}": spread(m) for m in measures}
    title = (
        "Placebos: mean over pair sets of the difference to the baseline (std over them; smallest to largest)"
    )
    found = {"placebos": lambda row: row[0], "sets": lambda row: str(len(row[1])), **heads}
    return grid(rows, found, title=title) if rows else None


def place_grid(table: Table) -> Grid | None:
    """Return the place of every row that has one."""
    lines = [line for line in table.lines if table.primary in line.place]

    def of(form) -> object:
        return lambda line: form(line.place[table.primary])

    found = {
        "row": lambda line: line.name,
        "placebos": lambda line: line.row.place_in,
        "Δ": of(lambda place: delta(place.value)),
        "their mean": of(lambda place: Cell(delta(place.mean), rate(place.std))),
        "rank": of(lambda place: f"{place.rank} of {place.m + 1}"),
        "t": of(lambda place: NONE if place.t is None else f"{place.t:+.2f}"),
        "Holm p": of(
            lambda place: Cell(p_value(place.holm), "" if place.p is None else f"p {p_value(place.p)}")
        ),
    }
    title = f"Place of {MEASURES[table.primary].words} in the population of placebos"
    return grid(lines, found, texts=2, title=title) if lines else None


def blocks(table: Table) -> tuple:
    """Return what the page shows of placebos: they are no rows of its main table."""
    grids = [found for found in (place_grid(table), population_grid(table)) if found is not None]
    return (Paragraph(READ, kind="legend"), *grids) if table.placebos and grids else ()


def sources(table: Table) -> tuple[Source, ...]:
    """Return the runs behind each population and each of its kinds."""
    found = []
    for name, lines in populations(table).items():
        for kind, own in {"": lines, **kinds(lines)}.items():
            cells = tuple(cell for line in own for cell in line.cells)
            found.append(Source(f"{name} placebos, {kind}" if kind else f"{name} placebos", cells))
    return tuple(found)
