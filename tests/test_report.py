"""The report: self-contained, escaped, linked, and honest about what is missing. Chromium where it is installed."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import yaml
from synthetic import ROOT, write_run

from projected_grpo.analysis import prose, publish
from projected_grpo.analysis.figures import of_question
from projected_grpo.analysis.markdown import to_markdown
from projected_grpo.analysis.matrix import matrix, read_shares
from projected_grpo.analysis.questions import read_questions
from projected_grpo.analysis.report import build, write_report
from projected_grpo.analysis.style import to_svg
from projected_grpo.analysis.table import make_table, to_frame
from projected_grpo.errors import UserError
from projected_grpo.files import write_json, write_text

SHOWN = ("Q2", "Q10", "Q12", "aa")
EVIL = "<img src=x onerror=alert(1)> `<b>` {{ 7*7 }}"


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A results tree of four questions at two seeds, with figures, pages of other stages and cards."""
    root = tmp_path_factory.mktemp("made")
    asked = yaml.safe_load((ROOT / "config/questions.yaml").read_text())
    (root / "questions.yaml").write_text(yaml.safe_dump({name: asked[name] for name in SHOWN}))
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    config |= {"seeds": 2, "results": str(root / "results"), "questions": str(root / "questions.yaml")}
    results = root / "results"
    for question in read_questions(config).values():
        for cell in question.cells:
            write_run(results, cell)
        if question.kind == "table":
            table = make_table(question, results)
            write_text(results / f"{question.name}.md", to_markdown(table))
            to_frame(table).to_parquet(results / f"{question.name}.parquet")
            for name, (drawing, _) in of_question(table, config).items():
                write_text(results / "figures" / question.name / f"{name}.svg", to_svg(drawing))
            captions = {name: caption for name, (_, caption) in of_question(table, config).items()}
            write_json(results / "figures" / question.name / "captions.json", captions)
    write_text(
        results / "substrate.md", f"# Model\n\nText with {EVIL}.\n\n| a | b |\n| --- | ---: |\n| x | 0.5 |\n"
    )
    cards = pd.DataFrame([{"kind": "failure_pattern", "text": EVIL, "trust": 0.7}])
    write_text(results / "self_taught.md", "# Critic\n\nError before and after.\n")
    (results / "self_taught").mkdir()
    cards.to_parquet(results / "self_taught" / "cards.parquet")
    return config


@pytest.fixture(scope="module")
def page(config):
    return build(config, Path(config["results"]).parent / "reports" / "paper.html")


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
    assert not outline.sources and outline.tags.count("script") == 1 and "iframe" not in outline.tags
    assert "http://" not in re.sub(r'xmlns(:xlink)?="[^"]+"', "", page) and "https://" not in page
    local = [link[1:] for link in outline.links if link.startswith("#")]
    assert set(local) <= set(outline.ids) and len(local) > 100
    others = [link for link in outline.links if not link.startswith("#")]
    assert others and all(link.startswith("../") or "logs" in link for link in others)


def test_model_output_is_escaped(page):
    outline = Outline(page)
    assert not outline.handlers and "img" not in outline.tags
    assert "<script>alert" not in page and "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page and "{{ 7*7 }}" in page


def test_numbers_stand_in_the_page_and_lead_to_their_runs(page, config):
    frame = pd.read_parquet(Path(config["results"]) / "Q10.parquet")
    for number, row in frame.iterrows():
        assert f'<a class="n" href="#Q10-row{number}">{row["hack"]:.3f}</a>' in page
        for cell in row["cells"]:
            assert f'id="run-{cell}"' in page
    assert "3f9a2c0123456789" in page and "torch 2.13.0" in page
    assert "&#34;mix&#34;: 0.125" in page and "results/logs/grpo/vanilla-m0.125-s41.log" in page


def test_first_screen_answers_in_three_sentences(page):
    top = page[: page.index('id="overview"')]
    assert top.count("<li><a href=") == 3 and top.count("<svg") == 3
    assert "arms lower the hack rate" in top


def test_other_stages_pages_and_examples_are_there(page):
    for anchor in ("substrate", "self-taught", "rollouts", "runs", "aa"):
        assert f'<section id="{anchor}"' in page
    assert 'class="rollout" data-kind="hack"' in page and "Example cards" in page


def test_missing_runs_and_pages_are_named(tmp_path, config):
    empty = config | {"results": str(tmp_path)}
    page = build(empty, tmp_path / "paper.html")
    assert "vanilla-m0.5-s41</code> (missing)" in page and "No complete run." in page


def test_damaged_rollouts_are_an_error_with_their_path(tmp_path, config):
    shutil.copytree(config["results"], tmp_path / "results")
    path = tmp_path / "results/grpo/vanilla-m0.5-s41/rollouts.parquet"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"vanilla-m0\.5-s41/rollouts\.parquet"):
        build(config | {"results": str(tmp_path / "results")}, tmp_path / "paper.html")


def test_prose_escapes_and_renders():
    out = prose.render(
        "# A\n\nx **b** `<i>` <u> [t](javascript:alert(1))\n- one\n- two\n\n| h | n |\n|---|---:|\n| `a` | 1 |"
    )
    block = prose.render("<pre>a &lt;b&gt;\n\n<i></pre>\n\nnext")
    assert block == "<pre>a &lt;b&gt;\n\n&lt;i&gt;</pre>\n<p>next</p>"
    assert "<h3>A</h3>" in out and "<strong>b</strong>" in out and "<code>&lt;i&gt;</code>" in out
    assert "&lt;u&gt;" in out and "javascript" not in out and out.count("<li>") == 2
    assert '<td class="num">1</td>' in out


def test_publish_writes_a_snapshot(config, tmp_path):
    write_text(Path(config["results"]) / "aa.md", "# A/A. Self\n\nasks\n")
    publish.write_snapshot(
        Path(config["results"]), tmp_path, {"Date": "2026-01-01", "Machine": "2 cores", "Commit": "abc"}
    )
    text = (tmp_path / "results.md").read_text()
    assert "2026-01-01" in text and "abc" in text and "## Q10." in text
    for figure in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / figure).exists()
    with pytest.raises(UserError, match="no question table"):
        publish.write_snapshot(tmp_path / "none", tmp_path, {})


CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_page_loads_in_chromium_without_errors_and_fits_a_phone(config, tmp_path):
    write_report(config, tmp_path / "paper.html")
    probe = tmp_path / "probe.html"
    # A frame of 390 px is a phone's viewport; the width of its document is read from outside.
    probe.write_text(
        '<iframe id="f" src="paper.html" width="390" height="800"></iframe><script>f.onload = () => '
        "document.title = JSON.stringify([f.contentDocument.documentElement.scrollWidth, "
        "f.contentDocument.querySelector('#filters').hidden])</script>"
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
    width, filters_hidden = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1])
    assert width <= 390 and filters_hidden is False


def test_exploit_matrix_is_read_from_the_graders_page():
    head = "# T\n\n| submission | a | b | strict oracle |\n|---|---|---|---|\n"
    page = head + "| x | 6/6 | 0/6 | 0/12 |\n| y | 0/6 | 3/6 | 0/12 |\n"
    rows, columns, shares = read_shares(page)
    assert (rows, columns) == (["x", "y"], ["a", "b", "strict oracle"])
    assert shares.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]]
    assert ">0.50<" in to_svg(matrix(page)) and matrix("# no table") is None
