"""The smoke DAG, run once for all tests that need a finished pipeline."""

import os
import shutil
import signal

import pytest
from broken import Folder
from filelock import FileLock
from workspace import TARGETS, borrow_environment, clone, snakemake

# A shell that starts the tests in its background makes them, and all they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONG = ("test_tutorial.py", "test_paper_scale.py", "test_crash.py")  # a minute and more each


def pytest_collection_modifyitems(items):
    """Put the tests of a cluster and of a server first, then `LONG`: begun last, they would run beside nothing."""
    items.sort(key=lambda item: (item.get_closest_marker("ci") is None, item.path.name not in LONG))


@pytest.fixture
def folder(tmp_path):
    """A copy of the default config in which single keys can be changed."""
    return Folder(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, worker_id):
    """A copy of the repository with the smoke report made: made once for a test run, a copy for each file of tests.

    Tests edit files in their copy and run further targets there, which the next file must not see. `SMOKE_TREE` names a
    tree where the report was made a moment ago (`.ci/run`): it is taken instead.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base / "shared" if worker_id == "master" else base.parent / "shared"
    with FileLock(f"{shared}.lock"):
        if not (shared / "done").exists():
            tree = shared / "a path with spaces"
            if given := os.environ.get("SMOKE_TREE"):
                shutil.copytree(given, tree, ignore=shutil.ignore_patterns(".venv"))
            else:
                borrow_environment(clone(tree))
                snakemake(tree, "--resources", "gpu=1", *TARGETS, wrapper=True)
                shutil.rmtree(tree / ".venv")  # it belongs to that place
            (shared / "done").touch()
    own = tmp_path_factory.mktemp("copies") / "another path with spaces"
    shutil.copytree(shared / "a path with spaces", own)
    yield own
    shutil.rmtree(own)
