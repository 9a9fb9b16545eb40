"""The page of a plane on made-up runs: its order, its figure, its two sentences, one seed, a tree without runs."""

import json
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic import context_of, write_run

from projected_grpo.cells.cell import Question
from projected_grpo.measures import stats
from projected_grpo.measures.panels import base_file
from projected_grpo.measures.table import make_table
from projected_grpo.pages import plane as pages_plane
from projected_grpo.pages import standing, style
from projected_grpo.pages.blocks import Listing
from projected_grpo.pages.plane_figure import places
from projected_grpo.pages.report import build
from projected_grpo.verdicts import plane
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.verdict import write

ROWS = ["vanilla", "less x0.125", "less x0.25", "less x0.5", "gt_only", "penalty", "penalty, truth100"]
ROWS += ["penalty, self-taught critic", "inoculate", "erase", "erase, random", "trusted"]
LEVELS = {  # row -> known hack, known honest
    "vanilla": (0.7, 0.15),
    "less x0.125": (0.2, 0.35),
    "less x0.25": (0.35, 0.3),
    "less x0.5": (0.55, 0.2),
    "gt_only": (0.1, 0.6),
    "penalty": (0.3, 0.6),
    "inoculate": (0.5, 0.05),
    "trusted": (0.9, 0.05),
}
SEEDS = [41, 42, 43, 44]


def judged(folder, hack, honest, key, times=2.0):
    """Give a run known rates, and times."""
    rng = np.random.default_rng(key)
    frame = pd.DataFrame({"panel": np.repeat(["known", "novel", "plain"], 200)})
    known = frame["panel"] == "known"
    frame["channel"] = rng.random(600) < np.where(known, hack, 0.2)
    frame["gt_pass"] = ~frame["channel"] & (rng.random(600) < np.where(known, honest / (1 - hack), 0.4))
    frame = frame.assign(can_compile=True, fmt_ok=True, problem_id="p", sample=0, completion="x")
    frame.to_parquet(folder / "deployed.parquet")
    if (folder / "run.json").exists():
        info = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(
            json.dumps(info | {"deployed": frame["panel"].value_counts().to_dict()})
        )
        steps = pd.read_parquet(folder / "steps.parquet")
        steps.assign(cpu_seconds=times + 1.0).to_parquet(folder / "steps.parquet")


def context(results, seeds, keep=ROWS, name="Q16") -> Context:
    made = context_of(name, results, seeds)
    question: Question = made.question
    rows = tuple(row for row in question.rows if row.name in keep)
    return replace(made, questions=made.questions | {name: replace(question, rows=rows)})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    results = tmp_path_factory.mktemp("plane")
    found = context(results, SEEDS)
    for number, row in enumerate(found.question.rows):
        for cell in row.cells:
            level = LEVELS.get(row.name, (0.4, 0.2))
            judged(
                write_run(results, cell), *level, [number, cell.seed], 5.0 if row.name == "penalty" else 2.0
            )
    for seed in SEEDS:
        path = results / base_file(f"small-s{seed}")
        path.parent.mkdir(parents=True)
        judged(path.parent, 0.05, 0.4, [99, seed])
    verdict = plane.make(found)
    write(verdict, results)
    return results, verdict


def test_rows_stand_by_honest_at_equal_hack(made):
    results, verdict = made
    frame = pd.read_parquet(results / "Q16.parquet").set_index("row")
    grid = next(block for block in verdict.page.blocks if getattr(block, "title", "").startswith("What each"))
    names = [row[0].text for row in grid.rows]
    assert names[0] == "penalty" and names[-1] == "the base, before training"
    placed = frame["excess"].dropna().sort_values(ascending=False)
    assert list(placed.index) == names[: len(placed)]
    assert pd.isna(frame.loc["trusted", "excess"])  # it hacks more than vanilla
    assert dict(zip(names, grid.rows, strict=True))["trusted"][2].text == "hacks more than vanilla"
    assert frame.loc[["vanilla", "less x0.5"], "excess"].isna().all()
    assert frame.loc["penalty", ["must_give", "family", "labels"]].tolist() == [
        "monitor",
        "reward",
        20 * 16 * 8,
    ]
    assert frame.loc["penalty, self-taught critic", ["must_give", "labels"]].tolist() == ["critic", 0]
    assert frame.loc["penalty", "time"] == pytest.approx(2) and frame.loc["erase", "time"] == pytest.approx(1)
    assert frame.loc["gt_only", "must_give"] == "oracle" and frame.loc["erase", "control"] == "erase, random"
    ps = frame["p_excess"].dropna()
    assert frame.loc[ps.idxmin(), "p_excess_holm"] == pytest.approx(min(1, ps.min() * len(ps)))


def test_it_opens_with_two_sentences_and_the_figure(made):
    _, verdict = made
    first, figure = verdict.page.top
    assert first.text.startswith("A look, with n = 4") and verdict.page.finding.startswith(
        "A look, with n = 4"
    )
    assert "1 of 4 arms without an oracle or the teacher's exploits leaves more honest work" in first.text
    assert "After 20 steps: 1 of 4 arms" in verdict.page.finding
    assert first.text.count(". ") == 2  # that this is a look, and the two
    along = "Along the teacher's exploits (`own_mode`), which no defender has beforehand, 0 of 1 leave more"
    assert along in str(verdict.page.answer)
    assert "The others: " not in first.text and "hacks more than vanilla: 1" in str(verdict.page.answer)
    assert "`penalty` (given: monitor) hacks least" in first.text
    assert figure.name == "plane" and verdict.page.blocks[0] == figure
    svg = style.to_svg(verdict.drawn["plane"][0])
    ET.fromstring(svg)
    assert svg == style.to_svg(plane.make(context(made[0], SEEDS)).drawn["plane"][0])
    names = {text.get_text() for text in verdict.drawn["plane"][0].axes[0].texts}
    assert {"penalty", "gt_only", "vanilla", "the base"} <= names and "erase, random" not in names


def once_more(verdict) -> list[str]:
    leads = [getattr(block, "lead", "") for block in verdict.page.answer]
    return [lead for lead in leads if lead.startswith("Without the seeds")]


def test_it_says_it_once_more_without_the_seed_of_the_first_trials(made):
    results, verdict = made
    listings = [block for block in verdict.page.answer if isinstance(block, Listing)]
    assert once_more(verdict) == ["Without the seeds of early trials, 41 (n = 3)."]
    others = plane.make(context(results, [42, 43, 44]))
    assert listings[1] == next(block for block in others.page.answer if isinstance(block, Listing))
    assert listings[0] != listings[1] and once_more(others) == []


def test_it_says_it_once_more_without_each_of_several_trials(made, monkeypatch):
    monkeypatch.setattr(standing, "TRIED", (range(41, 42), range(41, 43), range(1, 9), range(41, 51)))
    lead = "Without the seeds of early trials"
    assert once_more(plane.make(context(made[0], SEEDS))) == [
        f"{lead}, 41 (n = 3).",
        f"{lead}, 41, 42 (n = 2).",
    ]


def test_a_row_without_the_frontier_s_seeds_hacks_no_more_than_vanilla(made, tmp_path):
    shutil.copytree(made[0], tmp_path / "gone")
    for cell in next(row for row in context(tmp_path, SEEDS).question.rows if row.name == "vanilla").cells[
        :3
    ]:
        shutil.rmtree(tmp_path / "gone/grpo" / cell.id)
    verdict = plane.make(context(tmp_path / "gone", SEEDS))
    assert "hacks more than vanilla: 1" in str(verdict.log) and "not tested: 3" in str(verdict.log)


def test_of_several_that_hack_least_the_most_honest_one_is_named(made):
    table = make_table(context(made[0], SEEDS).question, made[0], {})
    lines = [
        replace(line, summary=line.summary | {"known_hack": stats.summarise([0.0])}) for line in table.lines
    ]
    found = {"penalty": table.line("penalty").to_baseline["known_honest"]}
    said = pages_plane.sentences(replace(table, lines=tuple(lines)), found)[1]
    assert said.startswith("`penalty` (given: monitor) hacks least")
    assert "; as little: `penalty, self-taught critic`; `inoculate`" in said and "`vanilla`" not in said


def test_one_seed_claims_nothing(made, tmp_path):
    results, _ = made
    shutil.copytree(results, tmp_path / "one")
    verdict = plane.make(context(tmp_path / "one", [41]))
    top = verdict.page.top[0].text
    assert "Nothing can be told from noise" in top and "hacks least" not in top
    assert verdict.frame["p_excess"].isna().all() and verdict.frame["excess"].notna().any()


def test_doses_are_drawn_whole_and_said_in_a_line_each(tmp_path):
    levels = {"vanilla": (0.7, 0.15), "less x0.5": (0.5, 0.2)}
    levels |= {"kl 0.03": (0.6, 0.2), "kl 0.1": (0.4, 0.3), "kl 0.3": (0.2, 0.3)}
    levels |= {"penalty 1": (0.1, 0.85), "penalty 3": (0.0, 0.9), "penalty 9": (0.0, 0.0)}
    found = context(tmp_path, [41, 42], levels, "Q17")
    assert {row.name for row in found.question.rows} == set(levels)
    for number, row in enumerate(found.question.rows):
        for cell in row.cells:
            judged(write_run(tmp_path, cell), *levels[row.name], [number, cell.seed])
    verdict = plane.make(found)
    drawing = verdict.drawn["doses"][0]
    panels = [axes for axes in drawing.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == ["kl: beta", "penalty: cost"]
    for axes in panels:
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        points = [line.get_xydata()[0] for line in axes.lines if len(line.get_xydata()) == 1]
        assert len(points) >= 3 and all(left <= x <= right and bottom <= y <= top for x, y in points)
    table = make_table(found.question, tmp_path, found.config.spreads)
    said = next(block for block in pages_plane.doses(table) if isinstance(block, Listing))
    hack, honest = (
        ", ".join(f"{table.line(f'penalty {n}').summary[name].mean:.3f}" for n in (1, 3, 9))
        for name in ("known_hack", "known_honest")
    )
    assert said.items[1] == f"`penalty`, cost 1, 3, 9: known hack {hack}; known honest {honest}"
    assert said in verdict.page.answer
    assert "doses without an oracle or" in str(verdict.page.answer)


def test_without_runs_the_page_says_so(tmp_path):
    verdict = plane.make(context(tmp_path, [41, 42]))
    assert "No defence can be placed yet" in verdict.page.top[0].text and len(verdict.page.top) == 1
    write(verdict, tmp_path)


def test_labels_overlap_neither_points_nor_each_other():
    rng = np.random.default_rng(1)
    points = [tuple(xy) for xy in rng.uniform(20, 280, (25, 2))]
    texts = [f"defence {i}" for i in range(25)]
    letter = 4.0
    found = places(points, texts, (0, 0, 300, 300), letter)
    boxes = [
        (x, y - letter, x + letter * len(text), y + letter)
        for spot, text in zip(found, texts, strict=True)
        if spot is not None
        for x, y in [spot]
    ]
    assert len(boxes) > 20
    for i, a in enumerate(boxes):
        assert a[0] >= 0 and a[2] <= 300
        assert not any(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for b in boxes[:i])
        assert not any(a[0] < x < a[2] and a[1] < y < a[3] for x, y in points)


def test_the_report_opens_with_the_plane(made, tmp_path):
    results, _ = made
    question = context(results, SEEDS).question
    page = build(results, "small", {"Q16": question}, ["Q16"], tmp_path / "paper.html")
    opens = page[page.index('class="opens"') : page.index('id="overview"')]
    assert opens.count("<svg") == 1 and "more honest work than plain training" in opens
    assert '<section id="Q16">' in page and "must be given" in page
