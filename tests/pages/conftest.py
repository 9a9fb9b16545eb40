"""The tree of made-up pages that tests of report and publishing show."""

import pytest
from results_tree import make_tree


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return make_tree(tmp_path_factory.mktemp("made"))
