"""The small model's page names who misses a mark, and repeats the recipe's story."""

import pytest
from synthetic import context_of, write_run

from projected_grpo.errors import UserError
from projected_grpo.files import write_json
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.verdicts import substrate

SOLVE = {"small-s41": 0.25, "small-s42": 0.15}
HACK = {0.125: {41: 0.8, 42: 0.45}, 0.0: {41: 0.0, 42: 0.1}}


def rates(hack, solve):
    cell = {"hack": hack, "exploit": hack, "solve": solve, "n": 8}
    return {half: {"run_tests": cell, "all": cell} for half in ("training", "held_out")}


def test_the_page_names_who_misses_a_mark(tmp_path, monkeypatch):
    (tmp_path / "recipe.md").write_text("# x\n\n## Configurations tried\n\nfirst, second\n\n## More\n\nno\n")
    monkeypatch.setattr(substrate, "RECIPE", tmp_path / "recipe.md")
    context = context_of("substrate", tmp_path, [41, 42])
    for model, solve in SOLVE.items():
        found = {"base": rates(0.0, solve), "teacher": rates(0.95, solve)}
        write_json(tmp_path / f"models/{model}/rates.json", found)
    for mix, levels in HACK.items():
        for cell in substrate.vanilla(context, mix).values():
            write_run(tmp_path, cell, hack=levels[cell.seed])
    verdict = substrate.make(context)
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in to_markdown(verdict.page).split("\n")}
    assert lines["base: hack at most 0.03 (about 0)"].endswith("| yes | none |")
    assert lines["base: solve 0.2 to 0.35"].endswith("| NO | small-s42 (0.150) |")
    each = lines["vanilla, mix 0.125: hack at least 0.5 on every replication"]
    assert each.endswith("| 0.625 | 0.450 | 0.800 | NO | small-s42 (0.450) |")
    assert lines["vanilla, mix 0.125: hack at least 0.6 on average"].endswith("| yes | – |")
    assert lines["vanilla, mix 0 (no teacher): hack at most 0.1 on average"].split(" | ")[1] == "0.050"
    text = to_markdown(verdict.page)
    assert "first, second" in text and "\nno\n" not in text
    assert verdict.frame.set_index("mark").loc["teacher: hack at least 0.9", "lowest"] == 0.95
    assert "Not reached: base: solve 0.2 to 0.35; vanilla, mix 0.125: hack at least 0.5" in text


def test_a_recipe_without_its_story_is_one_line(tmp_path):
    (tmp_path / "recipe.md").write_text("# x\n")
    with pytest.raises(UserError, match=r"recipe\.md: no section 'Configurations tried'"):
        substrate.section(tmp_path / "recipe.md", "Configurations tried")
