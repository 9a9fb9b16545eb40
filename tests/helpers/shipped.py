"""The repository's own pair sets, arms and questions: what a user puts beside them is not ours to test."""

from functools import partial
from pathlib import Path

import yaml

from projected_grpo.method.pairs import PairSet, load_pairs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "config" / "pairs"
MODES = ("run_tests", "sentinel", "stdout_marker", "file_marker")  # of whose exploits the pair sets are
ARMS = (
    *("vanilla", "measure", "less", "gt_only", "kl", "penalty", "screen", "route_labels", "inoculate"),
    *("recontextualise", "advantage", "steer", "caft", "trusted", "erase", "route", "route_scores", "absorb"),
)
MECHANISM = ["own_mode", "prog_wide", "prog_wider", "paper18"]
FRAMING = ["intent_vs_spec", "honesty_text", "moral", "eval_aware", "philosophical", "null_city"]
SAID = {"honesty_said": "honesty", "city_said": "city"}  # in the corpus's own words, by topic
GENERATED = ["own_mode34", "prog_wide", "paper18"]  # prompts are problems of the generated family
MORE = [*MECHANISM, "own_mode34", *(f"placebo_code_{i:02d}" for i in range(1, 11))]  # at both scales
SHIPPED = [
    *MORE,
    *FRAMING,
    *SAID,
    *(f"placebo_text_{i:02d}" for i in range(1, 11)),
    *(f"leetcode/{name}" for name in MORE),
]


def load(name: str) -> PairSet:
    return load_pairs(FOLDER / f"{name}.yaml")


def questions() -> dict:
    """Return config/questions.yaml without rows on a user's own pair sets or arms."""
    read = partial(yaml.load, Loader=yaml.CSafeLoader)
    bases = read((ROOT / "config/config.yaml").read_text())["bases"]

    def ours(row: dict) -> bool:
        basis = row.get("basis")
        pairs = (bases.get(basis) or {}).get("pairs", basis)
        users = pairs not in SHIPPED and (FOLDER / f"{pairs}.yaml").exists()
        return not users and row.get("arm", "vanilla") in ARMS

    found = read((ROOT / "config/questions.yaml").read_text())
    for question in found.values():
        if "rows" in question:
            question["rows"] = [row for row in question["rows"] if ours(row)]
    return found
