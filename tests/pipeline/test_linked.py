"""Results trees with links in them: a folder on another disk, a link elsewhere to one run."""

import pytest

from projected_grpo import records
from projected_grpo.errors import UserError
from projected_grpo.linked import check_read, tree_of

RUN = "grpo/vanilla-m0-s41"


@pytest.fixture(params=["grpo", RUN])
def tree(request, tmp_path):
    """A tree with one run, whose folder or the one above it lies elsewhere."""
    tree, kept = tmp_path / "results", tmp_path / "disk" / "a" / "kept"
    for folder in (tree / RUN, tree / "models", kept.parent):
        folder.mkdir(parents=True)
    (tree / RUN / "run.json").write_text("{}")
    records.write({"rule": "grpo"}, [str(tree / RUN / "run.json")], str(tree))
    (tree / request.param).rename(kept)
    (tree / request.param).symlink_to(kept)
    return tree


def test_a_damaged_file_behind_a_link_is_refused(tree):
    file = tree / RUN / "run.json"
    check_read(file)
    file.write_text('{"edited": 1}')
    with pytest.raises(UserError, match=r"run\.json: damaged or edited, not what rule grpo wrote"):
        check_read(file)


def test_a_run_belongs_to_the_tree_that_it_is_named_in_or_that_its_link_leads_to(tree, tmp_path):
    assert tree_of(tree / RUN) == tree
    whole = tmp_path / "whole"
    (whole / "models").mkdir(parents=True)
    (whole / RUN).mkdir(parents=True)
    (tmp_path / "best").symlink_to(whole / RUN)
    assert tree_of(tmp_path / "best") == whole
