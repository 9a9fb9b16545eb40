"""docs/add_a_lever.md: the lever of the page is one, effective in its own mode alone."""

import re
from pathlib import Path

from projected_grpo.environment import diagonal
from projected_grpo.environment.levers import LEVERS, NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs/add_a_lever.md"


def test_the_lever_of_the_page_is_effective_in_its_own_mode_alone(monkeypatch):
    made = {"__name__": "last_line"}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1], made)
    lever = made["LEVER"]
    monkeypatch.setitem(LEVERS, lever.name, lever)
    monkeypatch.setitem(NAMES, lever.name, (lever.name,))
    monkeypatch.setattr(diagonal, "LOOPHOLES", ("stdout_marker", lever.name))
    found, _ = diagonal.matrix("oneliners")
    assert found[lever.name][lever.name][0] > 0
    diagonal.check_diagonal(found)
