"""The graph of rules: read from records, drawn below what is read, cycles cut where the order of ends says."""

import re

from projected_grpo.files import write_json
from projected_grpo.pages import graph
from projected_grpo.records import FOLDER, seal


def record(results, rule, number, inputs, ended):
    """Write a job's record; its one output is named as the rule and its number."""
    value = {"rule": rule, "wildcards": {"n": str(number)}, "inputs": [[path, "0"] for path in inputs]}
    value |= {"outputs": {f"{rule}/{number}": "0"}, "seconds": 30.0, "finished": ended}
    write_json(results / FOLDER / f"{rule}-{number}.json", seal(value))


def test_records_become_layers_without_implied_edges_and_with_dashed_cycles(tmp_path):
    record(tmp_path, "base", 1, [], 1.0)
    record(tmp_path, "basis", 1, ["base/1"], 2.0)
    record(tmp_path, "grpo", 1, ["base/1", "basis/1"], 3.0)
    record(tmp_path, "grpo", 2, ["base/1", "basis"], 5.0)  # a folder stands for what lies in it
    record(tmp_path, "evaluator", 1, ["grpo/1", "given/elsewhere"], 4.0)
    record(tmp_path, "basis", 2, ["base/1", "evaluator/1"], 4.5)
    found = graph.made(tmp_path)
    assert found.jobs == {"base": 1, "basis": 2, "grpo": 2, "evaluator": 1} and found.seconds["grpo"] == 60
    assert graph.in_turn(found) == {("basis", "evaluator")}
    cut = {rule: own - {"evaluator"} for rule, own in found.reads.items()}
    assert graph.reduced(cut) == {"base": set(), "basis": {"base"}, "grpo": {"basis"}, "evaluator": {"grpo"}}
    assert graph.layers(cut) == [["base"], ["basis"], ["grpo"], ["evaluator"]]
    svg = graph.draw(found)
    assert svg.count("<rect") == 4 and svg.count('<path class=""') == 3 and svg.count('class="again"') == 1
    heights = dict(
        reversed(pair) for pair in re.findall(r'translate\(\d+,(\d+)\)"><rect.*?<text[^>]*>(\w+)<', svg)
    )
    assert [int(heights[rule]) for rule in ("base", "basis", "grpo", "evaluator")] == [0, 72, 144, 216]


def test_nothing_recorded_draws_nothing(tmp_path):
    assert graph.draw(graph.made(tmp_path)) == ""
