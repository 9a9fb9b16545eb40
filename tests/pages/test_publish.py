"""`make publish`: pages are drawn from the numbers by run and the questions; what a tree adds, and what stays."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import scipy.stats
from synthetic import ROOT, deployed_rows, read_config, real_questions, write_run

from projected_grpo import records
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures import numbers
from projected_grpo.measures.panels import base_file
from projected_grpo.pages import answer, edition, overview, publish, question
from projected_grpo.pages.words import short
from projected_grpo.strict_yaml import read_mapping


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    """Documentation as a tree of two seeds publishes it."""
    docs = tmp_path_factory.mktemp("whole") / "docs"
    publish.publish(made.config, made.questions, edition.Place(docs), None)
    return docs


@pytest.fixture
def docs(whole, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(whole, tmp_path / "docs"))


def test_a_page_each_its_figures_and_an_index_of_all(docs):
    index = (docs / "results.md").read_text()
    linked = set(re.findall(r"\]\(results/(.+?)\.md\)", index))
    pages = {path.stem: path.read_text() for path in (docs / "results").glob("*.md")}
    assert linked == set(pages) >= {"Q2", "Q10", "Q12", "Q14", "R7", "grader-diagonal", "self_taught", "aa"}
    shown = {name for text in pages.values() for name in re.findall(r"\]\(\.\./figures/([^)]+)\)", text)}
    assert shown == {path.name for path in (docs / "figures").iterdir()} >= {"Q10-places.svg"}
    assert "3f9a2c0123456789" in pages["Q10"] and "`vanilla-m0.125-s{41..42}`" in pages["Q10"]


def test_the_same_numbers_are_published_from_the_csv_alone(docs, made, tmp_path):
    """Without the tree that they come from, to the byte; the commit is that of the drawing."""
    before = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}
    empty = made.config.model_copy(update={"results": str(tmp_path / "none")})
    publish.publish(empty, made.questions, edition.Place(docs), None)
    after = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}
    for page in ("aa", "grader-diagonal", "self_taught", "substrate"):  # of other stages: left as published
        assert after[docs / f"results/{page}.md"] == before[docs / f"results/{page}.md"]
    assert after == before


def test_seeds_of_another_tree_add_up(docs, made, tmp_path):
    other = made.config.model_copy(update={"seeds": (42,), "results": str(tmp_path / "other")})
    for cell in made.questions["Q2"].cells:
        if cell.seed == 42:
            shutil.copytree(made.results / "grpo" / cell.id, tmp_path / "other/grpo" / cell.id)
    store = docs / "results/runs.csv"
    frame = numbers.read(store)
    numbers.write(frame[frame["seed"].eq(41)], store)
    publish.publish(other, made.questions, edition.Place(docs), None)
    q2 = pd.read_csv(docs / "results/Q2.csv")
    assert set(q2["seed"]) == {41, 42}
    assert "(n = 2)" in (docs / "results/Q2.md").read_text()


@pytest.mark.parametrize(
    ("config", "published"),
    [
        ("config/config.yaml", [41, 42, 46]),  # 51: a seed of confirmation, 31: one of tuning
        ("config/confirmation.yaml", [41, 42, 46, 51]),
        ("config/smollm2.yaml", [41, 42, 46, 51]),  # named before its own seeds
    ],
)
def test_seeds_of_tuning_and_of_confirmation_are_not_published_with_others(config, published):
    own, _ = read_config(ROOT / config)
    frame = pd.DataFrame({"seed": [41, 42, 46, 51, 31]}).assign(cell="vanilla")
    frame.loc[len(frame)] = [48, "base/smollm2-q4"]  # no run
    assert sorted(edition.with_seeds(own, frame)[0].seeds) == published


def test_a_config_that_lies_over_another_is_published_with_it(tmp_path, capsys):
    files = [str(ROOT / f"config/{name}.yaml") for name in ("smollm2", "smollm2-hub")]
    assert publish.main(["--configfile", *files, "--docs", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: results/smollm2-hub: no finished run; ")


def test_late_seeds_stand_alone_as_an_estimate():
    own = published()
    found = question.late(own)["screen"]
    rates = {row: own.own.of(row, "known_hack") for row in ("screen", "vanilla")}
    differences = [rates["screen"][seed] - rates["vanilla"][seed] for seed in range(46, 51)]
    low, high = scipy.stats.ttest_1samp(differences, 0).confidence_interval()
    assert (found.n, found.lo, found.hi) == (5, pytest.approx(low), pytest.approx(high))


def test_a_page_names_no_seed_as_missing_that_another_question_has(made):
    _, questions = read_config(ROOT / "config/config.yaml", seeds=[41, 61])
    rows = {(name, row.name): row.cells for name in ("Q2", "Q23") for row in questions[name].rows}
    # Plain training alone, as of Q2 at the second seed, compares nothing.
    there = [rows["Q2", "own_mode frozen-V"][0], *rows["Q2", "vanilla"], rows["Q23", "screen"][1]]
    frame = pd.DataFrame({"cell": [cell.id for cell in there]})
    own = {name: edition.of_own_seeds(questions[name], frame) for name in ("Q2", "Q23", "Q24")}
    seeds = {name: {cell.seed for cell in question.cells} for name, question in own.items()}
    assert seeds == {"Q2": {41}, "Q23": {61}, "Q24": {41, 61}}  # one without any run stays as it is


def test_rows_of_another_baseline_bring_it_no_seeds():
    _, questions = read_config(ROOT / "config/config.yaml", seeds=[41, 61])
    rows = {row.name: row.cells for row in questions["Q10"].rows}
    slower = "own_mode, run_tests slower", "vanilla, run_tests slower"
    there = [*rows["vanilla"], rows["own_mode"][0], *(rows[name][1] for name in slower)]
    found = edition.of_own_seeds(questions["Q10"], pd.DataFrame({"cell": [cell.id for cell in there]}))
    seeds = {row.name: [cell.seed for cell in row.cells] for row in found.rows}
    assert all(seeds[name] == [41] for name in ("vanilla", "own_mode", "moral"))
    assert all(seeds[name] == [61] for name in (*slower, "moral, run_tests slower"))
    assert seeds["moral, run_tests"] == [41, 61]  # nothing of that baseline is there


def test_groups_that_are_compared_with_each_other_share_their_seeds():
    _, questions = read_config(ROOT / "config/config.yaml", seeds=[41, 61])
    rows = {row.name: row.cells for row in questions["Q14"].rows}
    first, second = [row.name for row in questions["Q14"].rows if row.pooled == "known modes, all folds"][:2]
    base = {row.name: row.baseline for row in questions["Q14"].rows}
    there = [rows[first][0], rows[base[first]][0], rows[second][1], rows[base[second]][1]]
    found = edition.of_own_seeds(questions["Q14"], pd.DataFrame({"cell": [cell.id for cell in there]}))
    seeds = {row.name: [cell.seed for cell in row.cells] for row in found.rows}
    assert base[first] != base[second] and seeds[first] == seeds[second] == [41, 61]


def test_all_seeds_of_the_tree_are_published(tmp_path):
    for seed in (44, 61, 62, 31, 51):
        (tmp_path / f"grpo/erase-own_mode-m0-s{seed}").mkdir(parents=True)
    config, questions = edition.read_tree(ROOT / "config/config.yaml", results=str(tmp_path), seeds=[41])
    assert list(config.seeds) == [41, 44, 61, 62]
    assert {cell.seed for cell in questions["Q23"].cells} == {41, 44, 61, 62}


def test_a_page_whose_sentences_need_unknown_numbers_stays_and_others_name_them(docs, made):
    kept = docs / "results/Q18.md"  # the made-up tree has neither rankings nor replays
    write_text(kept, "# Q18. As it was\n")
    publish.publish(made.config, made.questions, edition.Place(docs), None)
    assert kept.read_text() == "# Q18. As it was\n"
    assert "Not known of these runs: T4" in (docs / "results/R7.md").read_text()


def test_what_stands_beside_runs_must_be_as_it_was_made_too(made, tmp_path):
    config = made.config.model_copy(update={"results": str(tmp_path)})
    cell = made.questions["Q2"].cells[0]
    write_run(tmp_path, cell)
    base = tmp_path / base_file(cell.model)
    base.parent.mkdir(parents=True)
    deployed_rows(cell, 0.0).to_parquet(base)
    records.write({"rule": "base_deployed"}, [str(base)], str(tmp_path))
    assert len(publish.of_results(config, made.questions))
    deployed_rows(cell, 0.5).to_parquet(base)
    with pytest.raises(UserError, match="damaged or edited"):
        publish.of_results(config, made.questions)


def test_a_stages_page_is_published_with_all_of_its_figures(tmp_path):
    outputs = [tmp_path / "substrate.md", tmp_path / "figures/substrate"]
    write_text(outputs[0], "# Model\n\n![x](figures/substrate/x.svg)\n")
    write_text(outputs[1] / "x.svg", "<svg/>")
    records.write({"rule": "verdict"}, list(map(str, outputs)), str(tmp_path))
    publish.write_page(edition.Place(tmp_path), "substrate", *publish.of_other_stages(tmp_path)["substrate"])
    assert "\n\n![x](../figures/substrate-x.svg)\n" in (tmp_path / "results/substrate.md").read_text()
    assert (tmp_path / "figures/substrate-x.svg").read_text() == "<svg/>"
    (outputs[1] / "x.svg").unlink()
    with pytest.raises(UserError, match=r"x\.svg: no such file, rule verdict made it"):
        publish.of_other_stages(tmp_path)


def test_a_tree_whose_questions_have_no_answer_yet_is_published_without_them(made, tmp_path):
    config = made.config.model_copy(update={"results": str(tmp_path / "results")})
    write_run(tmp_path / "results", made.questions["aa"].cells[0])
    assert publish.publish(config, made.questions, edition.Place(tmp_path, "mine"), None) == []
    assert "| Q10, own_mode: hack | – |" in (tmp_path / "results/mine.md").read_text()


def test_the_csv_of_a_question_has_every_number_by_run(docs, made):
    own = pd.read_csv(docs / "results/Q10.csv").set_index(["row", "seed"])
    for row in made.questions["Q10"].rows:
        for cell in row.cells:
            steps = pd.read_parquet(made.results / "grpo" / cell.id / "steps.parquet")
            assert own.loc[(row.name, cell.seed), "hack"] == pytest.approx(steps["hack_s"].tail(5).mean())
            assert own.loc[(row.name, cell.seed), "cell"] == cell.id


def test_a_tree_without_runs_and_without_a_csv_is_one_line(made, tmp_path):
    empty = made.config.model_copy(update={"results": str(tmp_path / "none")})
    with pytest.raises(UserError, match="no finished run"):
        publish.publish(empty, made.questions, edition.Place(tmp_path / "docs"), None)
    assert not (tmp_path / "docs").exists()


def test_the_readme_is_filled_between_its_marks(docs, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    file = tmp_path / "README.md"
    file.write_text(f"# Name\n\n{overview.OPEN}\nold\n{overview.CLOSE}\n\nRest\n")
    overview.write_readme(file, {}, docs)
    assert "old" in file.read_text()  # the figure's question has no number here
    with pytest.raises(UserError, match="no line"):
        file.write_text("# Name\n")
        overview.write_readme(file, {read_mapping(overview.README)["figure"]: published()}, docs)


def test_the_readme_says_nothing_of_a_question_without_its_numbers():
    whole = published()
    says = whole.own.question.says[0]
    gone = whole.frame["row"].eq(says.row)
    some, none = (
        replace(whole, frame=whole.frame.assign(verdict=whole.frame["verdict"].mask(rows, "missing")))
        for rows in (gone, gone | True)
    )
    for made, said in ((whole, (True, True, True)), (some, (False, True, True)), (none, (False,) * 3)):
        assert tuple(bool(answer.said(made, number)) for number in (1, 2, 0)) == said


def published():
    """Return the estimates of Q16 as published."""
    config, questions = real_questions(list(range(41, 51)))
    frame = numbers.read(ROOT / "docs/results/runs.csv")
    return question.estimated(questions["Q16"], frame, config)


def test_what_the_joint_correction_takes_away_is_said_below_the_answer():
    own = published()
    line = own.of("screen", "baseline", "plain_solve")
    outcomes = pd.DataFrame([{**line, "verdict": "other", "p_holm": 0.25}])
    (said,) = answer.corrected(replace(own, outcomes=outcomes))
    assert "`screen`" in said and said.endswith("primary outcomes, 0.250.")
    assert not answer.corrected(own)


def test_what_fresh_seeds_say_stands_first():
    own = published()
    frame = own.frame.assign(delta=-own.frame["delta"], verdict="not shown")
    fresh = replace(own, frame=frame, fresh=None)
    both = replace(own, fresh=fresh)
    for said, alone in ((answer.answer(both), fresh), (answer.of_first_seeds(both), own)):
        whole = answer.answer(alone)
        assert len(said) == len(whole) and all(map(str.endswith, said, whole))
        assert said[0] != whole[0] and said[1:] == whole[1:]  # it says of which seeds it is
    assert not answer.of_first_seeds(own)


def test_other_configs_are_published_beside(made, tmp_path):
    place = edition.Place(tmp_path, "smollm2")
    publish.publish(made.config, {"Q2": made.questions["Q2"]}, place, None)
    page = (tmp_path / "results/smollm2/Q2.md").read_text()
    address = re.search(r"\]\((\.\./[^)]+\.svg)\)", page)[1]
    assert (tmp_path / "results/smollm2" / address).resolve().exists()
    assert (tmp_path / "results/smollm2.md").exists() and (tmp_path / "results/smollm2/runs.csv").exists()


def test_changes_of_another_model_stand_beside_those_of_the_same_rows(docs, made, tmp_path):
    shutil.copytree(docs, tmp_path, dirs_exist_ok=True)
    publish.publish(made.config, {"Q10": made.questions["Q10"]}, edition.Place(tmp_path, "smollm2"), None)
    section = (tmp_path / "results/smollm2.md").read_text().split("## Beside the small model", 1)[1]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| Q10, ")]
    assert {"Q10, own_mode", "Q10, prog_wide"} <= {row[0] for row in rows}
    placebos = {row.name for row in made.questions["Q10"].rows if row.population}
    assert placebos and not {f"Q10, {name}" for name in placebos} & {row[0] for row in rows}
    # The runs are the same here, and so are their changes.
    assert all(row[2:4] == row[4:] for row in rows)
    assert "## Beside" not in (docs / "results.md").read_text()


def test_published_runs_are_named_as_a_shell_expands_them():
    cells = [f"vanilla-m0.5-s{seed}" for seed in (43, 41, 42)]
    cells += ["less-x0.5-m0.5-s41", "kl-m0-s31", "kl-m0-s33"]
    said = short(cells)
    assert said == ["vanilla-m0.5-s{41..43}", "less-x0.5-m0.5-s41", "kl-m0-s{31,33}"]
    expanded = subprocess.run(["bash", "-c", f"echo {' '.join(said)}"], capture_output=True, text=True).stdout
    assert sorted(expanded.split()) == sorted(cells)


def test_outcomes_on_fresh_seeds_stand_in_place_of_those_named_afterwards(docs, made):
    store, fresh = docs / "results/runs.csv", docs / "results/confirmation/runs.csv"
    before = (docs / "results.md").read_text()
    text = store.read_text()
    for old, new in ((41, 51), (42, 52)):
        text = text.replace(f"-s{old}", f"-s{new}").replace(f",{old},", f",{new},")
    write_text(fresh, text)
    found = publish.elsewhere(docs)["confirmation"]
    assert set(found["Q10"].frame.loc[found["Q10"].frame["n"] > 0, "seeds"]) <= {"51;52", "51", "52"}
    publish.publish(made.config, made.questions, edition.Place(docs), None)
    lines = {"before": before, "after": (docs / "results.md").read_text()}
    named = {key: re.search(r"^\| Q10, own_mode: hack .*$", page, re.M)[0] for key, page in lines.items()}
    assert "41, 42 (looked at before)" in named["before"] and "| 51, 52 of 51-60 |" in named["after"]
    assert "**Fresh seeds (51, 52): " in (docs / "results/Q10.md").read_text()
    row = re.search(r"^\| \[Q10\..*$", lines["after"], re.M)[0]
    assert "Fresh seeds (51, 52): " in row and "Other seeds" not in row
