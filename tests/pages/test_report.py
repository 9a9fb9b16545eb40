"""The report: self-contained, escaped, linked, and honest about what is missing. Chromium where it is installed."""

import html
import json
import re
import shutil
import subprocess
import time
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from results_tree import make_results, standing
from synthetic import rollout_rows

from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages import registry
from projected_grpo.pages.context import Context, banner
from projected_grpo.pages.examples import examples
from projected_grpo.pages.page import write
from projected_grpo.pages.report import LARGEST, build, section, to_html, write_report
from projected_grpo.pages.words import percent


def report(made, out, results=None):
    """Return the report of what is made."""
    config = made.config.model_copy(update={"results": str(results or made.results)})
    return build(config, made.questions, registry.pages(made.config, made.questions), out)


@pytest.fixture(scope="module")
def page(made):
    return report(made, made.results.parent / "reports" / "paper.html")


class Outline(HTMLParser):
    """The tags of a page, and their attributes as (tag, name, value)."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]


def test_page_is_self_contained_and_every_link_has_a_target(page):
    outline = Outline(page)
    ids = [value for _, name, value in outline.attributes if name == "id"]
    sources = [value for _, name, value in outline.attributes if name == "src"]
    links = [value for tag, name, value in outline.attributes if (tag, name) == ("a", "href")]
    assert len(set(ids)) == len(ids)
    assert all(source.startswith("data:image/svg+xml") for source in sources) and sources
    assert outline.tags.count("script") == 2 and "iframe" not in outline.tags
    assert "http://" not in re.sub(r'xmlns(:xlink)?="[^"]+"', "", page) and "https://" not in page
    local = [link[1:] for link in links if link.startswith("#")]
    assert set(local) <= set(ids) and len(local) > 20
    others = [link for link in links if not link.startswith("#")]
    assert others and all(link.startswith("../") or "logs" in link for link in others)


def test_model_output_is_escaped(page):
    assert not any(name.startswith("on") for _, name, _ in Outline(page).attributes)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page and "{{ 7*7 }}" in page


@pytest.mark.parametrize("name", ["Q2", "Q10", "Q12", "Q14"])
def test_a_section_has_the_numbers_of_its_table_of_estimates(page, made, name):
    frame = pd.read_parquet(made.results / f"{name}.estimates.parquet")
    section = page.partition(f'<section id="{name}"')[2].partition("</section>")[0]
    measure = {"Q12": "hack_ablated", "Q14": "hack_heldout"}.get(name, "hack")
    rates = frame[frame["contrast"].eq("rate") & frame["measure"].eq(measure)]
    first = section[section.index("<table>") : section.index("</table>")]
    assert sum(percent(one.mean) in first for one in rates.itertuples()) >= 3
    for one in frame[frame["contrast"].eq("baseline") & frame["measure"].eq(measure)].itertuples():
        assert f"{one.delta:+.3f}" in section
    for row in made.questions[name].rows:
        for cell in row.cells:
            assert f'id="run-{cell.id}"' in page


def test_the_overview_has_every_page_with_its_answer(page, made):
    table = page[page.index('<section id="overview"') : page.index('<section id="curves"')]
    for name, question in made.questions.items():
        assert html.escape(question.title) in table and f'href="#{name}"' in table
    assert "missing" not in re.sub(r"<dl>.*?</dl>", "", table, flags=re.S)


def test_settings_are_those_that_the_run_recorded(page, made):
    info = json.loads((made.results / "grpo/vanilla-final-m0.5-s41/run.json").read_text())
    shown = page.partition('id="run-vanilla-final-m0.5-s41"')[2].partition("</pre>")[0]
    assert 'grpo/vanilla-final-m0.5-s41/">small-s41</a>' in shown and "pool 00aa11bb22cc33dd" in shown
    for key, value in info["settings"].items():
        assert key == "seed" or html.escape(f"{key}: {json.dumps(value)}").replace("&quot;", "&#34;") in shown


def test_curves_of_all_rows_are_there_in_whole_percent(page, made):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    places = {name: {row: runs for row, runs in rows} for name, _, rows in data["questions"]}
    assert places.keys() == made.questions.keys()
    assert data["measures"] == ["hack rate", "solve rate", "honest rate"]
    row = made.questions["Q2"].rows[1]
    runs = load_runs(made.results, row.cells)[0]
    for place, cell in zip(places["Q2"][row.name], row.cells, strict=True):
        assert data["runs"][place][0] == [round(100 * value) for value in runs[cell.id].steps["hack_s"]]
    assert len(data["runs"]) == len({cell.id for q in made.questions.values() for cell in q.cells})


def test_verdicts_have_three_states_and_errors_are_shown(tmp_path, made):
    results = tmp_path / "results"
    shutil.copytree(made.results, results)
    path = results / "grpo/vanilla-final-m0.5-s41/rollouts.parquet"
    frame = pd.read_parquet(path)
    untested = frame["mode"] == "sentinel"
    frame["gt_pass"] = frame["gt_pass"].astype(object).where(~untested, None)
    frame.loc[untested, "error"] = "timeout"
    frame.to_parquet(path)
    runs = load_runs(results, made.questions["Q2"].cells)[0]
    shown = [e for e in examples(runs.values()) if e.cell == "vanilla-final-m0.5-s41"]
    assert {e.step for e in shown} == set(range(1, 21))  # all of them, as far as there is room
    assert {e.kind for e in shown if e.mode == "sentinel"} <= {"hack", "not judged"}
    for e in shown:
        assert (e.flags["gt_pass"] is None) == (e.mode == "sentinel")
        assert (e.flags["loophole_used"] is None) == (e.mode != "run_tests")
        assert e.error == ("timeout" if e.mode == "sentinel" else "" if e.flags["gt_pass"] else "exception")
    page = report(made, tmp_path / "paper.html", results)
    for state in ("not judged", "no", "yes"):
        assert f"gt_pass: {state}</span>" in page
    assert '<span class="error">error: timeout</span>' in page


def test_examples_keep_to_their_budget_and_the_last_step_to_the_end(made):
    runs = load_runs(made.results, made.questions["Q2"].cells)[0].values()
    whole = examples(runs)
    for share in (0.5, 0.2, 0.06):
        budget = int(share * sum(e.size for e in whole))
        some = examples(runs, budget)
        assert sum(e.size for e in some) <= budget and all(e in whole for e in some)
        assert {e.arm for e in some if e.step == 20} == {e.arm for e in whole}


def test_other_stages_pages_and_examples_are_there(page):
    for anchor in ("substrate", "self_taught", "grader-diagonal", "rollouts", "runs", "aa"):
        assert f'<section id="{anchor}"' in page
    assert 'class="rollout" data-kind="hack"' in page


def test_missing_runs_and_pages_are_named(tmp_path, made):
    page = report(made, tmp_path / "paper.html", tmp_path)
    assert re.search(r"<code>vanilla-final-m0\.5-s\{41(,|\.\.)42\}</code>", page)
    assert "Runs left out" in page and '<section id="Q2"' not in page


def test_a_row_s_name_is_text_and_what_folds_up_still_does(tmp_path):
    table = "| row | x |\n| --- | ---: |\n| erase <mine> | 1 |"
    _, found = to_html(f"# T\n\n<details><summary>All</summary>\n\n{table}\n\n</details>\n", tmp_path)
    assert "<td>erase &lt;mine&gt;</td>" in found and "<details><summary>All</summary>" in found


def test_a_page_whose_figure_is_gone_is_an_error_with_its_path(tmp_path):
    write_text(tmp_path / "Q1.md", "# Q1. Title\n\n![x](figures/Q1/forest.svg)\n")
    with pytest.raises(UserError, match=r"figures/Q1/forest\.svg: cannot be read"):
        section("Q1", tmp_path, True)


def test_a_row_without_runs_says_so(tmp_path, made):
    results = tmp_path / "results"
    shutil.copytree(made.results, results)
    gone = made.questions["Q2"].rows[-1]
    for cell in gone.cells:
        shutil.rmtree(results / "grpo" / cell.id)
    config = made.config.model_copy(update={"results": str(results)})
    write(registry.load("question").make(Context("Q2", config, made.questions)), results)
    page = report(made, tmp_path / "paper.html", results)
    section = page.partition('<section id="Q2"')[2].partition("</section>")[0]
    assert re.search(rf"Not run yet: [^<]*{re.escape(gone.name)}", section)


def test_damaged_rollouts_are_an_error_with_their_path(tmp_path, made):
    shutil.copytree(made.results, tmp_path / "results")
    path = tmp_path / "results/grpo/vanilla-final-m0.5-s41/rollouts.parquet"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"vanilla-final-m0\.5-s41/rollouts\.parquet"):
        report(made, tmp_path / "paper.html", tmp_path / "results")


@pytest.mark.parametrize(
    "change, column",
    [
        (lambda f: f.iloc[:0], ""),
        (lambda f: f.assign(reward=f["reward"].where(f["step"] > 1)), "reward"),
        (lambda f: f.assign(step=f["step"].where(f["step"] > 1)), "step"),
        (lambda f: f.assign(gt_pass=f["gt_pass"].astype(str)), "gt_pass"),
        (lambda f: f.assign(channel=f["channel"].astype(str)), "channel"),
    ],
)
def test_edited_rollouts_are_an_error_with_their_path(tmp_path, made, change, column):
    cell = "vanilla-final-m0.5-s41"
    shutil.copytree(made.results / "grpo" / cell, tmp_path / "grpo" / cell)
    run = load_runs(tmp_path, [c for c in made.questions["Q2"].cells if c.id == cell])[0][cell]
    path = tmp_path / "grpo" / cell / "rollouts.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises(UserError, match=rf"vanilla-final-m0\.5-s41/rollouts\.parquet: .*{column}"):
        examples([run])


def test_a_trial_and_a_single_seed_say_so_above_page_and_report(made, page, tmp_path):
    shutil.copytree(made.results, tmp_path / "results")
    trial = banner(made.config.model_copy(update={"trial": True}))
    assert trial.startswith("A trial") and not banner(made.config) and 'class="banner"' not in page
    assert banner(made.config.model_copy(update={"seeds": (43,)})).startswith("One seed (43)")
    write(standing("substrate", "Model", banner=trial), tmp_path / "results")
    assert (tmp_path / "results/substrate.md").read_text().startswith(f"# Model\n\n> **{trial}**\n\n")
    one = replace(made, config=made.config.model_copy(update={"trial": True}))
    shown = report(one, tmp_path / "paper.html", tmp_path / "results")
    assert trial in shown and shown.index(trial) < shown.index("<h1>")
    # A page is made anew where the banner changes.
    assert one.text() != made.text() and one.text().endswith(made.text())


CHROMIUM = shutil.which("chromium")
# Opens every list, types into and changes every control, sorts a table; then counts what can be seen.
CLICKS = """
f.onload = () => {
  const d = f.contentDocument, w = f.contentWindow, seen = (node) => node.getClientRects().length > 0;
  const fire = (node, kind) => node.dispatchEvent(new w.Event(kind, {bubbles: true}));
  const change = (node) => { fire(node, "input"); fire(node, "change"); };
  const found = {};
  found.width = d.documentElement.scrollWidth;
  for (const node of d.querySelectorAll("details")) node.open = true;
  found.runs = [...d.querySelectorAll("#runs tbody tr")].filter(seen).length;
  found.rollouts = [...d.querySelectorAll(".rollout")].filter(seen).length;
  const kind = d.querySelector("#filters [name=kind]");
  kind.value = "hack"; kind.dispatchEvent(new w.Event("input", {bubbles: true}));
  found.hacks = [...d.querySelectorAll(".rollout")].filter(seen).length;
  found.said = d.querySelector("#filters output").textContent;
  found.runsAfter = [...d.querySelectorAll("#runs .arm")].filter(seen).length;
  kind.value = ""; kind.dispatchEvent(new w.Event("input", {bubbles: true}));
  const before = d.querySelectorAll(".panels path").length;
  const box = [...d.querySelectorAll("#curves fieldset input")].find((one) => !one.checked);
  box.click();
  found.curves = [before, d.querySelectorAll(".panels path").length];
  d.querySelector("#curves [name=none]").click();
  found.cleared = d.querySelectorAll(".panels path").length;
  const question = d.querySelector("#curves [name=question]");
  question.selectedIndex = 1; change(question);
  found.rows = d.querySelectorAll("#curves fieldset label").length;
  d.querySelector("#theme").click();
  found.theme = d.documentElement.dataset.theme;
  const t = d.querySelector("#Q10 table");
  t.tHead.rows[0].cells[1].firstElementChild.click();
  found.rates = [...t.tBodies[0].rows].map((row) => parseFloat(row.cells[1].textContent));
  for (const node of d.querySelectorAll("button, select, input")) { node.click(); change(node); }
  document.title = JSON.stringify(found);
};
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_every_control_works_in_chromium_and_the_page_fits(page, made, tmp_path, width):
    write_report(page, tmp_path / "paper.html")
    probe = tmp_path / "probe.html"
    # A frame of this width is its document's viewport; what is in it is read from outside.
    probe.write_text(
        f'<iframe id="f" src="paper.html" width="{width}" height="800"></iframe><script>{CLICKS}</script>'
    )
    flags = """
        --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
        --disable-component-update --disable-sync --allow-file-access-from-files --enable-logging=stderr
    """
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [CHROMIUM, *flags.split(), profile, "--virtual-time-budget=20000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert "CONSOLE" not in done.stderr
    found = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", done.stdout)[1]))
    cells = {cell.id for question in made.questions.values() for cell in question.cells}
    assert found["width"] <= width
    assert found["runs"] == len(cells) and found["runsAfter"] > 0
    assert 0 < found["hacks"] < found["rollouts"] and found["said"].startswith(f"{found['hacks']} of ")
    assert found["curves"][1] > found["curves"][0] > 0 and found["cleared"] == 0 and found["rows"] > 1
    assert found["theme"] in ("dark", "light")
    assert found["rates"] == sorted(found["rates"]) and len(set(found["rates"])) > 3


@pytest.mark.slow
def test_page_of_all_questions_at_five_seeds_stays_below_its_size(tmp_path):
    """Rollouts are as long and as many as real ones, so that the examples take all the room they may."""
    made = make_results(tmp_path, None, 5)
    results = made.results
    for question in made.questions.values():
        for cell in question.cells:
            if cell.seed == 41:
                rows = pd.concat([rollout_rows(cell, 0.5)] * 6)
                rows["prompt"] = "PROBLEM:\n" + "Return the sum of <a> & b.\n" * 12
                rows["completion"] += "\n# and why it is so" * 10
                rows.to_parquet(results / "grpo" / cell.id / "rollouts.parquet")
    start = time.perf_counter()
    write_report(report(made, tmp_path / "paper.html"), tmp_path / "paper.html")
    seconds, size = time.perf_counter() - start, (tmp_path / "paper.html").stat().st_size
    runs = len(list((results / "grpo").iterdir()))
    print(f"{runs} runs: the page has {size / 1e6:.1f} MB and took {seconds:.1f} s")
    assert 3_000_000 < size <= LARGEST == 10_000_000
