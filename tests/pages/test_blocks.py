"""Blocks and their two renderers: what is stored is what is read, nothing becomes markup by its content."""

import subprocess

import pytest
from synthetic import plain_grid

from projected_grpo.pages import markdown
from projected_grpo.pages.blocks import (
    KINDS,
    Cell,
    Details,
    Figure,
    Foreign,
    Heading,
    Listing,
    Page,
    Paragraph,
    Pre,
    Source,
    grid,
    read_page,
    write_page,
)
from projected_grpo.pages.html import of_page
from projected_grpo.pages.text import short

EVIL = "<img src=x onerror=alert(1)>"
TABLE = plain_grid(
    ("row", "n"), [["a|b", Cell("0.5", "0.1", strong=True)], ["c", Cell("-0.1", "[-0.2, +0.0]")]]
)
PAGE = Page(
    name="probe/uat",
    title="T. Title",
    menu="T",
    asks="asks?",
    blocks=(
        Heading("Head"),
        Paragraph("text `a|b` and `other`", "Lead."),
        Listing(("one", EVIL)),
        TABLE,
        Figure("effects", "a caption"),
        Details("more", (Pre(f"{EVIL}\n\n`x`"),)),
        Foreign(f"| h |\n| --- |\n| **b** |\n\n{EVIL} [t](javascript:alert(1))"),
    ),
    answer=(Paragraph("yes"),),
    sources=(Source("a|b", cells=("run-1",)), Source("c", files=("logs/x",))),
    left_out=(("run-2", "missing"),),
)


def test_a_stored_page_is_the_page(tmp_path):
    write_page(PAGE, tmp_path / "page.json")
    assert read_page(tmp_path / "page.json") == PAGE


def test_every_kind_of_block_is_rendered_by_both(tmp_path):
    shown = {type(block).__name__ for block in PAGE.blocks} | {"Pre"}
    assert shown == set(KINDS) - {"Cell", "Source", "Square", "Page"}
    for render in (lambda b: markdown.render(b, ""), of_page(PAGE, tmp_path).render):
        with pytest.raises(TypeError, match="is no block"):
            render((Source("a"),))


def test_markdown_has_the_answer_first_and_figures_as_seen_from_the_page():
    text = markdown.to_markdown(PAGE)
    places = [
        text.index(part)
        for part in ("# T. Title", "asks?", "**Answer.**", "## Head", "Left out:", "<!-- sources")
    ]
    assert places == sorted(places) and text.endswith("-->\n")
    assert (
        "| a\\|b | 0.5 (0.1) |" in text and "| c | -0.1 [-0.2, +0.0] |" in text and "| --- | ---: |" in text
    )
    assert "](../figures/probe/uat/effects.svg)" in text and "`run-2` (missing)" in text
    assert "a|b: run-1\nc: logs/x" in text and "<pre>&lt;img" in text


def test_html_escapes_and_leads_to_what_was_run(tmp_path):
    folder = tmp_path / "figures/probe/uat"
    folder.mkdir(parents=True)
    (folder / "effects.svg").write_text('<svg viewBox="0 0 1 1"><g id="x"/><use href="#x"/></svg>')
    text = of_page(PAGE, tmp_path).render(PAGE.blocks)
    assert "<img" not in text and "javascript" not in text.replace("javascript:alert(1))", "")
    assert '<a class="n" href="#probe-uat-row0"><code>a|b</code></a> and <code>other</code>' in text
    linked = '<td class="strong"><a class="n" href="#probe-uat-row0">0.5<small>0.1</small></a></td>'
    assert linked in text and '<th scope="row">c</th>' in text
    assert (
        '<g id="probe-uat-effects-0" />' in text
        and 'href="#probe-uat-effects-0"' in text
        and "<figcaption>a caption</figcaption>" in text
    )
    assert "<strong>b</strong>" in text and "<summary>more</summary>" in text


def test_rows_without_a_source_lead_to_the_pages_files_where_it_says_so(tmp_path):
    page = Page("p", "P", "P", "", (), sources=(Source("files", files=("x",)),), default=True)
    assert 'href="#p-row0">1</a>' in of_page(page, tmp_path).render((plain_grid(("a", "n"), [["z", "1"]]),))


def test_a_grid_is_made_of_what_it_is_told_about_rows():
    made = grid([1, 2], {"n": lambda n: n, "twice": lambda n: Cell(str(2 * n), "x")}, title="t")
    assert (made.head, made.title) == (("n", "twice"), "t")
    assert made.rows == ((Cell("1"), Cell("2", "x")), (Cell("2"), Cell("4", "x")))


def test_ids_that_differ_in_their_seed_alone_are_one_name_that_a_shell_expands():
    ids = ["b-m0-s3", "a-m0.5-s41", "a-m0.5-s42", "a-m0.5-s44", "b-m0-s4", "run-2", "c-s7", "small-3M-s41"]
    expanded = [subprocess.check_output(["bash", "-c", f"echo {name}"], text=True) for name in short(ids)]
    assert [len(names.split()) for names in expanded] == [2, 3, 1, 1, 1]
    assert sorted("".join(expanded).split()) == sorted(ids)
