"""Packages that `make optional` puts beside the environment, behind all of its own."""

import importlib.util
import sys
from pathlib import Path

import pytest

PACKAGES = Path(sys.prefix, "optional")
if PACKAGES.is_dir() and str(PACKAGES) not in sys.path:
    sys.path.append(str(PACKAGES))


def need(name):
    """Return the mark of a file of tests that needs a package of these."""
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing, reason=f"needs {name}: make optional")
