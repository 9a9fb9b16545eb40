"""`make publish`: pages, index, figures and the README's part, made of what is checked first."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import shipped
from scipy import stats
from synthetic import ROOT

from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.pages import publish, slot
from projected_grpo.pages.blocks import read_page


def test_publish_writes_a_page_each_and_an_index(made, tmp_path):
    for name in ("Q10-old", "self_taught-old", "Q99-effects", "hand-made"):
        write_text(tmp_path / "figures" / f"{name}.svg", "<svg/>")
    how = {"Date": "2026-01-01", "Machine": "2 cores"}
    publish.write_snapshot(made.results, tmp_path, how)
    index, page = (tmp_path / "results.md").read_text(), (tmp_path / "results/Q10.md").read_text()
    linked = set(re.findall(r"\]\(results/(.+?)\.md\)", index))
    assert {"Q10", "R7", "grader-diagonal"} <= linked
    assert linked == {path.stem for path in (tmp_path / "results").glob("*.md")}
    finding = read_page(made.results / "Q10.json").finding
    assert f"1. {finding} ([Q10." in index
    assert page.startswith("# Q10. ") and "Date: 2026-01-01" in page and "Seeds: 41, 42" in page
    assert "Code: 3f9a2c0123456789 (as `run.json` has it)" in page
    assert "vanilla-m0.125-s{41" in page and "<!--" not in page
    pages = {path.stem: path.read_text() for path in (tmp_path / "results").glob("*.md")}
    shown = {Path(n).stem for text in pages.values() for n in re.findall(r"\]\(\.\./figures/([^)]+)\)", text)}
    kept = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert shown <= kept and kept - shown == {"Q99-effects", "hand-made"}
    assert {"grader-diagonal-matrix", "R7-effects"} <= kept
    with pytest.raises(UserError, match="no question table"):
        publish.write_snapshot(tmp_path / "none", tmp_path, {})


def test_publish_dates_what_it_changes_alone(made, tmp_path):
    docs, part = tmp_path / "docs", tmp_path / "part"
    publish.write_snapshot(made.results, docs, {"Date": "2026-01-01"})
    first = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}
    publish.write_snapshot(made.results, docs, {"Date": "2026-01-31"})
    assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == first
    for name in ("Q2", "Q10"):  # as another edition of the code wrote them
        page = docs / "results" / f"{name}.md"
        write_text(page, page.read_text().replace("**Answer.**", "**Says.**"))
    before = {path.name: path.read_text() for path in (docs / "results").glob("*.md")}
    shutil.copytree(made.results, part)
    for path in part.rglob("*.md"):
        if path.stem != "Q2":
            path.unlink()
    publish.write_snapshot(part, docs, {"Date": "2026-02-02"}, ["Q2", "Q10", "Q98"])
    after = {path.name: path.read_text() for path in (docs / "results").glob("*.md")}
    assert [name for name in before if after[name] != before[name]] == ["Q2.md"]
    index = (docs / "results.md").read_text()
    assert "No table yet: Q98." in index
    assert [line[-12:-2] for line in index.split("\n") if line.startswith(("| [Q2.", "| [Q10."))] == [
        "2026-02-02",
        "2026-01-01",
    ]


def test_publish_fills_the_readme_and_takes_an_overlay(made, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(f"results: {made.results}\n")
    readme, docs = tmp_path / "README.md", tmp_path / "docs"
    readme.write_text(f"# Name\n\n{slot.OPEN}\nold\n{slot.CLOSE}\n\nRest\n")
    call = ["--configfile", str(overlay), "--docs", str(docs), "--readme", str(readme)]
    assert publish.main(call) == 0 and publish.main(call) == 0
    said = readme.read_text()
    top = read_page(made.results / "Q10.json").top[0].text
    assert said.startswith(f"# Name\n\n{slot.OPEN}\n\n**What came out** (Q10): {top}\n\n")
    shown = tmp_path / re.search(r"!\[.*?\]\((.*?)\)", said)[1]
    assert shown.exists() and shown.stem.startswith("Q10-")
    assert said.endswith(f"</table>\n\n{slot.CLOSE}\n\nRest\n") and "old" not in said
    run = re.search(r"As the model of `(.*?)` wrote them", said)[1]
    rows = pd.read_parquet(made.results / "grpo" / run / "rollouts.parquet")
    for text, channel in zip(
        re.findall(r"<td><pre>(.*?)</pre></td>", said, re.S)[2:], (True, False), strict=True
    ):
        wrote = rows[rows["completion"].str.strip() == html.unescape(text)]
        assert ((wrote["channel"] == channel) & (wrote["gt_pass"] != channel)).any()
    assert "Config: `overlay.yaml`, model `small`" in (docs / "results/Q10.md").read_text()
    missing = re.search(r"^No table yet: (.*)\.$", (docs / "results.md").read_text(), re.M)[1].split(", ")
    asked = set(shipped.questions()) - {"$schema"}
    assert set(missing) == asked - {path.stem for path in (docs / "results").glob("*.md")} and missing
    store = docs / publish.STORE
    stored = json.loads(store.read_text())
    write_text(store, json.dumps(stored | {"Q16": stored["Q10"]}))  # published before, from another tree
    readme.write_text("# Name\n")
    assert publish.main(call) == 0 and readme.read_text() == "# Name\n"
    store.unlink()
    assert publish.main(call) == 2


def test_every_test_can_be_made_again_from_the_published_numbers(made, tmp_path):
    publish.write_snapshot(made.results, tmp_path, {"Date": "2026-01-01"})
    tables = {path.stem: pd.read_csv(path) for path in (tmp_path / "results").glob("*.csv")}
    assert {"Q2", "Q10", "Q12", "Q14"} <= set(tables) and not {"substrate", "aa"} & set(tables)
    tested = set()
    for name, runs in tables.items():
        assert f"[{name}.csv]({name}.csv)" in (tmp_path / f"results/{name}.md").read_text()
        frame = pd.read_parquet(made.results / f"{name}.parquet").set_index("row")
        for row, found in frame.iterrows():
            own = runs[runs["row"] == row]
            if own["cell"].notna().all():  # else several rows as one
                assert own["cell"].tolist() == list(found["cells"])
            both = own.merge(
                runs, left_on=["baseline", "seed"], right_on=["row", "seed"], suffixes=("", "_base")
            )
            for measure in set(runs) - {"row", "baseline", "seed", "cell"}:
                if own[measure].notna().any():
                    assert own[measure].mean() == pytest.approx(found[measure], rel=1e-4)
                pair = both[[measure, f"{measure}_base"]].dropna()
                if pd.notna(found.get(f"p_{measure}")):
                    test = stats.ttest_rel(*pair.to_numpy().T)
                    assert test.pvalue == pytest.approx(found[f"p_{measure}"], rel=1e-3, abs=1e-6)
                    low, high = test.confidence_interval(0.95)
                    ends = found[[f"delta_{measure}_lo", f"delta_{measure}_hi"]].tolist()
                    assert [low, high] == pytest.approx(ends, abs=1e-4)
                    tested.add(measure)
    assert {"hack", "solve", "honest", "hack_ablated", "hack_heldout", "known_hack"} <= tested


def test_a_table_without_rows_of_runs_has_no_numbers_by_run(made, tmp_path):
    """The evaluator's table has numbers by seed, but its rows are rounds of a critic."""
    by_seed = [[{"seed": 41, "value": 1.0}, {"seed": 42, "value": 2.0}]]
    frame = pd.DataFrame({"round": [0], "seeds": [[41, 42]], "mae": [1.5], "mae_by_seed": by_seed})
    shutil.copytree(made.results, tmp_path / "results")
    page = read_page(tmp_path / "results/Q10.json")
    frame.to_parquet(tmp_path / "results/Q10.parquet")
    assert publish._by_run(page, tmp_path / "results") == ""


def test_published_runs_are_named_as_a_shell_expands_them():
    cells = [f"vanilla-m0.5-s{seed}" for seed in (43, 41, 42)] + [
        "less-x0.5-m0.5-s41",
        "kl-m0-s31",
        "kl-m0-s33",
    ]
    said = publish.short(cells)
    assert said == ["vanilla-m0.5-s{41..43}", "less-x0.5-m0.5-s41", "kl-m0-s{31,33}"]
    expanded = subprocess.run(["bash", "-c", f"echo {' '.join(said)}"], capture_output=True, text=True).stdout
    assert sorted(expanded.split()) == sorted(cells)


def test_a_damaged_figure_costs_no_published_one(made, tmp_path):
    docs, part = tmp_path / "docs", tmp_path / "part"
    publish.write_snapshot(made.results, docs, {"Date": "2026-01-01"})
    before = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}
    shutil.copytree(made.results, part)
    next((part / "figures/R7").glob("*.svg")).unlink()
    with pytest.raises(FileNotFoundError):
        publish.write_snapshot(part, docs, {"Date": "2026-02-02"})
    assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == before
