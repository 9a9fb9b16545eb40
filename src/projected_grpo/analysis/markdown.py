"""A table as `QN.md`: ours, what was left out, the published row beside ours, sources and the answer."""

from projected_grpo.analysis import stats
from projected_grpo.analysis.answers import answer, arm_measures, left_out, uninformative
from projected_grpo.analysis.table import Line, Table, published_delta
from projected_grpo.analysis.text import NONE, delta, interval, p_value, rate, seed_list

NOTE = (
    "hack, exploit, solve: mean of the last five steps of a run, then the mean over seeds (in brackets: std, "
    "ddof 1). Differences are paired by seed against the baseline row: paired t-test, 95% t-interval, Holm's "
    "p within this question. 80%: the true difference that these seeds would show with 80% power."
)


def _spread(line: Line, measure: str) -> str:
    summary = line.summary.get(measure)
    if summary is None:
        return NONE
    return rate(summary.mean) + ("" if summary.std is None else f" ({rate(summary.std)})")


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
    header = ["row", "hack", "exploit", "solve", "Δ hack", "95%", "p", "Holm p", "80%", "Δ solve", "95%", "p"]
    rows = [
        [
            line.name,
            *(_spread(line, m) for m in ("hack", "exploit", "solve")),
            *difference_cells(line, "hack"),
            *difference_cells(line, "solve")[:3],
            line.row.baseline or NONE,
            str(len(line.seeds)),
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
        grids.append(("On the loophole that teacher, pool and basis never saw.", header, rows))
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
        caption = "How much of the gradient points along the basis (null: a random V of the same shape)."
        grids.append((caption, ["row", *names], rows))
    return grids


_NOT_MODES = {"hack_kept", "hack_ablated", "hack_heldout"}


def published_grid(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return header and text cells of the published figures beside ours; no rows where the paper has none."""
    rows = []
    for line in table.lines:
        if not line.published:
            continue
        paper, ours = line.published, line.against.get("hack")
        rows.append(
            [
                line.name,
                _spread(line, "hack"),
                rate(paper["hack"]),
                _spread(line, "solve"),
                rate(paper["solve"]),
                delta(ours.delta if ours else None),
                delta(published_delta(table, line)),
                str(len(line.seeds)),
                str(int(paper["n"])),
                paper["seeds"].replace(";", ", "),
            ]
        )
    header = [
        "row",
        "hack",
        "published",
        "solve",
        "published",
        "Δ hack",
        "published",
        "n",
        "published",
        "seeds",
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
        parts += ["**Beside the published figures (Qwen3-4B).**", grid(header, rows)]
    else:
        parts.append("The paper has no figures for this question.")
    sources = "\n".join(f"{line.name}: {', '.join(line.cells) or 'no run'}" for line in table.lines)
    parts += [f"<!-- sources\n{sources}\n-->", f"**Answer.** {answer(table)}"]
    return "\n\n".join(parts) + "\n"
