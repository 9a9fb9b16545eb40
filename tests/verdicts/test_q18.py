"""Q18: falls of AUROC read as evasion or drift, thin windows, the page at known numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from figures import spilled
from sentences import long
from synthetic import context_of, write_run

from projected_grpo.errors import UserError
from projected_grpo.measures.columns import reference
from projected_grpo.measures.detector import falls, file, populations, read_rankings, recall_lost
from projected_grpo.measures.table import make_table
from projected_grpo.pages.detector_figure import looks
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.verdicts import q18

SEEDS = [41, 42, 43]
ROWS = (
    "vanilla",
    "penalty 0.3",
    "penalty 0.6",
    "penalty 1",
    "advantage 0.3",
    "penalty 0.6, random",
    "vanilla, KL",
)
ROWS += ("penalty 0.6, KL",)
WINDOWS = [(1, 5), (6, 10), (11, 15), (16, 20)]


def write_rankings(context, fall, thin=None, skip=()):
    """Write runs and rankings whose AUROC falls from .9; fall: row -> how far, .1 where none is said; thin: row ->
    seeds whose last window has few pairs; skip: rows without runs."""
    thin = thin or {}
    draws = np.random.default_rng(3)
    compare = context.config.detector.compare
    for row in context.question.rows:
        for cell in row.cells if row.name not in skip else ():
            write_run(context.results, cell)
            noise = draws.normal(0, 0.004)
            rows = []
            for score in ("concept", "concept_base", "alignment"):
                for i, (first, last) in enumerate(WINDOWS):
                    known = {"score": score, "first": first, "last": last}
                    known["pairs"] = 19 if cell.seed in thin.get(row.name, ()) and i == 3 else 120
                    own = 0.9 - (fall.get(row.name, 0.1) + noise) * i / 3
                    rates = {"precision": 0.5 + i / 10, "recall": 0.8 - i / 10, "flagged": 0.4}
                    rates["recall"] += noise - (0.3 if row.name == "penalty 0.6" and i == 3 else 0)
                    rates = rates if score != "alignment" else dict.fromkeys(rates)
                    of = {"own_mode": own, "oracle": 0.95}
                    of |= {name: 0.5 + 0.01 * (n % 10) for n, name in enumerate(compare)}
                    random = np.roll(
                        (0.3, 0.5, 0.7), cell.seed
                    )  # of three seeds each draw's mean is the same
                    for name, value in [*of.items(), *(("random", q) for q in random)]:
                        rows.append({**known, "direction": name, "auroc": value, "f05": value, **rates})
            path = context.results / file(cell.id)
            path.parent.mkdir(exist_ok=True)
            pd.DataFrame(rows).to_parquet(path)


@pytest.fixture
def context(tmp_path):
    full = context_of("Q18", tmp_path, SEEDS)
    rows = tuple(row for row in full.question.rows if row.name in ROWS)
    return replace(full, questions={"Q18": replace(full.question, rows=rows)})


def ranked(context):
    table = make_table(context.question, context.results)
    asked = context.config.detector
    return table, read_rankings(table, context.results, asked.pairs, asked.compare)


def test_a_fall_is_evasion_only_beyond_the_unpenalised_one(context):
    fall = {"penalty 0.6": 0.3, "advantage 0.3": -0.1, "vanilla, KL": 0.2, "penalty 0.6, KL": 0.2}
    write_rankings(context, fall)
    table, found = ranked(context)
    by_row = falls(table, found, "concept")
    assert {name: by_row[name].reading for name in ("vanilla", *fall)} == {
        "vanilla": "drift",
        "penalty 0.6": "evasion",
        "advantage 0.3": "less",
        "vanilla, KL": "evasion",
        "penalty 0.6, KL": "drift",
    }
    own, base = (table.line(name) for name in ("penalty 0.6", "vanilla"))
    last, other = (found.of(line, "concept", "own_mode", -1) for line in (own, base))
    excess = by_row["penalty 0.6"].excess
    assert excess.delta == pytest.approx(np.mean([other[s] - last[s] for s in SEEDS]))
    # Both falls begin where the baseline's run does, so that they differ by what they end at.
    falling = [found.fall(line, "concept", base) for line in (own, base)]
    assert excess.delta == pytest.approx(np.mean([falling[0][s] - falling[1][s] for s in SEEDS]))
    assert by_row["penalty 0.6"].excess.holm > by_row["penalty 0.6"].excess.p


def test_a_window_with_few_pairs_has_no_auroc(context):
    write_rankings(context, {}, thin={"penalty 1": SEEDS}, skip=("advantage 0.3",))
    table, found = ranked(context)
    line = table.line("penalty 1")
    assert found.of(line, "concept", "own_mode", -1) == {} and found.fall(line, "concept", line) == {}
    assert found.of(line, "concept", "own_mode", -2).keys() == set(SEEDS)
    assert found.of(line, "concept", "own_mode", -1, "recall")[41] == pytest.approx(0.5, abs=0.02)
    by_row = falls(table, found, "concept")
    assert by_row["penalty 1"].reading == "" and by_row["advantage 0.3"].own is None
    # A row that lacks runs counts among the tests of the others.
    waiting = by_row["penalty 0.6"].excess
    n = sum(fall.excess is not None and fall.excess.p is not None for fall in by_row.values())
    assert waiting.holm <= min(1, (n + 1) * waiting.p) + 1e-12 and n == 5
    text = to_markdown(q18.make(context).page)
    assert "`advantage-own_mode-w0.3-m0.125-s{41" in text


def test_hacks_to_rank_in_two_seeds_are_no_reading_and_stand_in_no_test(context):
    write_rankings(context, {"penalty 0.6": 0.3}, thin={"penalty 0.6": [41]})
    table, found = ranked(context)
    by_row = falls(table, found, "concept")
    assert (
        by_row["penalty 0.6"].own is by_row["penalty 0.6"].excess is None
        and not by_row["penalty 0.6"].reading
    )
    assert recall_lost(table, found)["penalty 0.6"] is None
    said = "\n".join(q18.make(context).log)
    assert "in 0 of 4 penalised rows that hack" in said and "score, 4 penalised rows" in said
    assert "1 of 5 penalised rows has hacks to rank in the last window in fewer than 3 seeds." in said


def test_what_no_run_is_trained_against_is_not_called_evaded(context):
    write_rankings(context, {"penalty 0.6": 0.3})
    text = to_markdown(q18.make(context).page)
    line = next(row for row in text.splitlines() if row.startswith("| penalty 0.6 | vanilla | 0.9"))
    assert line.count("evasion") == 1 and line.endswith("| further |")


def test_the_place_is_among_placebos_of_a_kind_and_the_band_of_random_ones(context):
    write_rankings(context, {})
    table, found = ranked(context)
    line = table.line("vanilla")
    assert found.band(line, "alignment", -1) == pytest.approx((0.5, 0.5)), "that of means over seeds"
    assert found.above(line, "alignment", -1) == (3, 3), "0.8 lies above 0.69 in each run by itself"
    placed = found.place(line, "concept", "placebo_code", -1)
    assert (placed.m, placed.rank) == (10, 11) and placed.mean == pytest.approx(0.545)
    assert populations(["a_01", "a_02", "null_city"]) == {"a": ("a_01", "a_02"), "null_city": ("null_city",)}


def test_the_page_says_what_its_numbers_say(context):
    write_rankings(context, {"penalty 0.6": 0.3})
    made = q18.make(context)
    assert all((context.results / path).exists() for path in map(str, q18.needs(context)))
    said = "\n".join(made.log)
    assert not long(said.replace("\n", "\n\n"))
    assert "is larger for the hack in 0.7" in said or "is larger for the hack in 0.8" in said
    assert "above the band of random directions' means over seeds [0.500, 0.500]" in said
    assert (
        "In 3 of 3 seeds it lies above the band of that run alone" in said and "the oracle has 0.950" in said
    )
    assert "(n = 3)" in said and "F0.5 at the threshold of step 0: 0.8" in said
    assert (
        "score, 5 penalised rows against the unpenalised baseline (n = 3): 1 fall further (evasion), 4 fall"
        in said
    )
    assert "`penalty 0.6` +0.1" in said or "`penalty 0.6` +0.2" in said
    assert "precision 0.500 in the first window of `vanilla` and 0.800 in the last" in said
    table, _ = ranked(context)
    rates = [run.steps["hack_s"] for run in table.line("vanilla").runs]
    start, end = (np.mean([by_step[part].mean() for by_step in rates]) for part in (slice(5), slice(15, 20)))
    assert f"where {start:.3f} and {end:.3f} of all rollouts hack" in said
    assert (
        "Recall is lower than the unpenalised baseline's in 1 of 5 penalised rows that hack (`penalty 0.6` -0.3"
        in said
    )
    assert set(made.drawn) >= {"detection", "gamed"}
    assert not spilled(made.drawn["detection"][0]) and not spilled(made.drawn["gamed"][0])
    own = made.frame.set_index("row").loc["penalty 0.6"]
    start = made.frame.set_index("row").loc["vanilla", "auroc_concept_first"]
    assert start - own["auroc_concept_last"] == pytest.approx(own["fall_concept"])
    assert own["excess_fall_concept"] > 0.15 and own["detector_pairs_last"] == 120
    assert own["recall_lost"] == pytest.approx(-0.3, abs=0.02) and own["p_recall_lost_holm"] < 0.05
    assert set(made.frame) <= set(reference())
    text = to_markdown(made.page)
    assert "evasion" in text and "0.900" in text and "random" in text


def test_a_page_without_rankings_says_so(context):
    for cell in context.question.cells:
        write_run(context.results, cell)
    made = q18.make(context)
    assert "No run has been ranked." in made.log
    path = context.results / file(context.question.cells[0].id)
    path.parent.mkdir()
    path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="unreadable as Parquet"):
        q18.make(context)


def test_controls_look_alike_and_rows_of_an_arm_share_a_colour(context):
    write_rankings(context, {})
    table, _ = ranked(context)
    found = {line.name: look for line, look in looks(list(table.lines))}
    assert found["penalty 0.3"]["color"] == found["penalty 1"]["color"] != found["advantage 0.3"]["color"]
    assert found["penalty 0.3"]["linestyle"] != found["penalty 1"]["linestyle"]
    assert found["penalty 0.6, random"]["color"] not in (
        found["penalty 0.6"]["color"],
        found["advantage 0.3"]["color"],
    )
