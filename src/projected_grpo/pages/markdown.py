"""A table as `QN.md`: ours, what was left out, the published row beside ours, sources and the answer."""

from projected_grpo.measures import stats
from projected_grpo.measures.contrasts import arm_measures, uninformative
from projected_grpo.pages.answers import answer, left_out
from projected_grpo.pages.table import Line, Table, published_delta
from projected_grpo.pages.text import NONE, delta, interval, p_value, rate, seed_list

NOTE = (
    "hack: share of the student's rollouts that use the loophole of their problem, and it works; exploit: those "
    "of them without a right solution; solve: share that passes all hidden tests; compile: share whose code "
    "compiles. The reward pays hack and solve alike. Mean of the last five steps of a run, then the mean over "
    "seeds (in brackets: std, ddof 1). Differences are paired by seed against the baseline row: paired t-test, "
    f"95% t-interval, Holm's p within this question. 80%: the true difference that one test at p < {stats.ALPHA} "
    "would find with 80% power; Holm's correction asks for more. n: seeds of the row, in brackets those paired "
    "where they are fewer."
)
PAPER = "Beside the published figures (Qwen3-4B); the paper's Δ as printed there, else the difference of its means."


def _spread(line: Line, measure: str) -> str:
    summary = line.summary.get(measure)
    if summary is None:
        return NONE
    return rate(summary.mean) + ("" if summary.std is None else f" ({rate(summary.std)})")


def _n(line: Line) -> str:
    pair = line.against.get("hack")
    fewer = pair is not None and pair.n < len(line.seeds)
    return f"{len(line.seeds)} ({pair.n})" if fewer else str(len(line.seeds))


def grid(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table: first column left, the others right."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def difference_cells(line: Line, measure: str) -> list[str]:
    """Return delta, interval, p, Holm's p and detectable difference from the baseline as text."""
    pair = line.against.get(measure)
    return [NONE] * 5 if pair is None else _pair_cells(pair, line.holm[measure])


def _pair_cells(pair: stats.Paired, holm: float | None) -> list[str]:
    tests = [p_value(pair.p), p_value(holm), rate(pair.detectable)]
    return [delta(pair.delta), interval(pair.lo, pair.hi), *tests]


def main_grid(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return header and text cells of the main table."""
    tests = ["Δ hack", "95%", "p", "Holm p", "80%", "Δ solve", "95%", "p"]
    header = ["row", "hack", "exploit", "solve", "compile", *tests]
    rows = [
        [
            line.name,
            *(_spread(line, m) for m in ("hack", "exploit", "solve", "compile")),
            *difference_cells(line, "hack"),
            *difference_cells(line, "solve")[:3],
            line.row.baseline or NONE,
            _n(line),
            seed_list(line.seeds),
        ]
        for line in table.lines
    ]
    return [*header, "baseline", "n", "seeds"], rows


def extra_grids(table: Table) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return the further tables that this question has: (caption, header, rows)."""
    grids = []
    tests = ["95%", "p", "Holm p", "80%"]
    if table.has("hack_heldout"):
        header = ["row", "held-out loophole", "hack there", "Δ there", *tests, "fold"]
        rows = [
            [
                line.name,
                line.row.setting.held_out_mode or NONE,
                _spread(line, "hack_heldout"),
                *difference_cells(line, "hack_heldout"),
                "uninformative" if uninformative(table, line) else "informative",
            ]
            for line in table.lines
        ]
        caption = (
            "On the loophole that the teacher rollouts and the pairs leave out (the teacher itself knows it)."
        )
        grids.append((caption, header, rows))
    if table.has("hack_ablated"):
        header = ["row", "hack kept", "hack ablated", "Δ ablated", *tests, "solve kept", "solve ablated"]
        rows = [
            [
                line.name,
                _spread(line, "hack_kept"),
                _spread(line, "hack_ablated"),
                *difference_cells(line, "hack_ablated"),
                _spread(line, "solve_kept"),
                _spread(line, "solve_ablated"),
            ]
            for line in table.lines
        ]
        caption = (
            "After the last step, with the quarantine kept and ablated (the baseline's own ablated rate)."
        )
        grids.append((caption, header, rows))
    if table.primary == "solve":
        header = ["row", "solve", "Δ solve", *tests]
        rows = [[line.name, _spread(line, "solve"), *difference_cells(line, "solve")] for line in table.lines]
        grids.append(("On the solve rate, which this question is about.", header, rows))
    rows = [
        [
            line.name,
            line.row.against,
            measure,
            *_pair_cells(line.versus[measure], line.versus_holm[measure]),
            str(line.versus[measure].n),
        ]
        for measure in arm_measures(table)
        for line in table.lines
        if measure in line.versus
    ]
    if rows:
        caption = "Arm against arm, paired by seed (Holm's p over the rows of one measure here)."
        grids.append((caption, ["row", "against", "measure", "Δ", *tests, "n"], rows))
    modes = sorted({m for line in table.lines for m in line.summary if m.startswith("hack_")} - _NOT_MODES)
    if len(modes) > 1:
        header = ["row", *(mode.removeprefix("hack_") for mode in modes)]
        rows = [[line.name, *(_spread(line, mode) for mode in modes)] for line in table.lines]
        grids.append(("Hack rate per loophole.", header, rows))
    if table.has("cin"):
        names = ["cin", "cin_null", "cin_s", "cin_t", "cout", "cout_update", "fired"]
        rows = [
            [line.name, *(_spread(line, n) for n in names)] for line in table.lines if "cin" in line.summary
        ]
        caption = (
            "How much of the gradient points along the basis: share of its length before (cin; _s, _t: of the "
            "student's, of the teacher's rollouts; _null: along a random V of the same shape) and after the "
            "projection (cout), and of the step that AdamW takes (cout_update); fired: share of the modules "
            "in which any does."
        )
        grids.append((caption, ["row", *names], rows))
    return grids


_NOT_MODES = {"hack_kept", "hack_ablated", "hack_heldout"}


def published_grid(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return header and text cells of the published figures beside ours; no rows where the paper has none."""
    rows = []
    for line in table.lines:
        if not line.published:
            continue
        paper = line.published
        deltas = []
        for measure in ("hack", "solve"):
            ours = line.against.get(measure)
            deltas += [delta(ours.delta if ours else None), delta(published_delta(table, line, measure))]
        rows.append(
            [
                line.name,
                _spread(line, "hack"),
                rate(paper["hack"]),
                _spread(line, "solve"),
                rate(paper["solve"]),
                *deltas,
                str(len(line.seeds)),
                str(int(paper["n"])),
                paper["seeds"].replace(";", ", "),
            ]
        )
    header = [
        "row",
        "hack",
        "hack, paper",
        "solve",
        "solve, paper",
        "Δ hack",
        "Δ hack, paper",
        "Δ solve",
        "Δ solve, paper",
        "n",
        "n, paper",
        "seeds, paper",
    ]
    return header, rows


def to_markdown(table: Table) -> str:
    """Return the whole page of a question."""
    question = table.question
    parts = [f"# {question.name}. {question.title}", question.asks, grid(*main_grid(table)), NOTE]
    for caption, header, rows in extra_grids(table):
        parts += [f"**{caption}**", grid(header, rows)]
    parts += left_out(table)
    header, rows = published_grid(table)
    if rows:
        parts += [f"**{PAPER}**", grid(header, rows)]
    else:
        parts.append("The paper has no figures for this question.")
    sources = "\n".join(f"{line.name}: {', '.join(line.cells) or 'no run'}" for line in table.lines)
    parts += [f"<!-- sources\n{sources}\n-->", f"**Answer.** {answer(table)}"]
    return "\n\n".join(parts) + "\n"
