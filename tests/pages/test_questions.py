"""Pages of questions: no claim of an effect that is not there, no number that is not the table's, limits of size."""

import functools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from synthetic import ROOT, read_config, real_questions

from projected_grpo.errors import UserError
from projected_grpo.measures import estimates as table
from projected_grpo.measures import numbers, stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.pages import answer, question, style
from projected_grpo.pages.edition import estimated as as_published
from projected_grpo.pages.edition import layered
from projected_grpo.pages.figures.doses import doses
from projected_grpo.pages.page import environment
from projected_grpo.pages.words import p_value, percent, points, seed_list, short, size, span
from projected_grpo.pages.words import seeds as seeds_of
from projected_grpo.strict_yaml import read_mapping

SEEDS = list(range(41, 51))
# Questions of both organisms, by config; names say which.
ASKED = {"": real_questions(SEEDS), "smollm2 ": read_config(ROOT / "config/smollm2.yaml", seeds=SEEDS)}
QUESTIONS = {where + name: one for where, (_, own) in ASKED.items() for name, one in own.items()}
CONFIGS = {where + name: config for where, (config, own) in ASKED.items() for name in own}
NAMES = [name for name, asked in QUESTIONS.items() if asked.kind != "aa"]


def where(name):
    return next(config for config in reversed(ASKED) if name.startswith(config))


def made_up(questions):
    """A number by chance for every measure of every run."""
    drawn = np.random.default_rng(0)
    cells = {cell.id: cell for one in questions for cell in one.cells}
    records = [
        numbers.of_cell(cell) | {"measure": measure, "value": drawn.uniform()}
        for cell in cells.values()
        for measure in MEASURES
    ]
    return pd.DataFrame(records, columns=numbers.COLUMNS)


@functools.cache
def frames():
    """The published numbers of the first organism, made-up ones of the second."""
    published = numbers.read(ROOT / "docs/results/runs.csv")
    return {"": published, "smollm2 ": made_up(ASKED["smollm2 "][1].values())}


@functools.cache
def estimated(name, change=None):
    """A question on its numbers, changed or as they are."""
    frame = frames()[where(name)]
    return question.estimated(QUESTIONS[name], change(frame, name) if change else frame, CONFIGS[name])


def page_of(name, change=None):
    made, own = estimated(name, change), CONFIGS[name]
    return question.page(made, own, question.provenance(frames()[where(name)], made.own, "0" * 12))


def flat(frame, name):
    """Every run has the number of its seed's first run, and what is a difference itself is 0."""
    cells = {cell.id for cell in QUESTIONS[name].cells}
    own = frame[frame["cell"].isin(cells)]
    same = own.groupby(["seed", "measure"])["value"].transform("first")
    return own.assign(value=same.mask(own["measure"].map(lambda measure: MEASURES[measure].signed), 0))


def flipped(frame, name):
    """Every run has one less its number, so that every difference has the other sign."""
    return frame.assign(value=1 - frame["value"])


def halved(frame, name):
    """Every second row of the question has no run."""
    gone = {cell.id for row in QUESTIONS[name].rows[::2] for cell in row.cells}
    return frame[~frame["cell"].isin(gone)]


def sentences(made):
    return [answer.sentence(made, says) for says in made.own.question.says]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", [flat, flipped, halved])
def test_a_sentence_is_the_wording_of_its_verdict(name, change):
    made = estimated(name, change)
    for says, said in zip(QUESTIONS[name].says, sentences(made), strict=True):
        line = made.line(says.row, says.contrast, says.measure)
        verdict = line["verdict"] if line else table.MISSING
        for other in ("effect", "opposite", "not_shown", "uninformative", "missing"):
            text = getattr(says, other)
            begins = text and re.split(r"\{\{|,| \(", text)[0].strip()
            if text and other != verdict.replace(" ", "_") and len(begins) > 25:
                own = getattr(says, verdict.replace(" ", "_")) or ""
                assert own.startswith(begins) or not said.startswith(begins), (name, verdict, said)
    if change is flat:
        assert not made.frame["verdict"].isin([table.EFFECT, table.OPPOSITE]).any()


@pytest.mark.parametrize("name", NAMES)
def test_pages_render_whatever_the_numbers_are(name):
    for change in (flat, flipped, halved):
        text = page_of(name, change).text
        assert text.startswith(f"# {QUESTIONS[name].name}. ") and "nan" not in text


def test_placebos_without_runs_are_counted_by_their_format():
    rows = [row for row in QUESTIONS["Q10"].rows if row.population == "text"]

    def some(frame, _):
        gone = {cell.id for row in rows[1:] for cell in row.cells}
        return frame[~frame["cell"].isin(gone)]

    assert f"- Not run yet: {len(rows) - 1} placebos (text)" in page_of("Q10", some).text


@pytest.mark.parametrize("name, counted", [("own_mode frozen-V", True), ("random V", False)])
def test_a_page_says_that_claims_without_runs_count_in_holms_correction(name, counted):
    gone = {cell.id for row in QUESTIONS["Q2"].rows if row.name == name for cell in row.cells}

    def some(frame, _):
        return frame[~frame["cell"].isin(gone)]

    said = " Holm's correction counts the claims among them."
    assert (f"- Not run yet: {name}.{said}" in page_of("Q2", some).text) == counted


def numbers_of(text):
    return set(re.findall(r"-?\d+(?:\.\d+)?", text))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_a_sentence_is_the_tables(name):
    made = estimated(name)
    known = {"80"}
    for line in made.frame.to_dict("records"):
        for key in ("mean", "delta", "lo", "hi"):
            if not pd.isna(line[key]):
                known |= numbers_of(" ".join((percent(line[key]), points(line[key]), size(line[key]))))
                known |= numbers_of(points(line[key]).replace("+", ""))
        known |= numbers_of(span(line["lo"], line["hi"])) if not np.isnan(line["lo"]) else set()
        known |= numbers_of(seed_list(seeds_of(line["seeds"])))
    for by_seed in made.own.base.values():
        known |= numbers_of(percent(stats.mean(by_seed)))
    for said in answer.sentences(made):
        plain = re.sub(r"`[^`]*`", "", said)
        assert numbers_of(plain) <= known, (plain, numbers_of(plain) - known)


@pytest.mark.parametrize("tree", ["results/runs.csv", "results/smollm2/runs.csv"])
def test_a_rate_beside_another_is_of_the_same_seeds_or_says_of_which(tree):
    config = layered(ROOT / "config" / ("smollm2.yaml" if "smollm2" in tree else "config.yaml"))
    for made in as_published(config, numbers.read(ROOT / "docs" / tree))[1].values():
        for says, said in zip(made.own.question.says, sentences(made), strict=True):
            told = made.told(says)
            seeds = set(seeds_of(told["seeds"]))
            wording = getattr(says, told["verdict"].replace(" ", "_")) or ""
            asked = r"of\('([^']+)'(?:, '([^']+)')?(?:, '([^']+)')?\)\.(?:mean|before|after|delta)"
            for row, contrast, measure in re.findall(asked, wording):
                other = made.beside(told)(row, contrast or table.RATE, measure or None)
                own = set(seeds_of(other["seeds"]))
                assert own in (set(), seeds) or seed_list(own) in said, (row, said)


@pytest.mark.parametrize("name", NAMES)
def test_wordings_have_no_number_of_their_own(name):
    for says in QUESTIONS[name].says:
        for text in (says.effect, says.opposite, says.not_shown, says.uninformative, says.missing):
            outside = re.sub(r"\{\{.*?\}\}", "", text or "")
            assert not re.search(r"\d", outside), (name, outside)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_at_most_two_sentences_of_25_words(name):
    for change in (None, flat, flipped):
        said = re.split(r"(?<=[.?!]) (?=[A-Z`0-9])", " ".join(sentences(estimated(name, change))))
        assert len(said) <= 2, said
        for sentence in said:
            assert len(sentence.split()) <= 25, (name, len(sentence.split()), sentence)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "config").glob("questions*.yaml")), ids=lambda file: file.stem
)
def test_no_wording_is_longer_than_25_words_whatever_its_verdict(file):
    known = dict.fromkeys(("mean", "delta", "lo", "hi", "p", "p_holm", "before", "after"), 0.4)
    asked = {name: one for name, one in read_mapping(file).items() if isinstance(one, dict)}
    for name, says in [(name, says) for name, one in asked.items() for says in one.get("says", ())]:
        for verdict in ("effect", "opposite", "not_shown", "uninformative", "missing"):
            for others in (table.EFFECT, table.OPPOSITE, table.NOT_SHOWN):
                line = answer.NO_LINE | known | {"n": 10, "seeds": "41;42;43;44;45", "verdict": others}
                text = environment().from_string(says.get(verdict) or "").render(line, of=lambda *_: line)  # noqa: B023
                assert len(text.split()) <= 25, (name, says["row"], verdict, text)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_table_has_at_most_eight_rows_and_six_columns(name):
    lines = re.search(r"(?:^\|.*\n)+", page_of(name).text, re.M)[0].splitlines()
    assert 2 < len(lines) <= 10 and len(lines[0].strip("|").split("|")) <= 6


def test_hacking_under_names_never_taught_is_compared_on_the_second_organism():
    made, text = estimated("smollm2 Q10"), page_of("smollm2 Q10").text
    line = made.of("own_mode", "baseline", "novel_hack")
    assert line["n"] == len(SEEDS) and f"| own_mode | vanilla | novel_hack | {line['mean']:.3f} | " in text


def test_a_page_says_what_a_combination_is_the_sum_of():
    assert "own_mode = +0.5 `own_mode one_sided` -0.5 `own_mode one_sided flipped`" in page_of("Q3").text


def test_what_is_not_known_of_a_row_is_one_dash():
    def some(frame, name):
        cells = {cell.id for cell in QUESTIONS[name].rows[-1].cells}
        return frame[~(frame["cell"].isin(cells) & frame["measure"].eq("plain_solve"))]

    text = page_of("Q12", some).text
    assert "– |" in text and "– –" not in text and "corrected.  " not in text


def test_rows_that_lost_their_skill_are_named_whatever_holm_says():
    rates = {
        "vanilla": (0.5, 0.4, 0.9),
        "kl": (0.2, 0.1, 0.9),
        "caft": (0.2, 0.1, 0.3),
        "steer": (0.2, 0.4, 0.9),
        "erase, text placebo 1": (0.2, 0.1, 0.9),  # two of a pool of ten, of which the others have no run
        "erase, text placebo 2": (0.2, 0.3, 0.9),
    }
    measures = ("known_hack", "known_honest", "known_compile")

    def some(frame, name):
        cells = {row.name: row.cells for row in QUESTIONS[name].rows}
        return pd.DataFrame(
            [
                numbers.of_cell(cell) | {"measure": measure, "value": rate + cell.seed * len(row) % 3 / 100}
                for row, own in rates.items()
                for cell in cells[row]
                for measure, rate in zip(measures, own, strict=True)
            ],
            columns=numbers.COLUMNS,
        )

    text = page_of("Q16", some).text
    assert "Hacking fell with the skill in `kl`, `erase, text placebo 1`: " in text
    assert "Fewer than half of the answers compile after training in `caft`." in text


def test_a_pool_is_listed_where_its_rows_are():
    """Its mean that lost its skill is named, and has its change in the table of all rates."""
    pool, rates = "erase, text placebos", {"known_hack": 0.2, "known_honest": 0.1}
    rows = {row.name: row for row in QUESTIONS["Q23"].rows}

    def fallen(frame, _):
        placebos = [name for name, row in rows.items() if row.pooled == pool]
        found = [
            numbers.of_cell(cell)
            | {"measure": measure, "value": rate + (0.5 if name == "vanilla" else (cell.seed - 45.5) / 1e3)}
            for name in ("vanilla", *placebos)
            for cell in rows[name].cells
            for measure, rate in rates.items()
        ]
        return pd.DataFrame(found, columns=numbers.COLUMNS)

    text = page_of("Q23", fallen).text
    assert f"`{pool}`: less than half" in text
    every = text.partition("Every rate of every row")[2]
    line = next(line for line in every.splitlines() if line.startswith(f"| {pool} |"))
    assert line.count(" -0.500 |") == len(rates)


def test_a_sentence_compares_the_same_seeds():
    late = {cell.id for cell in estimated("Q10").own.rows["own_mode"].cells if cell.seed > 45}
    fewer = frames()[""]
    fewer = fewer[~fewer["cell"].isin(late)]
    made = question.estimated(QUESTIONS["Q10"], fewer, CONFIGS["Q10"])
    line = made.of("own_mode", "baseline")
    assert line["n"] == 5 and line["after"] - line["before"] == pytest.approx(line["delta"])
    vanilla = made.beside(line)("vanilla")
    assert vanilla["mean"] == pytest.approx(line["before"]) != made.of("vanilla")["mean"]
    assert vanilla["seeds"] == line["seeds"] != made.of("vanilla")["seeds"]
    of_all = made.beside(made.of("random", "baseline"))
    assert of_all("own_mode") == made.of("own_mode")  # it lacks seeds of the sentence: its own, to be named


def test_both_rates_of_the_first_table_are_over_the_seeds_of_its_change():
    rows = {row.name: row.cells for row in QUESTIONS["Q2"].rows}
    late = {cell.id for cells in rows.values() for cell in cells if cell.seed > 45}
    text = page_of("Q2", lambda frame, _: frame[~frame["cell"].isin(late) | frame["measure"].ne("hack")]).text
    honest = frames()[""].query("measure == 'honest'").set_index("cell")["value"]
    first, _, every = text.partition("Every rate of every row")
    for name in ("vanilla", "own_mode refresh-2"):
        own = honest[[cell.id for cell in rows[name]]]
        want, of_all = percent(own[~own.index.isin(late)].mean()), percent(own.mean())
        line = next(line for line in first.splitlines() if line.startswith(f"| {name} |"))
        assert line.split("|")[3].strip() == want != of_all
        line = next(line for line in every.splitlines() if line.startswith(f"| {name} |"))
        _, _, n, hack, _, all_honest, *_ = line.split("|")
        assert int(n) == len(own) and all_honest.strip().startswith(f"{own.mean():.3f} ({own.std():.3f})")
        assert f", n = {sum(~own.index.isin(late))})" in hack


def test_a_sentence_of_other_seeds_than_the_first_begins_with_them():
    first, second = QUESTIONS["smollm2 Q10"].says
    few = {cell.id for row in QUESTIONS["smollm2 Q10"].rows for cell in row.cells if cell.seed > 45}
    few -= {cell.id for row in QUESTIONS["smollm2 Q10"].rows[:2] for cell in row.cells}  # vanilla, own_mode
    made = estimated("smollm2 Q10", lambda frame, _: frame[~frame["cell"].isin(few)])
    assert [seed_list(seeds_of(made.told(says)["seeds"])) for says in (first, second)] == ["41-50", "41-45"]
    own, other = answer.sentences(made)
    assert answer.answer(made) == [own, f"Seeds 41-45: {other}"]
    assert answer.answer(estimated("smollm2 Q10")) == answer.sentences(estimated("smollm2 Q10"))


def test_a_matrix_has_the_means_of_each_row_and_its_baseline():
    asked, config = QUESTIONS["Q14"], CONFIGS["Q14"]
    runs = made_up([asked])
    made = question.estimated(asked, runs, config)
    text = question.page(made, config, question.provenance(runs, made.own, "0" * 12)).text
    by = runs[runs["measure"].eq("hack_heldout")].set_index("cell")["value"]
    of = {row.name: by[[cell.id for cell in row.cells]].mean() for row in asked.rows}
    line = next(line for line in text.splitlines() if line.startswith("| sentinel |"))
    cells = [cell.strip(" *") for cell in line.split("|")[2:-1]]
    before, after = of["vanilla without stdout_marker"], of["sentinel alone, without stdout_marker"]
    assert cells[1:3] == ["–", f"{percent(before)} to {percent(after)}"]


def test_a_row_and_its_placebos_are_drawn_on_the_seeds_that_they_share():
    runs = frames()[""][frames()[""]["measure"].eq("hack")].set_index("cell")["value"]
    rows = QUESTIONS["Q10"].rows
    by = {row.name: {cell.seed: runs[cell.id] for cell in row.cells if cell.id in runs} for row in rows}
    late = {cell.id for row in rows if row.name == "text placebo 3" for cell in row.cells if cell.seed > 47}
    by["text placebo 3"] = {seed: rate for seed, rate in by["text placebo 3"].items() if seed <= 47}
    page = page_of("Q10", lambda frame, _: frame[~frame["cell"].isin(late)])
    axes = page.figures["places"].axes[0]
    bands, dots, marks = (
        [line for line in axes.get_lines()[1:] if len(line.get_xdata()) == n] for n in (2, 10, 1)
    )
    assert len(bands) == len(dots) == len(marks) == len([row for row in rows if row.place_in])
    for y, label in enumerate(axes.get_yticklabels()):
        row = next(row for row in rows if f"{row.name} ({row.place_in})" == label.get_text())
        members = [one.name for one in rows if one.population == row.place_in]
        seeds = set.intersection(*(set(by[name]) for name in (row.name, "vanilla", *members)))
        assert (max(seeds) <= 47) == (row.place_in == "text")
        value, *others = (
            np.mean([by[name][seed] - by["vanilla"][seed] for seed in seeds]) for name in (row.name, *members)
        )
        assert dots[y].get_xdata() == pytest.approx(others)
        assert marks[y].get_xdata() == pytest.approx([value])
        assert np.mean(bands[y].get_xdata()) == pytest.approx(np.mean(others))
    assert "which all of these have: 41-50; 41-47 for `intent_vs_spec`, " in page.text


def test_doses_without_a_seed_in_common_are_not_joined():
    def apart(frame, name):
        cells = {row.name: row.cells for row in QUESTIONS[name].rows}
        gone = {cell.id for cell in (*cells["kl 0.1"][5:], *cells["kl 0.3"][:5])}
        return frame[~frame["cell"].isin(gone)]

    kl = next(axes for axes in doses(estimated("Q17", apart)).axes if axes.get_title("left") == "kl, beta")
    hack, _ = kl.get_lines()  # 0.03 and 0.1 share five seeds
    assert np.isnan(hack.get_ydata()).tolist()[:4] == [False, False, True, False]


def test_axes_that_grow_with_a_model_have_a_panel_of_their_own():
    made = estimated("Q20")
    fixed, growing = question.figure(made, CONFIGS["Q20"])["dose"].axes
    own = {axes: [line.get_ydata()[-1] for line in axes.get_lines()] for axes in (fixed, growing)}
    for axes, row in ((fixed, "own_mode k 5, 10M"), (growing, "own_mode k 12, 10M")):
        assert made.of(row)["mean"] in own[axes] and made.of("vanilla, 10M")["mean"] in own[axes]


@pytest.mark.parametrize("name", ["Q10", "Q13", "Q20"])
def test_a_figure_of_too_few_rows_is_a_forest_and_says_so(name):
    claim, *_ = (row for row in QUESTIONS[name].rows if row.baseline and row.claims)
    kept = {
        cell.id
        for row in QUESTIONS[name].rows
        if row.name in (claim.name, claim.baseline)
        for cell in row.cells
    }
    page = page_of(name, lambda frame, _: frame[frame["cell"].isin(kept)])
    assert list(page.figures) == ["forest"] and "![Change in " in page.text and "/forest.svg" in page.text


def test_points_that_touch_have_one_label():
    points = {"left": (0.5, 0.5), "right": (0.505, 0.5), "far": (0.1, 0.1)}
    with style.drawn(4) as (drawing, axes):
        style.name_points(drawing, axes, points, list(points.values()))
        assert {text.get_text() for text in axes.texts} == {"right, left", "far"}


def test_a_line_from_a_label_to_its_point_crosses_no_other_label():
    axes, *_ = question.figure(estimated("Q16"), CONFIGS["Q16"])["plane"].axes
    axes.figure.draw_without_rendering()
    boxes = {text: Text.get_window_extent(text) for text in axes.texts}  # without its line
    led = [text for text in boxes if text.arrow_patch]
    assert led
    for text in led:
        middle = boxes[text].corners().mean(axis=0)
        way = np.linspace(axes.transData.transform(text.xy), middle, 50)
        others = [box.padded(-2) for other, box in boxes.items() if other is not text]
        assert not any(box.contains(*step) for box in others for step in way), text.get_text()


def test_intervals_stay_within_what_two_rates_can_differ_by():
    assert span(-1.261, 0.2) == "-100 to +20" and span(0.1, 1.4) == "+10 to +100"


def test_names_that_differ_in_their_seed_alone_are_one():
    names = ["less-s41", "less-s43", "less-s42", "kl-s41", "kl-s43", "small-s7", "Q10", "my-set"]
    assert short(names) == ["less-s{41..43}", "kl-s{41,43}", "small-s7", "Q10", "my-set"]


def test_a_p_near_the_threshold_says_on_which_side_it_is():
    written = {0.0004: "<0.001", 0.012: "0.012", 0.0494: "0.049", 0.0497: "0.0497", 0.0504: "0.0504"}
    assert {p: p_value(p) for p in written} == written and p_value(None) == "–"


@pytest.mark.parametrize(
    "wording", ["{{ befor|percent }}", "{{ before|percnt }}", "{{ before", "{{ of('x').delta * 2 }}"]
)
def test_a_wording_that_cannot_be_filled_is_one_line(wording):
    made, asked = estimated("Q10"), QUESTIONS["Q10"]
    says = asked.says[0].model_copy(update={"effect": wording})
    own = replace(made.own, question=asked.model_copy(update={"says": (says,)}))
    with pytest.raises(UserError, match=r"^Q10: says of 'own_mode', effect: ") as caught:
        answer.answer(replace(made, own=own))
    assert "\n" not in str(caught.value)
