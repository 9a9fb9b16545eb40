"""Figures: they show the table's numbers, are valid SVG, and are the same for the same data."""

import base64
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from figures import spilled
from scipy import stats as scipy_stats
from synthetic import fill, real_questions, write_run

from projected_grpo.cells.cell import load_questions
from projected_grpo.measures.table import make_table
from projected_grpo.pages import dose, figures, style
from projected_grpo.pages.svg import inline

HEAD = "data:image/png;base64,"
CONFIG, QUESTIONS = real_questions(3)


def filled(results, name):
    for cell in QUESTIONS[name].cells:
        write_run(results, cell)
    return make_table(QUESTIONS[name], results)


@pytest.fixture(scope="module")
def q2(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("results"), "Q2")


def test_forest_shows_deltas_intervals_and_published(q2):
    axes = figures.forest(q2).axes[0]
    drawn = {round(float(x), 6) for line in axes.lines for x in line.get_xdata()}
    for line in (line for line in q2.lines if line.row.baseline):
        pair = line.to_baseline["hack"]
        assert {round(pair.delta, 6), round(pair.lo, 6), round(pair.hi, 6)} <= drawn
    assert round(0.588 - 0.719, 6) in drawn  # the paper's, over the same four seeds


def test_forest_of_a_question_on_solve_shows_the_papers_solve(tmp_path):
    axes = figures.forest(filled(tmp_path, "Q9")).axes[0]
    drawn = {round(float(x), 6) for line in axes.lines for x in line.get_xdata()}
    assert {-0.1, -0.15} <= drawn  # 0.200 and 0.150 beside vanilla's 0.300


@pytest.mark.parametrize("low, high", [(-1, 0.7), (-0.16, 0.02), (-0.012, 0.011), (-0.9, 0.1)])
def test_marks_of_differences_do_not_touch(low, high):
    with style.styled():
        drawing = style.figure(1.5)
        axes = drawing.subplots()
        style.rows(axes, ["advantage random, no teacher"])
        axes.set_xlim(low, high)
        style.difference_axis(axes)
    assert not spilled(drawing)


def test_few_seeds_are_drawn_one_by_one(q2):
    left = figures.trajectories(q2).axes[0]
    runs = [run.steps["hack_s"] for run in q2.lines[0].runs]
    assert not left.collections
    for drawn, values in zip(left.lines[:4], [np.mean(runs, axis=0), *runs], strict=True):
        assert np.allclose(drawn.get_ydata(), values)
    assert figures.of_question(q2, CONFIG)["trajectories"][1].endswith("mean over seeds; thin lines: seeds.")


def test_trajectory_band_is_the_t_interval(q2, monkeypatch):
    monkeypatch.setattr(figures, "FEW", 3)
    left = figures.trajectories(q2).axes[0]
    runs = np.stack([run.steps["hack_s"] for run in q2.lines[0].runs])
    mean = runs.mean(axis=0)
    assert np.allclose(left.lines[0].get_ydata(), mean)
    low, high = scipy_stats.t.interval(0.95, 2, mean, scipy_stats.sem(runs, axis=0))
    band = left.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(np.nanmax(high)) and band[:, 1].min() == pytest.approx(
        np.nanmin(low)
    )


def test_svg_is_valid_deterministic_and_live_text(q2):
    first, second = (style.to_svg(figures.forest(q2)) for _ in range(2))
    assert first == second
    ET.fromstring(first)
    assert "own_mode frozen-V" in first and "<path" in first
    page = inline(first, "Q2-effects", 'a "quoted" <label>')
    ET.fromstring(page)
    assert "var(--ink)" in page and style.INK not in page and 'id="Q2-effects-' in page


def test_every_question_draws_within_its_edges(tmp_path):
    more = {"Q1": {"dose"}, "Q9": set(), "Q12": {"kept"}, "Q13": {"dose"}, "Q10": {"places"}, "Q17": {"dose"}}
    for name, own in more.items():
        drawn = figures.of_question(filled(tmp_path, name), CONFIG)
        assert set(drawn) == {"summary", "effects", "trajectories"} | own
        assert [text for drawing, _ in drawn.values() for text in spilled(drawing)] == []


def test_a_row_has_one_look_in_all_panels_of_a_dose(tmp_path):
    drawing = dose.dose(filled(tmp_path, "Q8"), CONFIG)
    (legend,) = drawing.legends
    looks = dict(zip([text.get_text() for text in legend.texts], legend.legend_handles, strict=True))
    assert [name for name in looks if name.strip()] == ["own_mode", "random", "hack", "solve", "honest"]
    for axes in drawing.axes[1:]:  # tau and pairs are varied for the exploits' own pairs alone
        assert {line.get_color() for line in axes.lines} == {looks["own_mode"].get_color()}


def test_nothing_to_draw_draws_nothing(tmp_path):
    assert figures.of_question(make_table(QUESTIONS["Q12"], tmp_path), CONFIG) == {}


def test_dose_curves_differ_in_one_knob(tmp_path):
    found = dose.curves(filled(tmp_path, "Q8"), CONFIG)
    shown = {knob: [[x for x, _ in points] for _, points in groups] for knob, groups in found.items()}
    assert shown == {"k": 2 * [[2, 5, 12]], "tau": [[0.0, 0.25, 0.5]], "pairs": [[8, 12, 16]]}
    [(_, pairs)] = found["pairs"]
    assert {cell.settings.use.k for _, line in pairs for cell in line.row.cells} == {5}
    mixes = dose.curves(filled(tmp_path, "Q6"), CONFIG)["mix"]
    assert [name for name, _ in mixes] == ["vanilla", "paper18", "own_mode", "random"]


def test_dose_curves_of_one_pair_set_differ_in_name(tmp_path):
    """Gate by mix: a curve each, and rows that differ in another setting are on none of them."""
    mixes = (0.5, 0.25, 0.125)
    rows = [{"name": f"{gate} {mix}", "arm": "erase", "basis": "own_mode", "gate": gate, "mix": mix}
            for gate in ("one_sided", "no_gate") for mix in mixes]  # fmt: skip
    rows += [{**rows[0], "name": "another lr", "lr": 0.01}]
    question = load_questions({"Q": {"title": "t", "asks": "a?", "rows": rows}}, CONFIG)["Q"]
    fill(tmp_path, question)
    found = dose.curves(make_table(question, tmp_path), CONFIG)
    assert [(name, [x for x, _ in points]) for name, points in found["mix"]] == [
        ("own_mode (one_sided 0.125 ...)", [0.125, 0.25, 0.5]),
        ("own_mode (no_gate 0.125 ...)", [0.125, 0.25, 0.5]),
    ]
    assert "another lr" not in {line.name for _, points in found["mix"] for _, line in points}


def error_marks(drawing):
    """Return the points of all error bars and caps that are drawn."""
    points = []
    for axes in drawing.axes:
        points += [xy for bars in axes.collections for part in bars.get_segments() for xy in part]
        points += [xy for line in axes.lines if line.get_marker() in ("|", "_") for xy in line.get_xydata()]
    return [xy for xy in points if np.isfinite(xy).all()]


@pytest.mark.parametrize("name, figure", [("Q12", "kept"), ("Q13", "dose")])
def test_one_seed_draws_no_error_bars(name, figure, tmp_path):
    drawing, caption = figures.of_question(filled(tmp_path, name), CONFIG)[figure]
    assert error_marks(drawing) and "seeds" in caption and ("std" in caption or "interval" in caption)
    config, questions = real_questions([41])
    drawing, caption = figures.of_question(make_table(questions[name], tmp_path), config)[figure]
    assert error_marks(drawing) == []
    assert "one seed" in caption and "std" not in caption and "interval" not in caption
    ET.fromstring(style.to_svg(drawing))


def test_a_heat_map_stands_in_a_page_as_the_image_that_it_is():
    drawing = style.figure(2)
    drawing.subplots().imshow(np.eye(3))
    svg = style.to_svg(drawing)
    link = "{http://www.w3.org/1999/xlink}href"
    (drawn,) = [part.get(link) for part in ET.fromstring(svg).iter() if part.tag.endswith("image")]
    page = ET.fromstring(inline(svg, "q-heat", "a heat map"))
    (shown,) = [part.get("href") for part in page.iter() if part.tag.endswith("image")]
    assert shown == drawn.replace(" ", "") and base64.b64decode(shown.removeprefix(HEAD))[1:4] == b"PNG"
