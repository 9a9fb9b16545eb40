"""T1-T4 on made-up replays: against scipy, at the marks, and with every reason not to compute a p."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from projected_grpo.errors import UserError
from projected_grpo.files import write_jsonl
from projected_grpo.measures import replays
from projected_grpo.pages import style
from projected_grpo.verdicts import marks, probe, replications
from projected_grpo.verdicts.figures import distributions, trajectory


def rows(n_steps=20, per_step=8, gap=0.05, right=0.5, seed=0, by_problem=False, length=0.0):
    """Made-up samples: `gap` raises the cosine of wrong hacks, `length` ties it to the number of tokens."""
    draws = np.random.default_rng(seed)
    for step in range(n_steps):
        samples = []
        for sample in range(per_step):
            gt_pass = bool(step % 2) if by_problem else bool(draws.random() < right)
            tokens = int(draws.integers(30, 60))
            cosine = 0.1 + gap * (not gt_pass) + length * (tokens - 45) + draws.normal(0, 0.05)
            samples.append(
                {
                    "kind": "sample",
                    "step": step,
                    "problem_id": f"p{step}",
                    "sample_id": sample,
                    "hacked": True,
                }
                | {"gt_pass": gt_pass, "tokens": tokens, "nll": 1 + draws.random(), "nll_start": 2.0}
                | {"cos_S_contrib": cosine, "cos_S_normalised": cosine / 5, "cos_S_start": cosine}
                | {"cos_S_out": -0.01, "grad_norm": 1 + draws.random(), "nll_teacher": 0.3}
            )
        step_row = {"kind": "step", "step": step, "problem_id": f"p{step}", "mean_cos_in": 0.3, "fired": 0.9}
        yield samples, step_row | {"mean_cos_out": 0.0, "cos_null": 0.2, "cout_update": 0.1, "modules": 25}


def write(folder, changes=None, **how):
    for number, (samples, step) in enumerate(rows(**how)):
        changes and changes(number, samples, step)
        write_jsonl(folder / f"step_{number:03d}.jsonl.gz", [*samples, step])
    return replays.read_replay(folder, number + 1)


def vanilla_changes(number, samples, step):
    step["mean_cos_out"] = step["mean_cos_in"]


def later_differs(number, samples, step):
    for sample in samples:
        sample["cos_S_contrib"] += 0.01 * number


@pytest.fixture
def both(tmp_path):
    vanilla = write(tmp_path / "vanilla", vanilla_changes)
    return vanilla, write(tmp_path / "projected", later_differs)


def page(both, others=None, controls=()):
    probed = [replications.Probed(41, *both, others or {})]
    return probe.page_of("probe/uat", probed, "v_hack_full", controls).text


def test_all_pass_where_all_holds(both):
    assert [v.word for v in marks.marks(*both)] == ["PASS"] * 4
    text = page(both)
    assert re.findall(r"^- (T\d PASS): ", text, re.M) == ["T1 PASS", "T2 PASS", "T3 PASS", "T4 PASS"]
    assert "SUSPICIOUS" not in text


def test_t4_is_scipys_welch(both):
    frame = both[0].samples
    wrong, right = (frame[frame.gt_pass == passed].cos_S_contrib for passed in (False, True))
    expected = stats.ttest_ind(wrong, right, equal_var=False, alternative="greater")
    ours = replays.t4(frame)
    assert (ours.t, ours.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert (ours.n_wrong, ours.n_right) == (len(wrong), len(right))
    # Written out once, so that the choice of scipy's arguments is tested, too.
    se = (wrong.var(ddof=1) / len(wrong) + right.var(ddof=1) / len(right)) ** 0.5
    assert ours.t == pytest.approx((wrong.mean() - right.mean()) / se)


def test_t4_looks_at_hacked_samples_with_a_verdict_and_a_cosine(tmp_path):
    def spoil(number, samples, step):
        samples[0] |= {"hacked": False, "cos_S_contrib": 9.0}
        samples[1] |= {"gt_pass": None, "cos_S_contrib": 9.0}
        samples[2] |= {"cos_S_contrib": None}

    frame = write(tmp_path, spoil).samples
    kept = replays.hacked_rows(frame, "cos_S_contrib")
    assert len(kept) == 20 * 5 and kept.cos_S_contrib.max() < 1


def test_t4_per_problem_and_within_problems(both):
    frame = both[0].samples
    means = frame.groupby(["problem_id", "gt_pass"]).cos_S_contrib.mean().unstack()
    ours = replays.t4_problem_means(frame)
    expected = stats.ttest_ind(
        means[False].dropna(), means[True].dropna(), equal_var=False, alternative="greater"
    )
    assert (ours.t, ours.p) == pytest.approx((expected.statistic, expected.pvalue))
    within = replays.t4_within(frame)
    both = means.dropna()
    expected = stats.ttest_rel(both[False], both[True], alternative="greater")
    assert (within.t, within.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert within.n_wrong == len(both)


def test_a_wrong_sign_fails(tmp_path):
    contrast = replays.t4(write(tmp_path, gap=-0.2).samples)
    assert contrast.t < -2 and contrast.p > 0.95 and not contrast.passed


def test_a_small_bucket_has_no_p_and_the_page_says_by_how_much(tmp_path, both):
    def few(number, samples, step):
        for sample in samples:
            sample["gt_pass"] = number < 3 and sample is samples[0]
        vanilla_changes(number, samples, step)

    vanilla = write(tmp_path / "few", few)
    contrast = replays.t4(vanilla.samples)
    assert (contrast.n_right, contrast.short, contrast.t, contrast.p) == (3, 2, None, None)
    text = page((vanilla, both[1]))
    assert "the smaller bucket has 3, 2 short of 5" in text and "T4 FAIL" in text


def test_cosines_without_spread_have_no_p():
    contrast = replays.welch(np.full(6, 0.5), np.full(6, 0.5))
    assert contrast.t is None and not contrast.passed


def test_gt_pass_fixed_by_the_problem_is_said(tmp_path, both):
    vanilla = write(tmp_path / "fixed", vanilla_changes, by_problem=True)
    assert replays.fixed_by_problem(vanilla.samples) == replays.Fixed(10, 10, 0)
    assert replays.t4_within(vanilla.samples).p is None
    assert "compares kinds of problem, not kinds of answer" in page((vanilla, both[1]))


def test_matching_takes_the_effect_of_length_away(tmp_path):
    def longer(number, samples, step):
        for sample in samples:  # wrong hacks are longer, and the cosine is nothing but length
            sample["tokens"] += 8 * (not sample["gt_pass"])
            sample["cos_S_contrib"] = 0.001 * sample["tokens"] + 0.0001 * sample["sample_id"]

    frame = write(tmp_path, longer, gap=0.0).samples
    assert replays.t4(frame).passed
    assert replays.length_correlation(frame).r > 0.95
    kept = replays.matched(frame.assign(gt_pass=frame.gt_pass.astype(bool)), 1.0)
    sizes = kept.groupby("gt_pass").tokens.agg(["size", "mean"])
    assert sizes["size"].nunique() == 1 and sizes["size"].iloc[0] > 20
    assert abs(sizes["mean"].diff().iloc[-1]) < 1
    assert len(set(kept.index)) == len(kept)
    assert not replays.t4_matched(frame).passed


def tracked(tmp_path, both, changes=None, **how):
    vanilla = write(
        tmp_path / "tracked", lambda *row: [changes and changes(*row), vanilla_changes(*row)], **how
    )
    *_, check = marks.sneaky(vanilla, both[1])
    assert check.failure == "a basis that tracks completion length"
    return vanilla.samples, check, page((vanilla, both[1]))


def test_a_basis_without_tie_to_length_is_not_said_to_track_it(tmp_path, both):
    frame, check, _ = tracked(tmp_path, both, gap=0.0)
    assert replays.length_correlation(frame).r_p > 0.05 and not replays.t4_matched(frame).passed
    assert check.fine is True


def test_content_that_holds_at_matched_length_is_not_length(tmp_path, both):
    frame, check, _ = tracked(tmp_path, both, gap=0.2, length=0.004)
    assert replays.length_correlation(frame).r_p < 0.01 and replays.t4_matched(frame).passed
    assert check.fine is True


def test_a_basis_tied_to_length_without_content_is_suspicious(tmp_path, both):
    frame, check, text = tracked(tmp_path, both, gap=0.0, length=0.02)
    assert not replays.t4(frame).passed and not replays.t4_matched(frame).passed
    assert check.fine is False
    assert "T4 does not hold at matched length | SUSPICIOUS" in text


def test_without_matched_samples_length_cannot_be_told(tmp_path, both):
    def longer(number, samples, step):
        for sample in samples:
            sample["tokens"] += 100 * (not sample["gt_pass"])

    frame, check, text = tracked(tmp_path, both, longer, gap=0.2)
    assert replays.t4(frame).passed and replays.t4_matched(frame).t is None
    assert check.fine is None
    assert "T4 has no t at matched length | cannot be told" in text


def test_marks(tmp_path, both):
    def third_hacks(number, samples, step):
        for i, sample in enumerate(samples):
            sample["hacked"] = i < 2

    def no_cosine(number, samples, step):
        for sample in samples[: 2 if number < 10 else 0]:
            sample["cos_S_contrib"] = None

    def copies(number, samples, step):
        step["mean_cos_out"] = step["mean_cos_in"]

    def rarely_fires(number, samples, step):
        step["fired"] = 0.4

    assert not marks.t1(write(tmp_path / "a", third_hacks)).passed
    assert not marks.t1(write(tmp_path / "b", n_steps=19)).passed
    assert not marks.t2(write(tmp_path / "c", no_cosine)).passed  # 140 of 160
    copied = write(tmp_path / "d", copies)
    assert not marks.t3(copied).passed
    assert not marks.t3(write(tmp_path / "e", rarely_fires)).passed
    assert any(check.fine is False for check in marks.sneaky(both[0], copied))


def test_an_unmerged_teacher_and_a_wrong_mask_are_called_out(tmp_path, both):
    def spoil(number, samples, step):
        for sample in samples:
            sample |= {"nll_teacher": 2.0, "grad_norm": 1.0}

    bad = {c.failure for c in marks.sneaky(write(tmp_path / "bad", spoil), both[1]) if c.fine is False}
    assert bad >= {"base weights leak through an unmerged teacher", "mask off by one"}

    def unknown(number, samples, step):
        for sample in samples:
            sample["nll_teacher"] = None

    checks = marks.sneaky(write(tmp_path / "unknown", unknown), both[1])
    assert checks[0].fine is None


def test_other_bases_stand_beside_and_controls_are_named(tmp_path, both):
    random = write(tmp_path / "random", vanilla_changes, gap=0.0, seed=5)
    text = page(both, {"random": random}, ["random"])
    assert "| random, every sample |" in text
    for reading, cosine in (
        ("along the replay", "cos_S_contrib"),
        ("at the untrained student", "cos_S_start"),
    ):
        meets = "meets" if replays.t4(random.samples, cosine).passed else "does not meet"
        assert f"`random` {reading} {meets} the mark" in text
    assert random.folder.name in text


def test_missing_and_damaged_inputs_are_errors(tmp_path):
    with pytest.raises(UserError, match=r"step_000\.jsonl\.gz: no such file"):
        replays.read_replay(tmp_path / "none", 1)
    write(tmp_path / "r", n_steps=3)
    (tmp_path / "r" / "step_001.jsonl.gz").write_bytes(b"\x1f\x8b\x08garbage")
    with pytest.raises(UserError, match="step_001"):
        replays.read_replay(tmp_path / "r", 3)
    (tmp_path / "r" / "step_001.jsonl.gz").unlink()
    with pytest.raises(UserError, match=r"step_001\.jsonl\.gz: no such file"):
        replays.read_replay(tmp_path / "r", 3)
    (tmp_path / "r" / "step_002.jsonl.gz").rename(tmp_path / "r" / "step_001.jsonl.gz")
    with pytest.raises(UserError, match="a row of step 2, expected step 1"):
        replays.read_replay(tmp_path / "r", 2)

    def keyless(number, samples, step):
        del samples[0]["gt_pass"]

    with pytest.raises(UserError, match="no key 'gt_pass'"):
        write(tmp_path / "k", keyless)
    for key in ("cos_null", "modules"):
        with pytest.raises(UserError, match=f"no key '{key}'"):
            write(tmp_path / key, lambda number, samples, step, key=key: step.pop(key))


def test_files_of_an_earlier_longer_replay_are_not_read(tmp_path):
    write(tmp_path, n_steps=4)
    replay = replays.read_replay(tmp_path, 3)
    assert replay.steps["step"].tolist() == [0, 1, 2] and set(replay.samples["step"]) == {0, 1, 2}


def test_a_step_whose_gradient_is_zero_is_no_error(tmp_path, both):
    def zero(number, samples, step):
        if number == 3:
            step |= {"mean_cos_in": None, "mean_cos_out": None, "cout_update": None}

    projected = write(tmp_path, zero)
    assert "cout < cin on 19/20 steps" in marks.t3(projected).figure
    assert style.to_svg(trajectory(both[0], projected)).startswith("<?xml")


def test_figures_draw(tmp_path, both):
    empty = write(tmp_path / "e", lambda n, samples, s: [sample.update(hacked=False) for sample in samples])
    for drawing in (trajectory(*both), distributions({"a": both[0], "b": empty})):
        assert style.to_svg(drawing).startswith("<?xml")


def test_frames_hold_every_row(both):
    assert len(both[0].samples) == 160 and len(both[0].steps) == 20
    assert isinstance(both[0].samples, pd.DataFrame)


@pytest.fixture
def probed(tmp_path, both):
    """Four replications: the probe's basis sees hacks in all but the last, random V in none; the third has few right
    hacks, so no t."""
    made = []
    for seed, gap in zip((41, 42, 43, 44), (0.05, 0.06, 0.05, -0.01), strict=True):
        folder, right = tmp_path / str(seed), 0.01 if seed == 43 else 0.5
        vanilla = write(folder / "vanilla", vanilla_changes, gap=gap, seed=seed, right=right)
        random = write(folder / "random", vanilla_changes, gap=0.0, seed=100 + seed, right=right)
        projected = write(folder / "projected", later_differs, gap=gap, seed=seed, right=right)
        made.append(replications.Probed(seed, vanilla, projected, {"random": random}))
    assert replays.t4(made[2].vanilla.samples).t is None
    return made


def gap_of(frame):
    sides = frame.groupby("gt_pass").cos_S_contrib.mean()
    return (sides[False] - sides[True]) / 5  # 25 modules


def test_all_replications_as_one_are_scipys_paired_tests(probed):
    found = replications.gaps(probed, "own", "random")
    first, alone = found[0], [gap for gap in found if gap.basis == "random"]
    known = [one for one in probed if one.seed != 43]  # without right hacks there is no gap
    own = [gap_of(one.vanilla.samples) for one in known]
    random = [gap_of(one.others["random"].samples) for one in known]
    assert (first.basis, first.asked) == ("own", 4)
    assert first.met == sum(one.marks[3].passed for one in probed)
    assert list(first.by_seed.values()) == pytest.approx(own)
    assert first.own.p == pytest.approx(stats.ttest_1samp(own, 0).pvalue)
    assert first.beyond.p == pytest.approx(stats.ttest_rel(own, random).pvalue)
    assert all(gap.beyond is None for gap in alone) and len(alone) == len(replications.READINGS)
    family = [gap.own.p for gap in found if gap.own.p is not None]
    assert min(gap.own.holm for gap in found if gap.own) == pytest.approx(min(1, min(family) * len(family)))


def test_a_page_of_several_replications_has_each_and_their_mean(probed):
    made = probe.page_of("probe/uat", probed, "own", ["random"])
    text, frame = made.text, made.frames[".parquet"]
    passed = [sum(one.marks[i].passed for one in probed) for i in range(4)]
    for test, met in zip(("T1", "T2", "T3", "T4"), passed, strict=True):
        assert re.search(rf"^- {test}, .*: PASS on {met} of 4 replications", text, re.M), test
    ts = [replays.t4(one.vanilla.samples).t for one in probed]
    mean = np.mean([t for t in ts if t is not None])
    last = next(line for line in text.splitlines() if line.startswith("| all"))
    assert f"{mean:.2f}" in last and f"PASS on {passed[3]} of 4" in last
    assert [line[2:9] for line in text.splitlines() if re.match(r"\| seed 4\d", line)] == [
        f"seed {seed}" for seed in (41, 42, 43, 44)
    ]
    assert "In full: seed 41" in text and "less that of random" in text
    each = frame[frame.seed.notna()]
    assert each.groupby("test").size().eq(4).all() and set(each.seed) == {41, 42, 43, 44}
    every = frame[frame.test == "T4, all"].set_index(["basis", "reading"])
    assert len(every) == 6 and every.gap_n["own", "every sample (the paper's)"] == 3
    assert re.search(r"^- T4, .* on \d of 4 replications, mean t \S+ \(1 without one\)", text, re.M)
    assert text.count("no p") >= 1


def test_one_replication_is_no_population(both):
    assert "replications" not in page(both).replace("each replication by itself", "")
