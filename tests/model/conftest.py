"""A given base, and the same behind the door."""

import pytest
from given import brought, checkpoint


@pytest.fixture
def base(tmp_path):
    checkpoint(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def canonical(base):
    return brought(base, "canonical")
