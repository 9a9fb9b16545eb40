"""T1-T4 on made-up replays: against scipy, at the marks, and with every reason not to compute a p."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from projected_grpo.errors import UserError
from projected_grpo.files import write_jsonl
from projected_grpo.measures import replays
from projected_grpo.pages import probe
from projected_grpo.pages.stage import Numbers
from projected_grpo.pages.words import p_value


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
                {"kind": "sample", "step": step, "problem_id": f"p{step}", "sample_id": sample}
                | {"gt_pass": gt_pass, "tokens": tokens, "nll": 1 + draws.random(), "nll_start": 2.0}
                | {"cos_S_contrib": cosine, "cos_S_normalised": cosine / 5, "cos_S_start": cosine}
                | {"cos_S_out": -0.01, "grad_norm": 1 + draws.random(), "nll_teacher": 0.3, "hacked": True}
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


def page(both):
    return page_of({41: (*both, {})}).text


def page_of(probed, controls=()):
    """Return the page of replays: seed -> (vanilla, projected, other bases)."""
    context = SimpleNamespace(name="probe/uat", config=SimpleNamespace(trial=False, seeds=(41, 42)))
    read = {seed: {"vanilla": a, "projected": b, **others} for seed, (a, b, others) in probed.items()}
    numbers = Numbers(r for seed, each in read.items() for r in probe.records_of(seed, "own", each))
    return probe.page_of(context, numbers, ["own", *next(iter(probed.values()))[2]], list(controls), [])


def passed(text):
    return dict(re.findall(r"^- (T\d), .*: (PASS|FAIL|cannot be told)", text, re.M))


def reached(text):
    """Return mark -> yes, NO or cannot be told."""
    lines = [line.split(" | ") for line in text.split("\n") if line.startswith("| ")]
    return {line[0].removeprefix("| "): line[4] for line in lines if len(line) > 5}


def t4(frame, reading="t4"):
    return replays.readings(frame)[reading]


def test_all_pass_where_all_holds(both):
    text = page(both)
    assert "of 1 replications" not in text
    assert passed(text) == dict.fromkeys(("T1", "T2", "T3", "T4"), "PASS")
    marks = {name: found for name, found in reached(text).items() if found in ("yes", "NO", "cannot be told")}
    assert len(marks) == 14 and set(marks.values()) == {"yes"}


def test_t4_is_scipys_welch(both):
    frame = both[0].samples
    wrong, right = (frame[frame.gt_pass == passed].cos_S_contrib for passed in (False, True))
    expected = stats.ttest_ind(wrong, right, equal_var=False, alternative="greater")
    ours = t4(frame)
    assert (ours.t, ours.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert (len(ours.wrong), len(ours.right)) == (len(wrong), len(right))
    # Written out once, so that the choice of scipy's arguments is tested, too.
    se = (wrong.var(ddof=1) / len(wrong) + right.var(ddof=1) / len(right)) ** 0.5
    assert ours.t == pytest.approx((wrong.mean() - right.mean()) / se)
    found = replays.contrast_numbers(both[0])
    assert found["t4_gap"] == pytest.approx((wrong.mean() - right.mean()) / 5)  # 25 modules
    assert found["t4_met"] == 1 and (found["wrong"], found["right"]) == (len(wrong), len(right))


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
    ours = t4(frame, "t4_problems")
    expected = stats.ttest_ind(
        means[False].dropna(), means[True].dropna(), equal_var=False, alternative="greater"
    )
    assert (ours.t, ours.p) == pytest.approx((expected.statistic, expected.pvalue))
    within = t4(frame, "t4_within")
    both = means.dropna()
    expected = stats.ttest_rel(both[False], both[True], alternative="greater")
    assert (within.t, within.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert len(within.wrong) == len(both)


def test_a_wrong_sign_fails(tmp_path):
    replay = write(tmp_path, gap=-0.2)
    assert t4(replay.samples).t < -2 and t4(replay.samples).p > 0.95
    assert replays.contrast_numbers(replay)["t4_met"] == 0


def test_a_small_bucket_has_no_p_and_the_page_says_so(tmp_path, both):
    def few(number, samples, step):
        for sample in samples:
            sample["gt_pass"] = number < 3 and sample is samples[0]
        vanilla_changes(number, samples, step)

    vanilla = write(tmp_path / "few", few)
    contrast = t4(vanilla.samples)
    assert (len(contrast.right), contrast.t, contrast.p) == (3, None, None)
    text = page((vanilla, both[1]))
    assert (
        passed(text)["T4"] == "cannot be told" and "1 without one: a side with fewer than five hacks" in text
    )
    assert "157 wrong, 3 right" in text


def test_cosines_without_spread_have_no_p():
    assert replays.tested(np.full(6, 0.5), np.full(6, 0.5)).t is None


def test_gt_pass_fixed_by_the_problem_is_said(tmp_path, both):
    vanilla = write(tmp_path / "fixed", vanilla_changes, by_problem=True)
    found = replays.contrast_numbers(vanilla)
    assert [found[kind] for kind in ("only_wrong", "only_right", "both")] == [0.5, 0.5, 0]
    assert found["t4_within_p"] is None
    assert "compares kinds of problem, not kinds of answer" in page((vanilla, both[1]))


def test_matching_takes_the_effect_of_length_away(tmp_path):
    def longer(number, samples, step):
        for sample in samples:  # wrong hacks are longer, and the cosine is nothing but length
            sample["tokens"] += 8 * (not sample["gt_pass"])
            sample["cos_S_contrib"] = 0.001 * sample["tokens"] + 0.0001 * sample["sample_id"]

    replay = write(tmp_path, longer, gap=0.0)
    found = replays.contrast_numbers(replay)
    assert found["t4_met"] and found["length_r"] > 0.95
    kept = replays.matched(replay.samples.assign(gt_pass=replay.samples.gt_pass.astype(bool)))
    sizes = kept.groupby("gt_pass").tokens.agg(["size", "mean"])
    assert sizes["size"].nunique() == 1 and sizes["size"].iloc[0] > 20
    assert abs(sizes["mean"].diff().iloc[-1]) < 1
    assert len(set(kept.index)) == len(kept)
    assert not found["t4_matched_met"] and found["length_alone"] == 1


LENGTH = "a basis that tracks length: T4 holds at matched length, or they are not tied"


def tracked(tmp_path, both, changes=None, **how):
    vanilla = write(
        tmp_path / "tracked", lambda *row: [changes and changes(*row), vanilla_changes(*row)], **how
    )
    return replays.contrast_numbers(vanilla), reached(page((vanilla, both[1])))[LENGTH]


def test_a_basis_without_tie_to_length_is_not_said_to_track_it(tmp_path, both):
    found, word = tracked(tmp_path, both, gap=0.0)
    assert found["length_p"] > 0.05 and not found["t4_matched_met"] and word == "yes"


def test_content_that_holds_at_matched_length_is_not_length(tmp_path, both):
    found, word = tracked(tmp_path, both, gap=0.2, length=0.004)
    assert found["length_p"] < 0.01 and found["t4_matched_met"] and word == "yes"


def test_a_basis_tied_to_length_without_content_is_suspicious(tmp_path, both):
    found, word = tracked(tmp_path, both, gap=0.0, length=0.02)
    assert not found["t4_met"] and not found["t4_matched_met"] and word == "NO"


def test_without_matched_samples_length_cannot_be_told(tmp_path, both):
    def longer(number, samples, step):
        for sample in samples:
            sample["tokens"] += 100 * (not sample["gt_pass"])

    found, word = tracked(tmp_path, both, longer, gap=0.2)
    assert found["t4_met"] and found["t4_matched"] is None and word == "cannot be told"


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

    def tests(vanilla=None, projected=None):
        return passed(page((vanilla or both[0], projected or both[1])))

    assert tests(write(tmp_path / "a", third_hacks))["T1"] == "FAIL"
    assert tests(write(tmp_path / "b", n_steps=19), write(tmp_path / "b2", n_steps=19))["T1"] == "FAIL"
    assert tests(write(tmp_path / "c", no_cosine))["T2"] == "FAIL"  # 140 of 160
    copied = write(tmp_path / "d", copies)
    assert tests(projected=copied)["T3"] == "FAIL"
    assert tests(projected=write(tmp_path / "e", rarely_fires))["T3"] == "FAIL"
    assert reached(page((both[0], copied)))["a projection that copies: no step with cout = cin"] == "NO"


def test_an_unmerged_teacher_and_a_wrong_mask_are_called_out(tmp_path, both):
    def spoil(number, samples, step):
        for sample in samples:
            sample |= {"nll_teacher": 2.0, "grad_norm": 1.0}

    found = reached(page((write(tmp_path / "bad", spoil), both[1])))
    missed = {name.split(":")[0] for name, word in found.items() if word == "NO"}
    assert missed >= {"an unmerged teacher", "a mask off by one"}

    def unknown(number, samples, step):
        for sample in samples:
            sample["nll_teacher"] = None

    found = reached(page((write(tmp_path / "unknown", unknown), both[1])))
    assert next(word for name, word in found.items() if "unmerged" in name) == "cannot be told"


def test_a_step_whose_gradient_is_zero_is_no_error(tmp_path, both):
    def zero(number, samples, step):
        if number == 3:
            step |= {"mean_cos_in": None, "mean_cos_out": None, "cout_update": None}

    projected = write(tmp_path, zero)
    assert replays.replay_numbers(both[0], projected)["lowered"] == 19 / 20


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


@pytest.fixture
def probed(tmp_path):
    """Four replications: the probe's basis sees hacks in all but the last, random V in none; the third has few right
    hacks, so no t."""
    made = {}
    for seed, gap in zip((41, 42, 43, 44), (0.05, 0.06, 0.05, -0.01), strict=True):
        folder, right = tmp_path / str(seed), 0.01 if seed == 43 else 0.5
        vanilla = write(folder / "vanilla", vanilla_changes, gap=gap, seed=seed, right=right)
        random = write(folder / "random", vanilla_changes, gap=0.0, seed=100 + seed, right=right)
        projected = write(folder / "projected", later_differs, gap=gap, seed=seed, right=right)
        made[seed] = vanilla, projected, {"random": random}
    assert t4(made[43][0].samples).t is None
    return made


def test_all_replications_as_one_are_scipys_paired_tests(probed):
    text = page_of(probed, ["random"]).text
    known = [each for seed, each in probed.items() if seed != 43]  # without right hacks there is no gap
    own = [t4(vanilla.samples).gap / 5 for vanilla, *_ in known]
    random = [t4(others["random"].samples).gap / 5 for *_, others in known]
    for what, test in (("own", stats.ttest_1samp(own, 0)), ("own less random", stats.ttest_rel(own, random))):
        line = re.search(rf"^\| {what} \| every sample .*\|$", text, re.M)[0].split(" | ")
        assert line[3] == p_value(test.pvalue) and line[5] == "3 |"


def test_a_page_of_several_replications_has_each_and_their_mean(probed):
    made = page_of(probed, ["random"])
    text, frame = made.text, made.frames[".parquet"]
    met = sum(replays.contrast_numbers(vanilla)["t4_met"] for vanilla, *_ in probed.values())
    ts = [t for vanilla, *_ in probed.values() if (t := t4(vanilla.samples).t) is not None]
    said = re.search(
        r"^- T4, .*: PASS on (\d) of 4 replications, cannot be told on 1; mean (\S+) \(1 without one",
        text,
        re.M,
    )
    assert (int(said[1]), said[2]) == (met, f"{np.mean(ts):.3f}")
    assert text.count("PASS on 4 of 4 replications") == 3
    by_seed = frame[frame.row.eq("own") & frame.measure.eq("t4")].set_index("seed").value
    assert by_seed.to_dict() == pytest.approx(dict(zip((41, 42, 44), ts, strict=True)))
    assert set(frame.row) == {"own", "random"} and "replications" in made.figures
