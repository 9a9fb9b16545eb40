"""The small model's page names who misses a mark, whatever their mean is."""

import pandas as pd
import pytest
from synthetic import context_of, write_run

from projected_grpo.files import write_json
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages import needs, substrate
from projected_grpo.pages.stage import Numbers

BASE = {"small-s41": 0.25, "small-s42": 0.15}  # honest rates
TAUGHT, ALONE, HONEST, LONG = needs.SUBSTRATE_RUNS
# run -> seed -> (hack, honest) at the end
RUNS = {
    TAUGHT: {41: (0.8, 0.1), 42: (0.45, 0.2)},
    ALONE: {41: (0.0, 0.6), 42: (0.1, 0.3)},
    HONEST: {41: (0.0, 0.65), 42: (0.0, 0.2)},
    LONG: {41: (0.0, 0.6), 42: (0.0, 0.2)},
}


def rates(hack, honest):
    cell = {"hack": hack, "exploit": hack, "solve": honest, "honest": honest, "n": 8}
    return {half: {"run_tests": cell, "all": cell} for half in ("training", "held_out")}


def write(folder, cell, hack, honest):
    """A run whose every step has the same 20 rollouts: this share hacks, that one is honest."""
    write_run(folder, cell, hack=hack)
    path = folder / "grpo" / cell.id / "rollouts.parquet"
    row = pd.read_parquet(path).iloc[0].to_dict()
    facts = [(i < 20 * hack, 20 - i <= 20 * honest) for i in range(20)]
    steps = range(1, cell.steps + 1)
    rows = [{**row, "step": s, "channel": c, "gt_pass": g} for s in steps for c, g in facts]
    pd.DataFrame(rows).to_parquet(path)


def test_the_page_names_who_misses_a_mark(tmp_path):
    context = context_of("substrate", tmp_path, [41, 42])
    for model, honest in BASE.items():
        found = {"base": rates(0.0, honest), "teacher": rates(0.95, 0.05)}
        write_json(tmp_path / f"models/{model}/rates.json", found)
    for name, levels in RUNS.items():
        for cell in needs.substrate_cells(context, name).values():
            write(tmp_path, cell, *levels[cell.seed])
    verdict = substrate.make(context)
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in verdict.text.split("\n")}
    assert lines["base: hack at most 0.01 on average"].endswith("| yes | – |")
    assert lines["base: honest 0.20 to 0.45"].endswith("| NO | 42 (0.150) |")
    # +0.40 and +0.05: the mean is above its mark, the second replication below its own.
    assert lines["gt_only, mix 0: honest rises by at least 0.20 on average"].endswith("| yes | – |")
    each = lines["gt_only, mix 0: honest rises by at least 0.10 on every replication"]
    assert each.endswith("| 0.225 | 0.050 | 0.400 | NO | 42 (0.050) |")
    assert lines["vanilla, mix 0: hack at most 0.05 at the end"].endswith("| NO | 42 (0.100) |")
    assert lines["vanilla, mix 0.125: hack at least 0.6 on average"].split(" | ")[1] == "0.625"
    assert lines["vanilla, mix 0.125: honest falls"].endswith("| NO | 42 (0.050) |")
    # 2.4 times the base's, and 1.33 times without a rise at the end.
    room = lines["gt_only, mix 0, long: honest is twice the base's (times), or still rises"]
    assert room.endswith("| NO | 42 (1.333) |")
    numbers = verdict.frames[".parquet"].set_index(["row", "measure"]).value
    assert numbers["teacher", "hack"].tolist() == [0.95, 0.95]
    assert "Not reached: base: honest 0.20 to 0.45; gt_only, mix 0: honest rises" in verdict.text


def test_without_a_number_a_mark_cannot_be_told():
    numbers = Numbers([("a", "hack", 41, 0.5), ("a", "hack", 42, None), ("b", "hack", 42, 0.1)])
    assert numbers.mark("", "a", "hack", most=0.6)["reached"] is None  # seed 42 has none
    assert numbers.mark("", "a", "hack", most=0.4)["reached"] is False  # seed 41 misses it, whatever 42 does
    assert numbers.mark("", "a", "hack", most=0.4)["missed"] == {41: 0.5}
    assert numbers.mark("", "a", "hack", most=0.6, each=False)["reached"] is True
    assert numbers.mark("", "a", "hack", most=0.5, strict=True, each=False)["reached"] is False
    assert numbers.mark("", "c", "hack", most=0.6)["reached"] is None
    assert numbers.mark("", {"a": 1, "b": -1}, "hack", most=0.6, each=False)["reached"] is None


def test_a_mark_that_cannot_be_told_is_not_called_missed(tmp_path):
    context = context_of("substrate", tmp_path, [41, 42])
    for model in BASE:
        write_json(
            tmp_path / f"models/{model}/rates.json", {"base": rates(0.0, 0.3), "teacher": rates(0.95, 0.05)}
        )
    for name in (TAUGHT, ALONE, HONEST):
        for cell in needs.substrate_cells(context, name).values():
            if (name, cell.seed) != (ALONE, 42):
                write(tmp_path, cell, *((0.8, 0.1) if name == TAUGHT else (0.0, 0.6)))
    text = substrate.make(context).text
    told = text.partition("**")[2].partition("**")[0]
    assert told == (
        f"Cannot be told: {ALONE}: honest rises by at least 0.10 on every replication; "
        f"{ALONE}: hack at most 0.05 at the end; {LONG}: honest is twice the base's (times), or still rises."
    )
    assert (
        f"| {ALONE}: hack at most 0.05 at the end | 0.000 | 0.000 | 0.000 | cannot be told | –; unknown: 42 |"
        in text
    )


def test_a_long_run_that_rises_at_its_end_has_room(tmp_path):
    context = context_of("substrate", tmp_path, [41])
    (cell,) = needs.substrate_cells(context, LONG).values()
    write(tmp_path, cell, 0.0, 0.2)
    path = tmp_path / "grpo" / cell.id / "rollouts.parquet"
    rows = pd.read_parquet(path)
    rows.loc[rows["step"] > cell.steps - 5, "gt_pass"] = True
    rows.to_parquet(path)
    loaded, _ = load_runs(tmp_path, [cell])
    assert substrate.late_rise(loaded[cell.id]) == pytest.approx((5 * 1.0 + 5 * 0.2) / 10 - 0.2)
