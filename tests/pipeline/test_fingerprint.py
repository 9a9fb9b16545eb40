"""The code hash behind exact invalidation: changes with the code a script runs, with nothing else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from projected_grpo import fingerprint as module
from projected_grpo.errors import UserError
from projected_grpo.fingerprint import fingerprint


@pytest.fixture
def house(tmp_path):
    """A small package `pkg` of two floors, a data file and three scripts."""
    root = tmp_path / "pkg"
    files = {
        "pkg/__init__.py": '"""Doc."""\n',
        "pkg/low/__init__.py": "from pkg.low.a import f\n",
        "pkg/low/a.py": "def f(x):\n    return x + 1\n",
        "pkg/low/b.py": "def g(x):\n    from . import c\n    return c.h(x)\n",
        "pkg/low/c.py": "def h(x):\n    '''Doc.'''\n    return x\n",
        "pkg/high.py": 'from pathlib import Path\nDATA = Path("table.csv")\nPAGE = "templates/page.html"\n',
        "pkg/table.csv": "1,2\n",
        "pkg/templates/page.html": "<p>\n",
        "pkg/server.py": 'import sys\nARGV = [sys.executable, "-m", "pkg.low.c"]\n',
        "scripts/shared.py": "K = 1\n",
        "scripts/uses_a.py": "from pkg.low.a import f\nprint(f(1))\n",
        "scripts/uses_f.py": "from pkg.low import f\nprint(f(1))\n",
        "scripts/uses_b.py": "import shared\nimport pkg.low.b\nprint(pkg.low.b.g(shared.K))\n",
        "scripts/uses_data.py": "from pkg import high, server\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return root


SCRIPTS = ("uses_a", "uses_f", "uses_b", "uses_data")


def prints(root):
    module._neighbours.cache_clear()
    module._needs.cache_clear()
    return {name: fingerprint(root.parent / "scripts" / f"{name}.py", root=root) for name in SCRIPTS}


def changed(root, name, text):
    before = prints(root)
    (root.parent / name).write_text(text)
    after = prints(root)
    return {key for key in SCRIPTS if before[key] != after[key]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pkg/low/a.py", "# why\ndef f(x):\n    return (x+1)  # plus one\n"),
        ("pkg/low/a.py", 'def f(x):\n    """Add one."""\n\n    return x + 1\n'),
        ("pkg/low/a.py", "def f(x: int) -> int:\n    return x + 1\n"),
        ("pkg/low/a.py", "from typing import Any\ndef f(x: Any):\n    y: int\n    return x + 1\n"),
        ("scripts/shared.py", "K: int = 1\n"),
        ("pkg/low/c.py", "def h(x):\n    return x\n"),
        ("pkg/__init__.py", '"""Another doc."""\n# and a comment\n'),
        ("scripts/uses_a.py", '"""New."""\nfrom pkg.low.a import f\n\nprint(f(\n    1\n))\n'),
    ],
)
def test_comments_docstrings_formatting_and_types_change_nothing(house, name, text):
    assert changed(house, name, text) == set()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pkg/low/a.py", "def f(x):\n    return x + 2\n", set(SCRIPTS)),
        ("pkg/low/b.py", "def g(x):\n    from . import c\n    return c.h(x) + 1\n", {"uses_b"}),
        ("pkg/low/c.py", "def h(x):\n    return -x\n", {"uses_b", "uses_data"}),
        (
            "pkg/low/__init__.py",
            "from pkg.low.a import f\nX = 1\n",
            {"uses_a", "uses_f", "uses_b", "uses_data"},
        ),
        ("pkg/high.py", 'DATA = "table.csv"\n', {"uses_data"}),
        ("pkg/server.py", "class Row:\n    n: int = 1\n", {"uses_data"}),
        ("pkg/table.csv", "1,3\n", {"uses_data"}),
        ("pkg/templates/page.html", "<b>\n", {"uses_data"}),
        ("scripts/shared.py", "K = 2\n", {"uses_b"}),
        ("scripts/uses_a.py", "from pkg.low.a import f\nprint(f(2))\n", {"uses_a"}),
    ],
)
def test_a_real_edit_changes_exactly_the_scripts_that_import_it(house, name, text, expected):
    assert changed(house, name, text) == expected


def test_the_type_of_a_field_is_no_mere_annotation(house):
    (house / "high.py").write_text("class Row:\n    n: int = 1\n")
    assert changed(house, "pkg/high.py", "class Row:\n    n: float = 1\n") == {"uses_data"}


def test_values_that_look_alike_are_told_apart(house):
    """1, True, 1.0 and "1" are equal or print alike; an edit from one to the other is real."""
    seen = set()
    for literal in ("1", "True", "1.0", "'1'", "None", "b'1'", "-1", "[1]", "(1,)"):
        (house / "low" / "c.py").write_text(f"def h(x):\n    return {literal}\n")
        seen.add(prints(house)["uses_b"])
    assert len(seen) == 9


def test_what_is_imported_for_types_alone_is_not_hashed(house):
    (house / "high.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.low.b import g\nDATA = 'table.csv'\n"
    )
    assert changed(house, "pkg/low/b.py", "def g(x):\n    return 5 * x\n") == {"uses_b"}
    assert house / "low" / "b.py" not in module.closure(house / "high.py", house)


def test_a_clone_elsewhere_has_the_same_fingerprint(house, tmp_path_factory):
    other = tmp_path_factory.mktemp("a clone")
    shutil.copytree(house.parent, other / "copy")
    assert prints(house) == prints(other / "copy" / "pkg")


def test_broken_code_is_named_in_one_line(house):
    (house / "low" / "a.py").write_text("def f(:\n")
    with pytest.raises(UserError, match=r"a\.py:1: no valid Python"):
        prints(house)
    with pytest.raises(UserError, match=r"nowhere\.py: cannot be read"):
        fingerprint(house / "nowhere.py", root=house)


def test_every_module_that_python_loads_is_hashed(tmp_path):
    """Against Python itself: what a plain import loads from the package is in the closure."""
    sources = sorted(path for path in module.ROOT.rglob("*.py") if path.name != "__init__.py")
    # Loaded by name, and hashed where a rule names them (test_dag).
    named = [*(module.ROOT / "arms").glob("[a-z]*.py")]
    named += (module.ROOT / "environment" / "families").glob("*/__init__.py")
    by_name = set().union(*map(module.closure, named))
    for source in sources[:: max(1, len(sources) // 5)]:
        name = ".".join(source.relative_to(module.ROOT.parent).with_suffix("").parts)
        code = f"""import sys, {name}
print(*[m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "projected_grpo" and m.__file__], sep="\\n")"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        script = tmp_path / "script.py"
        script.write_text(f"import {name}\n")
        assert {Path(file) for file in done.stdout.splitlines()} <= module.closure(script) | by_name


def test_every_data_file_of_the_package_is_named_by_a_module():
    """A data file that no module names would be in no fingerprint."""
    for init in [*module.ROOT.rglob("__init__.py")]:
        modules = [path for path in init.parent.glob("*.py")]
        reached = {path for m in modules for path in module.closure(m)}
        for _, path in module._neighbours(init.parent):
            quiet = path.suffix == ".py" or path.name == "py.typed"  # a marker for type checkers alone
            assert quiet or path in reached, f"{path} is named by no module beside it"


def test_all_scripts_are_hashed_from_one_parse_of_each_file():
    """At parse time of every call: a file that many scripts import is parsed once, then all comes from memory."""
    scripts = sorted((module.ROOT.parents[1] / "workflow" / "scripts").glob("*.py"))
    module._parse.cache_clear()
    module._needs.cache_clear()
    first = [fingerprint(script) for script in scripts]
    parsed = module._parse.cache_info().misses
    assert parsed <= len({path for script in scripts for path in module.closure(script)})
    assert [fingerprint(script) for script in scripts] == first
    assert module._parse.cache_info().misses == parsed
