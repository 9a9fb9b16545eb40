"""`make archive`: the texts beside the published numbers are those that the numbers were counted from."""

import shutil

import pandas as pd
import pytest
import yaml
from synthetic import ROOT, real_questions, write_run

from projected_grpo.errors import UserError
from projected_grpo.measures import numbers
from projected_grpo.measures.panels import DEPLOYED
from projected_grpo.pages import archive, edition, publish


@pytest.fixture(scope="module")
def found(made):
    """The numbers of a tree of two seeds."""
    return publish.of_results(made.config, made.questions)


@pytest.fixture
def folder(found, tmp_path):
    """The folder of what that tree has published: its numbers."""
    folder = edition.Place(tmp_path / "docs").folder
    numbers.write(found, folder / "runs.csv")
    return folder


def test_every_published_rate_can_be_counted_again_from_the_archive(made, folder):
    here, published, size = archive.archive(made.config, made.questions, folder)
    kept = pd.read_parquet(folder / DEPLOYED)
    rates = numbers.read(folder / "runs.csv").set_index(["cell", "measure"])["value"]
    assert here == published == kept["cell"].nunique() > 20
    assert size == (folder / DEPLOYED).stat().st_size
    for name, rows in kept.groupby("cell"):
        own = pd.read_parquet(made.results / "grpo" / name / DEPLOYED)
        assert sorted(rows["completion"]) == sorted(own["completion"]) and set(own) < set(rows)
        known = rows[rows["panel"].eq("known")]
        assert known["channel"].mean() == pytest.approx(rates[name, "known_hack"])


def test_trees_add_up_and_what_is_published_no_more_goes(made, folder, tmp_path):
    archive.archive(made.config, made.questions, folder)
    whole = (folder / DEPLOYED).read_bytes()
    one = made.config.model_copy(update={"seeds": (41,), "results": str(tmp_path / "one")})
    some = [cell.id for cell in made.questions["Q2"].cells]
    for name in some:
        shutil.copytree(made.results / "grpo" / name, tmp_path / "one/grpo" / name)
    archive.archive(one, made.questions, folder)
    assert (folder / DEPLOYED).read_bytes() == whole
    frame = numbers.read(folder / "runs.csv")
    numbers.write(frame[frame["cell"].ne(some[0])], folder / "runs.csv")
    archive.archive(one, made.questions, folder)
    left = set(pd.read_parquet(folder / DEPLOYED)["cell"])
    assert some[0] not in left and len(left) > len(some)


def test_a_tree_without_the_published_runs_leaves_the_archive_as_it_is(made, folder, tmp_path):
    archive.archive(made.config, made.questions, folder)
    whole = (folder / DEPLOYED).read_bytes()
    none = made.config.model_copy(update={"results": str(tmp_path / "none")})
    with pytest.raises(UserError, match="none: none of the published runs is here"):
        archive.archive(none, made.questions, folder)
    assert (folder / DEPLOYED).read_bytes() == whole
    (folder / "runs.csv").unlink()
    with pytest.raises(UserError, match=r"runs\.csv: not there; `make publish`"):
        archive.archive(made.config, made.questions, folder)


def test_a_run_that_was_made_again_is_refused_and_too_much_is_not_written(made, folder, monkeypatch):
    frame = numbers.read(folder / "runs.csv")
    wrong = frame["measure"].eq("known_hack") & frame["cell"].eq("vanilla-m0.125-s41")
    numbers.write(frame.assign(value=frame["value"].where(~wrong, 0.999)), folder / "runs.csv")
    with pytest.raises(UserError, match=r"vanilla-m0.125-s41.*: known_hack is .*, published 0.999"):
        archive.archive(made.config, made.questions, folder)
    numbers.write(frame, folder / "runs.csv")
    monkeypatch.setattr(archive, "MOST", 1000)
    with pytest.raises(UserError, match="allowed: below"):
        archive.archive(made.config, made.questions, folder)
    assert not (folder / DEPLOYED).exists()


def test_all_published_seeds_of_a_tree_are_archived_whatever_the_config_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    results = tmp_path / "results"
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"results": str(results), "seeds": [41]}))
    for cell in real_questions([41, 42])[1]["Q1"].cells:
        write_run(results, cell)
    config, questions = edition.read_tree(tmp_path / "config.yaml")
    numbers.write(publish.of_results(config, questions), tmp_path / "docs/results/results/runs.csv")
    said = ["--configfile", str(tmp_path / "config.yaml"), "--docs", str(tmp_path / "docs")]
    assert archive.main(said) == 0
    assert set(pd.read_parquet(tmp_path / "docs/results/results" / DEPLOYED)["cell"].str[-2:]) == {"41", "42"}
    assert "8 of 8 published runs" in capsys.readouterr().out
