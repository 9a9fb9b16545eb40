"""The hashes that a plan takes from the plan before: those that it would find anew, or none."""

import json

import pytest

from projected_grpo import code_hashes as module
from projected_grpo import fingerprint as prints
from projected_grpo.code_hashes import CodeHashes


@pytest.fixture
def house(tmp_path):
    """A package `pkg` with a data file, and two scripts of which one finds a neighbour."""
    files = {
        "pkg/__init__.py": "",
        "pkg/a.py": "def f(x):\n    return x + 1\n",
        "pkg/b.py": 'DATA = "table.csv"\n',
        "pkg/table.csv": "1,2\n",
        "pkg/loaded.py": "K = 1\n",
        "scripts/shared.py": "K = 1\n",
        "scripts/one.py": "from pkg.a import f\n",
        "scripts/two.py": "import shared\nfrom pkg import b\n",
        "own/arm.py": "K = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def plan(house, keep=True):
    """Return the hashes of one plan, and how many of them it found anew."""
    anew = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fingerprint", lambda *a, **k: anew.append(a) or prints.fingerprint(*a, **k))
        hashes = CodeHashes(house / "scripts", house / "code.json", house / "pkg")
        asked = [("one.py", ()), ("two.py", ()), ("one.py", [house / "pkg/loaded.py"])]
        found = [hashes.of(script, sources) for script, sources in asked]
        if keep:
            hashes.keep()
    return found, len(anew)


def fresh(house):
    prints._neighbours.cache_clear()
    prints._needs.cache_clear()
    (house / "code.json").unlink(missing_ok=True)
    return plan(house, keep=False)[0]


def test_a_second_plan_reads_no_tree_and_finds_the_same(house):
    first = plan(house)
    assert first[1] == 3 and plan(house) == (first[0], 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pkg/a.py", "def f(x):\n    return x + 2\n"),
        ("pkg/table.csv", "1,3\n"),
        ("pkg/loaded.py", "K = 2\n"),
        ("scripts/shared.py", "K = 2\n"),
        ("scripts/one.py", "from pkg.a import f\nf(1)\n"),
        ("pkg/shared.py", "K = 1\n"),
        ("scripts/pkg.py", "K = 1\n"),
    ],
)
def test_an_edit_is_found_and_so_is_its_undoing(house, name, text):
    before = plan(house)[0]
    file = house / name
    content = file.read_text() if file.exists() else None
    file.write_text(text)
    edited = plan(house)[0]
    assert edited == fresh(house)
    assert (edited != before) == (content is not None)
    file.unlink() if content is None else file.write_text(content)
    assert plan(house)[0] == before == fresh(house)


@pytest.mark.parametrize("damage", ["", "[]", "null", '{"of": 1}', "cut", "flipped"])
def test_what_is_damaged_is_not_used(house, damage):
    before, kept = plan(house)[0], house / "code.json"
    text = kept.read_text()
    digit = json.loads(text)["hashes"]["one.py"][0]
    flipped = text.replace(f'"one.py": "{digit}', '"one.py": "' + ("0" if digit != "0" else "1"))
    kept.write_text({"cut": text[:-9], "flipped": flipped}.get(damage, damage))
    assert plan(house) == (before, 3)


def test_code_that_is_edited_while_a_plan_is_made_is_not_kept(house):
    hashes = CodeHashes(house / "scripts", house / "code.json", house / "pkg")
    (house / "pkg/a.py").write_text("def f(x):\n    return x + 2\n")
    hashes.of("one.py")
    hashes.keep()
    assert not (house / "code.json").exists()


def test_somebodys_own_file_is_read_by_every_plan(house):
    found = set()
    for number in (1, 2):
        (house / "own/arm.py").write_text(f"K = {number}\n")
        hashes = CodeHashes(house / "scripts", house / "code.json", house / "pkg")
        found.add(hashes.of("one.py", [house / "own/arm.py"]))
        hashes.keep()
    assert len(found) == 2 and not (house / "code.json").exists()
