"""The bases a config offers, and whether pair sets and knobs fit together."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from projected_grpo.cells.config import Config
from projected_grpo.cells.knobs import GENERATED_PAIRS
from projected_grpo.cells.schema import load_schema
from projected_grpo.errors import nearest
from projected_grpo.method.pairs import PairSet, load_pairs

Fail = Callable[[list[str | int], str], NoReturn]  # (key path, problem) -> UserError


def pair_files(config: dict) -> dict[str, Path]:
    """Every pair set by name; of several folders the first that has a set counts."""
    folders = [config["pairs"]] if isinstance(config["pairs"], str) else config["pairs"]
    found = {path.stem: path for folder in reversed(folders) for path in Path(folder).glob("*.yaml")}
    return dict(sorted(found.items()))


def axes(knobs: dict) -> int:
    """The number of axes that a basis stores at most."""
    return 1 if knobs["method"] == "mean_diff" else knobs["top_k"]


class Bases:
    """The named bases and the pair sets, each a basis under its own name."""

    def __init__(self, config: dict, fail: Fail):
        self.typed = Config.model_validate(config)
        self.config, self.fail = config, fail  # `fail` names the config file that holds a key, and raises
        self.named = config.get("bases", {})
        self.files = pair_files(config)
        self.sets = [*self.files, *GENERATED_PAIRS]
        self.names = sorted({*self.named, *self.sets})
        self._loaded: dict[str, PairSet] = {}

    def check_name(self, name: str, keys: list[str | int], fail: Fail) -> None:
        """`name` is a basis or a pair set, and that one is sound; `fail` says that `keys` name none."""
        if name not in self.names:
            fail(keys, f"{name!r} is no basis and no pair set; {nearest(name, self.names)}")
        names = load_schema("config")["properties"]["bases"]["propertyNames"]  # a set's name is its file's
        if not re.search(names["pattern"], name):
            fail(keys, f"{name!r}, allowed: {names['description']}")
        if name not in self.named:  # the named ones have been checked under `bases`
            self.check(name)

    def check(self, basis: str) -> None:
        """The pair set of `basis` exists and loads, and every number fits the others."""
        knobs = self.typed.knobs(basis).model_dump()
        own = self.named.get(basis, {})

        def wrong(key: str, problem: str) -> NoReturn:
            inherited = key not in own and key in self.config["basis"]
            self.fail(["basis", key] if inherited else ["bases", basis, key], f"{problem} (basis {basis!r})")

        n_pairs, n_heldout, top_k = knobs["n_pairs"], knobs["n_heldout"], knobs["top_k"]
        used = n_pairs - n_heldout
        if knobs["pairs"] not in self.sets:
            wrong("pairs", f"no pair set {knobs['pairs']!r}; {nearest(knobs['pairs'], self.sets)}")
        self._check_number_of_pairs(knobs, wrong)
        if used < 1:
            wrong("n_heldout", f"{n_heldout}, allowed: 0 to {n_pairs - 1}, less than n_pairs")
        if knobs["method"] == "svd" and top_k > used:
            wrong("top_k", f"{top_k}, allowed: 1 to {used}, the pairs used: n_pairs - n_heldout")
        if knobs["k"] > axes(knobs):
            why = "all that mean_diff has" if knobs["method"] == "mean_diff" else "top_k, the axes stored"
            wrong("k", f"{knobs['k']}, allowed: 1 to {axes(knobs)}, {why}")

    def _check_number_of_pairs(self, knobs: dict, wrong: Callable[[str, str], NoReturn]) -> None:
        name, tag = knobs["pairs"], knobs["without_tag"]
        if name in GENERATED_PAIRS:
            return
        pairs = self._load(name)
        if tag and tag not in pairs.tags:
            wrong("without_tag", f"{tag!r} is no tag of {self.files[name]}; {nearest(tag, pairs.tags)}")
        left = len(pairs.without_tag(tag)) if tag else len(pairs)
        if knobs["n_pairs"] > left:
            without = f" without tag {tag}" if tag else ""
            wrong(
                "n_pairs",
                f"{knobs['n_pairs']}, allowed: 1 to {left}, the pairs in {self.files[name]}{without}",
            )

    def _load(self, name: str) -> PairSet:
        if name not in self._loaded:
            self._loaded[name] = load_pairs(self.files[name])
        return self._loaded[name]
