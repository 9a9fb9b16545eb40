"""The table of estimates: against the pages published at 557e809, and against brute force."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from synthetic import ROOT, real_questions, write_run

from projected_grpo.errors import UserError
from projected_grpo.files import write_json
from projected_grpo.measures import beside, numbers, stats
from projected_grpo.measures import estimates as table
from projected_grpo.measures.measured import measured

PUBLISHED = Path(__file__).parent / "data/published-557e809.csv.gz"
SEEDS = range(41, 51)
HALF = 0.0005 + 5e-6  # three decimals, of numbers that the CSV had six digits of


@pytest.fixture(scope="module")
def frame():
    return numbers.read(ROOT / "docs/results/runs.csv")


@pytest.fixture(scope="module")
def questions():
    return real_questions(list(SEEDS))[1]


@pytest.fixture(scope="module")
def every(frame, questions):
    made = [table.estimates(measured(question, frame)) for question in questions.values()]
    return pd.concat(made).set_index(["question", "row", "measure", "contrast"])


def printed():
    """Return what the pages printed, as numbers; `<0.001` is half of that."""
    found = pd.read_csv(PUBLISHED, dtype=str)
    small = found["printed"].str.startswith("<")
    return found.assign(value=found["printed"].where(~small, "0.0003").astype(float))


def test_every_number_that_pages_had_at_557e809_is_the_tables(every):
    """Means, spreads, differences, intervals and raw p; what has no runs in the CSV cannot be compared."""
    compared, ours = 0, every.to_dict("index")
    for one in printed().itertuples():
        contrast = "rate" if one.number in ("mean", "std") else "baseline"
        key = (one.question, one.row, one.measure, contrast)
        if one.number == "p_holm" or key not in ours:
            continue
        value = ours[key][one.number]
        if np.isnan(value):
            continue
        assert abs(value - one.value) <= HALF, (one, value)
        compared += 1
    assert compared > 10_000


def test_the_families_of_557e809_give_its_holm_p(every, questions):
    """The same p, every row with a baseline a hypothesis, placebos and pooled rows families of their own."""
    held = every.reset_index().query("contrast == 'baseline'")
    asked = printed().query("number == 'p_holm'").set_index(["question", "row", "measure"])["value"]
    rows_then = printed().groupby("question")["row"].agg(set)
    compared = 0
    for (name, measure), part in held.groupby(["question", "measure"]):
        rows = {row.name: row for row in questions[name].rows}
        then = rows_then.get(name, set())
        if not then <= set(held.query("question == @name")["row"]) | {r.baseline for r in rows.values()}:
            continue  # some of its rows stand in another question today
        # Rows that came later were no hypotheses then.
        part = part[[(name, row, measure) in asked.index for row in part["row"]]]
        kinds = part["row"].map(lambda row, r=rows: "pooled" if row not in r else str(r[row].population))
        for _, family in part.groupby(kinds):
            if family["n"].eq(0).any():  # of rows whose runs are not in the CSV
                continue
            ps = stats.holm([None if np.isnan(p) else p for p in family["p"]])
            for row, p in zip(family["row"], ps, strict=True):
                if p is not None and (name, row, measure) in asked.index:
                    assert abs(p - asked[name, row, measure]) <= 0.0015, (name, row, measure)
                    compared += 1
    assert compared > 890


def test_a_family_is_the_claims_of_one_measure_and_one_contrast(every, questions):
    rows = {(q.name, row.name): row for q in questions.values() for row in q.rows}
    for (name, measure, contrast), part in every.reset_index().groupby(["question", "measure", "contrast"]):
        claims = part[part["p_holm"].notna()]
        ps = claims["p"].to_numpy()
        order = np.argsort(ps)
        brute = np.empty(len(ps))
        brute[order] = np.minimum(1, np.maximum.accumulate(ps[order] * np.arange(len(ps), 0, -1)))
        if (part["verdict"] == "missing").any():  # what waits for its runs counts, too
            assert (claims["p_holm"] >= brute - 1e-12).all()
        else:
            np.testing.assert_allclose(claims["p_holm"], brute)
        if contrast == "baseline":
            for row in claims["row"]:
                asked = rows.get((name, row))
                assert asked is None or (asked.claims and asked.population is None), (name, row, measure)
                oracle = asked and asked.setting.defence.must_give(asked.setting.knobs) == "oracle"
                assert not oracle


def test_an_uninformative_fold_is_no_hypothesis(every, questions):
    own = every.loc["Q14"].xs("hack_heldout", level="measure").reset_index("row")
    held, means = own.loc["baseline"], own.loc["rate"].set_index("row")["mean"]
    folds = held[held["verdict"] == "uninformative"]
    assert len(folds) and folds["p_holm"].isna().all() and folds["p"].notna().any()
    assert (means[folds["to"]] < 0.1).all()
    told = held[~held["verdict"].isin(("uninformative", "missing"))]
    assert (means[told["to"]] >= 0.1).all()


def test_tuning_seeds_say_what_is_uninformative_where_they_have_a_rate(frame, questions):
    """Whatever the table's own seeds say, whose baseline has 0.5% without run_tests and 37% without stdout_marker."""
    floors = {"hack_heldout": {"run_tests": 0.3, "stdout_marker": 0.02}}
    made = table.estimates(measured(questions["Q14"], frame, floors=floors))
    held = made.set_index(["measure", "contrast", "row"])["verdict"].sort_index()["hack_heldout", "baseline"]
    assert held["known modes without run_tests"] == "not shown"
    assert held["known modes without stdout_marker"] == "uninformative"
    assert held["known modes without file_marker"] != "uninformative"


def test_primary_outcomes_are_one_family_of_all_that_were_asked_for(frame, questions):
    named = {
        ("Q10", "own_mode", "hack", "baseline"): "d",
        ("Q14", "known modes, all folds", "hack_heldout", "baseline"): "d",
    }
    frames = [table.estimates(measured(questions[name], frame), (), named) for name in ("Q2", "Q10", "Q14")]
    found = table.primary_outcomes(frames, 7).set_index("question")
    assert list(found.index) == ["Q10", "Q14"]
    assert found["p_holm"].tolist() == pytest.approx(list(stats.holm([*found["p"], *[1.0] * 5])[:2]))
    # By itself Q14's drop is shown (p = 0.028); as one of seven it is not.
    assert found["verdict"].tolist() == ["effect", "not shown"]
    assert table.primary_outcomes(frames, 2)["verdict"].tolist() == ["effect", "effect"]
    assert not len(table.primary_outcomes([], 7))
    # One fresh seed tests nothing: the outcome stays that of the seeds which do.
    fresh = frames[1].assign(n=1, seeds="51", p=np.nan, delta=-0.1)
    assert table.primary_outcomes([fresh, *frames], 7)["seeds"].tolist() == found["seeds"].tolist()


def test_the_sign_flip_test_counts_all_choices_of_signs():
    rng = np.random.default_rng(0)
    for n in (2, 5, 8):
        d = rng.normal(0.5, 1, n)
        means = [abs(np.dot(signs, d)) for signs in product((-1, 1), repeat=n)]
        want = np.mean(np.array(means) >= abs(d.sum()) - 1e-12)
        assert stats.sign_flip(d) == stats.sign_flip(d * 1e6) == pytest.approx(want)
    assert stats.sign_flip(np.ones(5)) == pytest.approx(2 / 2**5)  # at n = 5 it cannot go lower
    assert stats.sign_flip(np.ones(stats.EXACT + 1)) is None


def test_a_declared_combination_is_its_weighted_sum_by_seed(every, frame, questions):
    values = numbers.by_row(questions["Q3"], frame)
    own, flipped, plain = (
        np.array([values[row]["hack"][seed] for seed in SEEDS])
        for row in ("own_mode one_sided", "own_mode one_sided flipped", "vanilla")
    )
    found = every.loc[("Q3", "own_mode", "hack", "axes")]
    d = (own + flipped) / 2 - plain
    assert found["delta"] == pytest.approx(d.mean())
    assert found["p"] == pytest.approx(scipy_stats.ttest_1samp(d, 0).pvalue)
    assert np.isnan(every.loc[("Q3", "placebo", "hack", "axes"), "p_holm"])  # a placebo claims nothing


def test_the_mean_of_a_combination_is_its_own_though_a_row_has_its_name(every):
    found = every.loc[("R5", "own_mode", "known_hack", "ratio")]
    assert found["mean"] == pytest.approx(found["delta"])
    assert found["mean"] != pytest.approx(every.loc[("R5", "own_mode", "known_hack", "rate"), "mean"])


def test_a_row_among_placebos_is_one_more_draw_of_them(every, frame, questions):
    question, values = questions["Q10"], numbers.by_row(questions["Q10"], frame)
    members = [row.name for row in question.rows if row.population == "code"]
    own, *others = (
        np.mean([values[n]["hack"][s] - values["vanilla"]["hack"][s] for s in SEEDS])
        for n in ("own_mode", *members)
    )
    m, std = len(others), np.std(others, ddof=1)
    t = (own - np.mean(others)) / (std * np.sqrt(1 + 1 / m))
    found = every.loc[("Q10", "own_mode", "hack", "place")]
    assert found["delta"] == pytest.approx(own - np.mean(others))
    assert found["p"] == pytest.approx(2 * scipy_stats.t.sf(abs(t), m - 1))


def test_a_row_has_no_place_while_a_placebo_of_its_format_has_no_run(frame, questions):
    question = questions["Q10"]
    gone = next(row for row in question.rows if row.population == "code")
    part = table.estimates(measured(question, frame[~frame["cell"].isin([c.id for c in gone.cells])]))
    places = part[part["contrast"].eq("place") & part["measure"].eq("hack")].set_index("row")
    assert places.loc[places["to"].eq("code"), "verdict"].eq("missing").all()
    assert places.loc[places["to"].eq("text"), "p"].notna().any() and "own_mode" in places.index


def test_missing_runs_of_a_claim_count_in_its_family(frame, questions):
    """A partial table claims nothing that the full one could take back."""
    question = questions["Q3"]
    gone = {cell.id for row in question.rows if row.name == "reverse" for cell in row.cells}
    whole = table.estimates(measured(question, frame))
    part = table.estimates(measured(question, frame[~frame["cell"].isin(gone)]))
    keys = ["row", "contrast", "measure"]
    both = whole.merge(part, on=keys, suffixes=("", "_part"))
    both = both[both["contrast"].eq("baseline") & both["measure"].eq("hack") & both["p_holm_part"].notna()]
    assert len(both) > 3 and (both["p_holm_part"] >= both["p_holm"] - 1e-12).all()
    assert set(part.loc[part["row"].eq("reverse"), "verdict"]) == {"missing"}


def test_runs_of_two_codes_bases_or_teachers_share_no_table(frame, questions):
    question = questions["Q7"]
    cell = question.rows[1].cells[0]
    of_arm, of_model = (
        (cell.id, other.id) for other in (question.rows[1].cells[1], question.rows[0].cells[0])
    )
    for key, cells in (("code", of_arm), ("base", of_model), ("teacher", of_model)):
        mixed = frame.copy()
        for number, name in enumerate(cells):
            mixed.loc[mixed["cell"] == name, key] = f"hash{number}"
        with pytest.raises(UserError, match=f"two hashes of {key}"):
            numbers.by_row(question, mixed)
    wrong = frame.copy()
    wrong.loc[wrong["cell"] == cell.id, "settings"] = "other"
    with pytest.raises(UserError, match="other settings"):
        numbers.by_row(question, wrong)


def test_runs_that_a_critic_judges_have_a_code_of_their_own(frame, questions):
    """It is loaded for them alone, beside runs of the same arm with another monitor."""
    question = questions["Q16"]
    mixed = frame.copy()
    judged = {cell.id for cell in question.cells if cell.setting.needs.critic}
    asked = {cell.id for cell in question.cells if cell.setting.arm == "penalty"} - judged
    assert judged & set(mixed["cell"]) and asked & set(mixed["cell"])
    mixed.loc[mixed["cell"].isin(asked), "code"] = "hash0"
    mixed.loc[mixed["cell"].isin(judged), "code"] = "hash1"
    numbers.check(question, mixed)


def test_the_csv_reads_back_as_it_was_written(frame, tmp_path):
    path = tmp_path / "runs.csv"
    numbers.write(frame, path)
    assert path.read_bytes() == (ROOT / "docs/results/runs.csv").read_bytes()
    again = numbers.merged(frame, frame[frame["cell"].isin(set(frame["cell"].head(50)))])
    numbers.write(again, path)
    assert path.read_bytes() == (ROOT / "docs/results/runs.csv").read_bytes()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda lines: [], "not readable as CSV"),
        (lambda lines: [*lines, '"', ""], "not readable as CSV"),
        (lambda lines: [*lines[:9], "<<<<<<< HEAD", *lines[9:], ""], "column 'seed'"),
        (lambda lines: [*lines, lines[5], ""], "stands there twice"),
        (lambda lines: [*lines[:-1], lines[-1][:-3]], "it ends within a line"),
        (lambda lines: [*lines[:4], lines[4][lines[4].index(",") :], ""], ":5: a run without a name"),
        (lambda lines: [*lines[:4], lines[4].rpartition(",0.")[0] + ",inf", ""], "has an infinite"),
    ],
)
def test_a_damaged_csv_is_one_line(tmp_path, spoil, said):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(spoil((ROOT / "docs/results/runs.csv").read_text().splitlines())))
    with pytest.raises(UserError, match=said) as caught:
        numbers.read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_what_other_stages_measured_stays_with_the_very_same_run(frame):
    same, again = frame["cell"].unique()[:2]
    runs = frame[frame["cell"].isin([same, again])]
    old = pd.concat([runs, runs.drop_duplicates("cell").assign(measure="overlap", value=0.5)])
    new = runs.assign(made=runs["made"].mask(runs["cell"].eq(again), "another commit"))
    left = numbers.merged(old, new)
    assert left.loc[left["measure"].eq("overlap"), "cell"].tolist() == [same]
    assert len(left) == len(runs) + 1


def test_what_is_measured_of_a_model_alone_is_no_run(tmp_path):
    config, questions = real_questions([41])
    config = config.model_copy(update={"results": str(tmp_path)})
    question = questions["Q19"]
    absent, *others = (row.cells[0] for row in question.rows if row.cells[0].basis)
    write_run(tmp_path, others[0])
    for model in (absent.model, others[0].model):
        uses = [{"basis": basis, "k": use.k} for basis, use in beside.uses(question, model, config)]
        bases = [use | {"overlap": 0.1, "cosine": 0.2} for use in uses]
        write_json(tmp_path / f"probe/overlaps/Q19/{model}.json", {"bases": bases})
    frame, (_, why) = numbers.of_tree(config, [question])
    assert "overlap" in set(frame.loc[frame["cell"].eq(others[0].id), "measure"])
    assert absent.id not in set(frame["cell"])
    assert measured(question, frame, why).left_out[absent.id] == "missing"


def test_a_primary_outcome_is_named_before_on_fresh_seeds_alone(frame, questions):
    own = measured(questions["Q14"], frame)
    key = ("Q14", "known modes, all folds", "hack_heldout", "baseline")
    for fresh, named in (((), "afterwards, 2026-11-25"), (SEEDS, "2026-11-25")):
        made = table.estimates(own, primary={key: "2026-11-25"}, fresh=fresh)
        primary = made[made["primary"]]
        assert primary["contrast"].tolist() == ["pooled"] and primary["named"].tolist() == [named]
