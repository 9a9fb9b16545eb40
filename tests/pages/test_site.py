"""The documentation as a site: it builds without a warning, loads nothing from outside, and every page is reached."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MKDOCS = ROOT / ".venv/docs/bin/mkdocs"
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*>""")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ci,
    pytest.mark.skipif(
        not (ROOT / ".venv/docs/ready").exists(), reason="no .venv/docs here: `make docs` makes it"
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    call = [MKDOCS, "build", "--strict", "--quiet", "--site-dir", folder]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(call, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_nothing_is_loaded_from_outside(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        for found in LOADED.findall(page.read_text(encoding="utf-8")):
            fetches = not found.startswith("<link") or re.search(r"rel=.?(stylesheet|preload|icon)", found)
            assert not (fetches and "//" in found), (page.name, found)


def test_every_page_of_the_navigation_is_there_and_can_be_searched_from_the_disk(site):
    nav = re.findall(
        r"[\w/]+\.md", yaml.safe_dump(yaml.unsafe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    )
    assert "add_a_lever.md" in nav and "results.md" in nav
    searched = (site / "search/search_index.js").read_text(encoding="utf-8")
    for name in nav:
        page = name.replace(".md", ".html")
        assert (site / page).exists() and f'"{page}' in searched, page
    assert "javascripts/iframe-worker.js" in (site / "index.html").read_text()
    assert (site / "javascripts/iframe-worker.js").exists()
