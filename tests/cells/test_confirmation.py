"""The shipped confirmation asks for the primary outcomes, on their seeds, in rows of the shipped questions."""

from pathlib import Path

from synthetic import read_config

from projected_grpo.pages.edition import DEFAULT
from projected_grpo.pages.publish import CONFIRMATION


def test_rows_of_the_confirmation_are_those_of_the_questions_on_fresh_seeds():
    (config, fresh), (_, every) = map(read_config, (CONFIRMATION, Path(DEFAULT)))
    assert set(config.seeds) == set(config.primary.seeds)
    for name, question in fresh.items():
        known = {row.name: row for row in every[name].rows}
        for row in question.rows:
            assert row.setting == known[row.name].setting, (name, row.name)
            assert (row.baseline, row.pooled) == (known[row.name].baseline, known[row.name].pooled)


def test_every_chosen_outcome_has_its_row():
    config, fresh = read_config(CONFIRMATION)
    for one in config.primary.outcomes:
        if one.row is not None:
            rows = fresh[one.question].rows
            assert one.row in {name for row in rows for name in (row.name, row.pooled)}, one
