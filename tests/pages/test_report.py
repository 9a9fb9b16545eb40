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
from sentences import long
from synthetic import rollout_rows

from projected_grpo.errors import UserError
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages.blocks import Cell, Details, Figure, Grid, Listing, Paragraph, read_page
from projected_grpo.pages.context import Context
from projected_grpo.pages.examples import examples
from projected_grpo.pages.html import Renderer
from projected_grpo.pages.report import LARGEST, build, write_report
from projected_grpo.pages.text import p_value
from projected_grpo.verdicts import grader, registry
from projected_grpo.verdicts.verdict import write


def report(made, out, results=None):
    """Return the report of what is made."""
    results = results or made.results
    return build(results, "small", made.questions, registry.pages(made.config, made.questions), out)


@pytest.fixture(scope="module")
def page(made):
    return report(made, made.results.parent / "reports" / "paper.html")


class Outline(HTMLParser):
    """Ids, links, tags and event attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.tags, self.handlers, self.sources = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "href" and tag == "a":
                self.links.append(value)
            if name == "src":
                self.sources.append(value)
            if name.startswith("on"):
                self.handlers.append(name)


def test_page_is_self_contained_and_every_link_has_a_target(page):
    outline = Outline(page)
    assert len(set(outline.ids)) == len(outline.ids)
    assert not outline.sources and outline.tags.count("script") == 2 and "iframe" not in outline.tags
    assert "http://" not in re.sub(r'xmlns(:xlink)?="[^"]+"', "", page) and "https://" not in page
    local = [link[1:] for link in outline.links if link.startswith("#")]
    assert set(local) <= set(outline.ids) and len(local) > 100
    others = [link for link in outline.links if not link.startswith("#")]
    assert others and all(link.startswith("../") or "logs" in link for link in others)


def test_names_are_set_as_code_wherever_a_page_writes_them(page, tmp_path):
    kept = re.sub(r'<(script|style|pre)\b.*?</\1>|<div class="foreign">.*?</div>', "", page, flags=re.DOTALL)
    assert "`" not in kept
    (tmp_path / "f.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"></svg>', encoding="utf-8"
    )
    drawn = Renderer("p", tmp_path).render(
        (Grid(("a",), ((Cell("1"),),), title="As `x`"), Figure("f", "Of `x`"), Details("In `x`", ()))
    )
    assert drawn.count("<code>x</code>") == 3 and "`" not in drawn
    assert 'aria-label="As x"' in drawn and 'aria-label="Of x"' in drawn


def test_model_output_is_escaped(page):
    outline = Outline(page)
    assert not outline.handlers and "img" not in outline.tags
    assert "<script>alert" not in page and "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page and "{{ 7*7 }}" in page


PRIMARY = {"Q10": "hack", "Q12": "hack_ablated", "Q14": "hack_heldout"}


@pytest.mark.parametrize("name", PRIMARY)
def test_numbers_stand_in_the_page_and_lead_to_their_runs(page, made, name):
    """The measure that the question is about comes first; its difference is set off where it is shown."""
    frame = pd.read_parquet(made.results / f"{name}.parquet")
    measure = PRIMARY[name]
    rows = made.questions[name].rows
    for number, row in frame.iterrows():
        if number >= len(rows) or rows[number].population:  # folds as one, placebos: in grids of their own
            continue
        link = f'<a class="n" href="#{name}-row{number}">'
        section = page[page.index(f'<section id="{name}"') :]
        cells = re.search(rf"<tr>(?:(?!</tr>).)*?{link}.*?</tr>", section, re.S)[0]
        first = re.search(r"<td>.*?</td>", cells)[0]
        shown = f"{row[measure]:.3f}<small>{row[f'{measure}_std']:.3f}</small></a></td>"
        assert first == f"<td>{link}{shown}"
        for rate in ("hack", "honest", "hack_compiled"):
            assert f"{link}{row[rate]:.3f}<small>{row[f'{rate}_std']:.3f}</small></a>" in cells
        strong = re.findall(r'<td class="strong">(.*?)</td>', cells)
        assert len(strong) == (row[f"p_{measure}_holm"] < 0.05)
        if not pd.isna(row["baseline"]):
            assert f"{link}{row[f'delta_{measure}']:+.3f}<small>[" in cells
            assert f"{link}{row['delta_honest']:+.3f}" in cells
            assert f"<small>p {html.escape(p_value(row[f'p_{measure}']))}</small>" in cells
        for cell in row["cells"]:
            assert f'id="run-{cell}"' in page
    assert "3f9a2c0123456789" in page and "torch 2.13.0" in page
    assert "&#34;mix&#34;: 0.125" in page and "results/logs/grpo/vanilla-m0.125-s41.log" in page


class Rows(HTMLParser):
    """Table rows by section: numbers outside a link, and links; by id, the links inside that element."""

    def __init__(self, text):
        super().__init__()
        self.open, self.inside, self.rows, self.link = [], {}, {}, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in ("meta", "link", "input"):
            self.open.append((tag, attrs))
        if tag == "tr":
            self.rows.setdefault(self.section(), []).append({"bare": [], "links": []})
        if tag == "a":
            self.link = True
            for _, outer in self.open:
                self.inside.setdefault(outer.get("id"), []).append(attrs["href"])
            if any(t == "tr" for t, _ in self.open):
                self.rows[self.section()][-1]["links"].append(attrs["href"])

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        self.link = self.link and tag != "a"
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        cell = next((a for t, a in reversed(self.open) if t == "td"), None)
        kind = cell.get("class", "") if cell and re.search(r"\d", data) else ""
        if "num" in kind and "paper" not in kind and not self.link:
            self.rows[self.section()][-1]["bare"].append(data)

    def section(self):
        return [attrs["id"] for tag, attrs in self.open if tag == "section"][-1]


@pytest.mark.parametrize("section", ["Q2", "Q10", "Q12", "Q14", "R7", "aa"])
def test_every_number_of_a_table_leads_to_what_was_run(page, section):
    found = Rows(page)
    numbers = 0
    for row in found.rows[section]:
        runs = [link for link in row["links"] if link.startswith("#run-")]
        assert runs or not row["bare"], row  # a run's own line starts with its link
        for link in row["links"]:
            if not link.startswith("#run-"):
                behind = found.inside[link[1:]]
                assert any(b.startswith("#run-") or "/probe/" in b for b in behind), link
                numbers += 1
    assert numbers > 20


def test_settings_are_those_that_the_run_recorded(page, made):
    info = json.loads((made.results / "grpo/vanilla-final-m0.5-s41/run.json").read_text())
    shown = page[page.index('id="run-vanilla-final-m0.5-s41"') :]
    shown = shown[: shown.index("</pre>")]
    assert 'grpo/vanilla-final-m0.5-s41/">small-s41</a>' in shown and "pool 00aa11bb22cc33dd" in shown
    for key, value in info["settings"].items():
        assert key == "seed" or html.escape(f"{key}: {json.dumps(value)}").replace("&quot;", "&#34;") in shown


def test_curves_of_all_rows_are_there_in_whole_percent(page, made):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    places = {name: {row: runs for row, runs in rows} for name, _, rows in data["questions"]}
    assert places.keys() == made.questions.keys() and data["measures"] == [
        "hack rate",
        "solve rate",
        "honest rate",
    ]
    row = made.questions["Q2"].rows[1]
    runs = load_runs(made.results, row.cells)[0]
    for place, cell in zip(places["Q2"][row.name], row.cells, strict=True):
        assert data["runs"][place][0] == [round(100 * value) for value in runs[cell.id].steps["hack_s"]]
    assert len(data["runs"]) == len({cell.id for q in made.questions.values() for cell in q.cells})


def test_map_has_a_square_for_every_row_with_a_baseline(page, made):
    drawn = page[page.index('<table class="map">') :]
    drawn = drawn[: drawn.index("</table>")]
    for line in re.findall(r"<tr>.*?</tr>", drawn, re.S)[1:]:
        name = re.search(r'href="#(\w+)"', line)[1]
        frame = pd.read_parquet(made.results / f"{name}.parquet")
        rows = [row for row in made.questions[name].rows if row.baseline and not row.population]
        assert line.count("title=") == len(rows), name
        measure = {"Q12": "hack_ablated", "Q14": "hack_heldout"}.get(name, "hack")
        shown = frame.iloc[: len(made.questions[name].rows)]
        assert line.count("shown") <= (shown[f"p_{measure}_holm"] < 0.05).sum()


def test_legends_stand_once(page):
    assert page.count("The reward pays hack and solve alike.") == 1
    assert page.count('<a href="#read">How to read these tables</a>') >= 4


def test_each_figure_stands_once_in_its_section(page):
    for name in ("Q2", "R7"):
        section = page[page.index(f'<section id="{name}"') :]
        section = section[: section.index("</section>")]
        captions = re.findall(r"<figcaption>(.*?)</figcaption>", section)
        assert len(captions) == len(set(captions)) == 2
        assert not any("Filled: Holm" in caption for caption in captions)  # the small one of the first screen
    assert page.count(grader.CAPTION + "</figcaption>") == 1


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
        assert some and sum(e.size for e in some) <= budget and set(some_ids(some)) <= set(some_ids(whole))
        arms = {e.arm for e in some}
        assert arms == {e.arm for e in whole}
        assert all(20 in {e.step for e in some if e.arm == arm} for arm in arms)


def some_ids(found):
    return [(e.arm, e.step, e.kind) for e in found]


def test_first_screen_answers_in_three_sentences(page):
    top = page[page.index('<header id="top">') : page.index('id="overview"')]
    assert top.count("<li><a href=") == 3 and top.count("<svg") == 3
    assert "3 of 8 arms lower the hack rate" in top


def test_other_stages_pages_and_examples_are_there(page):
    for anchor in ("substrate", "self_taught", "grader-diagonal", "rollouts", "runs", "aa"):
        assert f'<section id="{anchor}"' in page
    assert 'class="rollout" data-kind="hack"' in page and ">0.50<" in page


def test_missing_runs_and_pages_are_named(tmp_path, made):
    page = report(made, tmp_path / "paper.html", tmp_path)
    assert re.search(r"vanilla-final-m0\.5-s\{41(,|\.\.)42\}</code> \(missing\)", page)
    assert re.search(r"<summary>\d+ runs left out</summary>", page) and '<section id="Q2"' not in page


def test_a_row_without_runs_says_so(tmp_path, made):
    results = tmp_path / "results"
    shutil.copytree(made.results, results)
    for cell in made.questions["Q2"].rows[-1].cells:
        shutil.rmtree(results / "grpo" / cell.id)
    config = made.config.model_copy(update={"results": str(results)})
    write(registry.load("table").make(Context("Q2", config, made.questions)), results)
    page = report(made, tmp_path / "paper.html", results)
    assert "No complete run." in page and "(missing)" in page[page.index('<section id="Q2"') :]


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
    trial = made.config.model_copy(update={"trial": True}).banner
    assert trial.startswith("A trial") and not made.config.banner and 'class="banner"' not in page
    assert made.config.model_copy(update={"seeds": (43,)}).banner.startswith("One seed (43)")
    write(standing("substrate", "Model"), tmp_path / "results", trial)
    assert (tmp_path / "results/substrate.md").read_text().startswith(f"# Model\n\n> **{trial}**\n\n")
    shown = report(made, tmp_path / "paper.html", tmp_path / "results")
    assert shown.count(trial) == 1 and shown.index(trial) < shown.index("<h1>")
    one = replace(made, config=made.config.model_copy(update={"trial": True}))
    assert one.text() != made.text() and one.text().endswith(
        made.text()
    )  # a page is made anew where it changes


CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_page_loads_in_chromium_without_errors_and_fits_a_phone(page, tmp_path):
    write_report(page, tmp_path / "paper.html")
    probe = tmp_path / "probe.html"
    # A frame of 390 px is a phone's viewport; the width of its document is read from outside.
    probe.write_text(
        '<iframe id="f" src="paper.html" width="390" height="800"></iframe><script>f.onload = () => '
        "document.title = JSON.stringify([f.contentDocument.documentElement.scrollWidth, "
        "f.contentDocument.querySelector('#filters').hidden, f.contentWindow.getComputedStyle("
        "f.contentDocument.querySelector('a.n')).textDecorationLine, sorted()]);"
        "function sorted() { const d = f.contentDocument, t = d.querySelector('#Q10 table');"
        "t.tHead.rows[0].cells[1].firstElementChild.click();"
        "return [...t.tBodies[0].rows].map(r => parseFloat(r.cells[1].textContent)); }</script>"
    )
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    )
    more = [
        "--disable-component-update",
        "--disable-sync",
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
    ]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [
        CHROMIUM,
        *flags.split(),
        *more,
        profile,
        "--virtual-time-budget=8000",
        "--dump-dom",
        probe.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr
    width, filters_hidden, line, rates = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1])
    assert width <= 390 and filters_hidden is False and line == "underline"
    assert rates == sorted(rates) and len(set(rates)) > 5


def assert_sentences_are_short(results):
    for path in results.glob("*.json"):
        page = read_page(path)
        said = [block.text for block in (*page.top, *page.answer) if isinstance(block, Paragraph)]
        said += [f"- {item}" for block in page.answer if isinstance(block, Listing) for item in block.items]
        assert not long("\n\n".join([*said, page.finding])), path


@pytest.mark.slow
def test_page_of_all_questions_at_five_seeds_stays_below_its_size(tmp_path):
    """Rollouts are as long and as many as real ones, so that the examples take all the room they may."""
    made = make_results(tmp_path, None, 5)
    results = made.results
    assert_sentences_are_short(results)
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
