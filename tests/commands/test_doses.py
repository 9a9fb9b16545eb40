"""The rule that chooses doses, on made-up frames."""

import json

import pandas as pd
import pytest

from projected_grpo.cli import main
from projected_grpo.commands.doses import best, choose
from projected_grpo.errors import UserError


def frame(kl, seeds="31;32", vanilla=0.50):
    """Vanilla, three doses of kl as (known hack, plain solve), and an arm without a dose."""
    rows = [("vanilla", "vanilla", "none", {}, 0.7, vanilla, 0.2, "nothing", None)]
    for beta, (hack, solve) in zip((0.1, 0.2, 0.4), kl, strict=True):
        rows.append((f"kl {beta}", "kl", "loss", {"beta": beta}, hack, solve, 0.3, "nothing", "vanilla"))
    rows.append(
        ("inoculate", "inoculate", "prompt", {"sentence": "x"}, 0.2, 0.4, 0.35, "a sentence", "vanilla")
    )
    rows.append(("gt_only", "gt_only", "reward", {}, 0.0, 0.6, 0.9, "oracle", "vanilla"))
    names = [
        "row",
        "arm",
        "family",
        "knobs",
        "known_hack",
        "plain_solve",
        "known_honest",
        "must_give",
        "baseline",
    ]
    made = pd.DataFrame(rows, columns=names).assign(seeds=seeds, is_control=False)
    return made.assign(knobs=made["knobs"].map(json.dumps))


@pytest.mark.parametrize(
    ("kl", "row", "qualified"),
    [
        ([(0.5, 0.5), (0.3, 0.46), (0.1, 0.44)], "kl 0.2", "2 of 3"),  # the last costs more than .05
        ([(0.5, 0.5), (0.3, 0.46), (0.4, 0.5)], "kl 0.2", "3 of 3"),
        ([(0.5, 0.4), (0.3, 0.3), (0.1, 0.2)], "kl 0.1", "0 of 3"),  # none qualifies: the smallest
        ([(None, None), (0.3, 0.46), (0.2, None)], "kl 0.2", "1 of 3"),
    ],
)
def test_lowest_hack_among_doses_that_spare_solving(kl, row, qualified):
    [found] = choose(frame(kl)).to_dict("records")
    assert (found["arm"], found["knob"], found["row"], found["qualified"]) == ("kl", "beta", row, qualified)


def test_best_are_ranked_at_their_dose_without_the_oracle():
    made = frame([(0.5, 0.5), (0.3, 0.46), (0.1, 0.2)])
    assert best(made, choose(made)) == ["inoculate", "kl 0.2"]


def test_a_frame_without_vanilla_is_refused():
    made = frame([(0.5, 0.5), (0.3, 0.46), (0.1, 0.44)])
    with pytest.raises(UserError, match="vanilla"):
        choose(made[made["arm"] != "vanilla"])


def test_the_command_prints_the_choice_and_says_when_seeds_are_others(tmp_path, capsys):
    made = frame([(0.5, 0.5), (0.3, 0.46), (0.1, 0.44)])
    made.to_parquet(tmp_path / "Q17.parquet")
    assert main(["doses", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "kl 0.2" in said and "best, no oracle: inoculate, kl 0.2" in said and "not those" not in said
    made.assign(seeds="41;42").to_parquet(tmp_path / "Q17.parquet")
    main(["doses", str(tmp_path)])
    assert "seeds 41, 42: not those" in capsys.readouterr().out
    assert main(["doses", str(tmp_path / "none")]) == 2
