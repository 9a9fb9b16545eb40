"""The bases a config offers, and whether pair sets and knobs fit together."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import NoReturn, get_args

import yaml

from projected_grpo.cells.config import Config
from projected_grpo.cells.knobs import GENERATED_PAIRS, BasisKnobs, Control
from projected_grpo.cells.typed import NAME
from projected_grpo.errors import nearest
from projected_grpo.method.pairs import load_pairs
from projected_grpo.schema_errors import WORDS, Fail, Keys, ascii_repr, get
from projected_grpo.yaml_layers import ConfigFiles

# What a basis is, by which tables and docs know its name; how much of it is used may differ.
MEANING = ("pairs", "without_tag", "with_tag", "method", "loss", "control", "adapter")
SHIPPED = "config/pairs"
Wrong = Callable[[str, str], NoReturn]  # (key, problem) -> UserError


def pair_files(folders: tuple[str, ...]) -> dict[str, Path]:
    """Every pair set by name; of several folders the first that has a set counts."""
    found = {path.stem: path for folder in reversed(folders) for path in Path(folder).glob("*.yaml")}
    return dict(sorted(found.items()))


def _named(section: str, first: str, names: list[str]) -> Iterator[tuple[Keys, str]]:
    """Yield (keys, name) of the one that a section asks about first, then of those that stand beside it."""
    for number, name in enumerate(names):
        yield [section, "compare", number - 1] if number else [section, first], name


class Bases:
    """The named bases and the pair sets, each a basis under its own name."""

    def __init__(self, config: Config, said: ConfigFiles):
        self.config, self.said, self.fail = config, said, said.fail
        self.named = config.bases
        self.files = pair_files(config.pairs)
        self.sets = [*self.files, *GENERATED_PAIRS]
        self.names = sorted({*self.named, *self.sets})
        self._load = cache(lambda name: load_pairs(self.files[name]))

    def check_all(self) -> None:
        """Check every basis that the config names; each has a file of its own."""
        files: dict[str, str] = {}
        for seed, basis in product(self.config.seeds, self.names):
            if (other := files.setdefault(self.config.basis_file(basis, seed), basis)) != basis:
                place: Keys = ["bases", basis] if basis in self.named else ["pairs"]
                self.fail(
                    place, f"{basis!r} is the file of {other!r} with seed {seed}, allowed: another name"
                )
        for basis in self.named:
            self.check(basis)
        # Sets in folders of one's own are other ones than those that an earlier file names.
        if 0 < self.said.level("defender_pairs") >= self.said.level("pairs"):
            for number, name in enumerate(self.config.defender_pairs):
                if name not in self.sets:
                    missing = f"no pair set {ascii_repr(name)}; {nearest(name, self.sets)}"
                    self.fail(["defender_pairs", number], missing)
        probe, detector = self.config.probe, self.config.detector
        for keys, basis in _named("probe", "basis", [probe.basis, *probe.compare]):
            self.check_name(basis, keys, self.fail)
        for keys, basis in _named("detector", "pairs", detector.names):
            self.check_name(basis, keys, self.fail)
            knobs = self.config.knobs(basis)
            if knobs.is_generated or knobs.control != "none" or knobs.adapter != "antipasto":
                allowed = "a pair set by hand, or a basis of one without control in antipasto's space"
                self.fail(keys, f"{basis!r}, allowed: {allowed}")

    def check_name(self, name: str, keys: Keys, fail: Fail) -> None:
        """`name` is a basis or a pair set, and that one is sound; `fail` says that `keys` name none."""
        if name not in self.names:
            files = (path for folder in self.config.pairs for path in Path(folder).glob("*.yml"))
            other = [path for path in files if path.stem == name]
            there = f"{other[0]} is there, allowed: the suffix .yaml" if other else nearest(name, self.names)
            fail(keys, f"{ascii_repr(name)} is no basis and no pair set; {there}")
        if not re.search(NAME, name):  # a set's name is its file's
            fail(keys, f"{ascii_repr(name)}, allowed: {WORDS[NAME]}")
        if name not in self.named:  # the named ones have been checked under `bases`
            self.check(name)

    def check(self, basis: str) -> None:
        """The pair set of `basis` exists and loads, and every number fits the others."""
        knobs = self.config.knobs(basis)
        own = self.named[basis].model_dump(exclude_unset=True) if basis in self.named else {}

        def wrong(key: str, problem: str) -> NoReturn:
            inherited = key not in own and key in self.config.basis.model_fields_set
            self.fail(["basis", key] if inherited else ["bases", basis, key], f"{problem} (basis {basis!r})")

        if basis in self.sets and knobs.pairs != basis:
            wrong("pairs", f"{ascii_repr(knobs.pairs)}, allowed: {basis}, the pair set of that name")
        if basis in get_args(Control) and knobs.control != basis:
            wrong("control", f"{knobs.control!r}, allowed: {basis}, the control of that name")
        self._check_meaning(basis, own, wrong)
        if knobs.pairs not in self.sets:
            if knobs.pairs in pair_files((SHIPPED,)):
                lacks = f"no pair set {ascii_repr(knobs.pairs)}, which the basis {basis!r} is of"
                self.fail(
                    ["pairs"], f"{', '.join(self.config.pairs)}: {lacks}; the shipped sets are in {SHIPPED}"
                )
            wrong("pairs", f"no pair set {ascii_repr(knobs.pairs)}; {nearest(knobs.pairs, self.sets)}")
        if not knobs.is_generated:
            self._check_number_of_pairs(basis, knobs, own, wrong)
        used = knobs.n_pairs - knobs.n_heldout
        if used < 1:
            wrong("n_heldout", f"{knobs.n_heldout}, allowed: 0 to {knobs.n_pairs - 1}, less than n_pairs")
        if knobs.method == "svd" and knobs.top_k > used:
            wrong("top_k", f"{knobs.top_k}, allowed: 1 to {used}, the pairs used: n_pairs - n_heldout")
        if knobs.k > knobs.axes:
            why = "all that mean_diff has" if knobs.method == "mean_diff" else "top_k, the axes stored"
            wrong("k", f"{knobs.k}, allowed: 1 to {knobs.axes}, {why}")

    def _check_meaning(self, basis: str, own: dict, wrong: Wrong) -> None:
        """A basis that the first file has is there what that file says."""
        path, shipped = self.said.files[0]
        before = get(shipped, ["bases", basis])
        if basis not in self.named or not isinstance(before, dict):
            return
        before = {"without_tag": None, "with_tag": None, **self.config.basis.model_dump(), **before}
        for key in MEANING:
            if key in before and key in own and own[key] != before[key]:
                as_before = f"allowed: {before[key]}, as {path} has the basis of this name"
                wrong(key, f"{ascii_repr(own[key])}, {as_before}; give another one a name of its own")

    def _check_number_of_pairs(self, basis: str, knobs: BasisKnobs, own: dict, wrong: Wrong) -> None:
        where, left = str(self.files[knobs.pairs]), self._load(knobs.pairs)
        for key in ("with_tag", "without_tag"):
            if tag := getattr(knobs, key):
                if tag not in left.tags:
                    known = nearest(tag, left.tags) if left.tags else "it has none"
                    wrong(key, f"{ascii_repr(tag)} is no tag of {where}; {known}")
                left, where = getattr(left, key)(tag), f"{where} {key.replace('_', ' ')} {tag}"
        n = len(left)
        if knobs.n_pairs <= n:
            return
        if "n_pairs" in own:
            wrong("n_pairs", f"{knobs.n_pairs}, allowed: 1 to {n}, the pairs in {where}")
        # Other bases keep the global knobs, so this one's line takes the length of its set.
        heldout = min(knobs.n_heldout, n - 1)
        fitting = {"n_pairs": n, "n_heldout": heldout, "top_k": min(knobs.top_k, n - heldout)}
        fitting = (own or {"pairs": knobs.pairs}) | fitting | {"k": min(knobs.k, fitting["top_k"])}
        line = yaml.safe_dump({basis: fitting}, default_flow_style=None, sort_keys=False, width=1000).strip()
        taken = f"{knobs.n_pairs} pairs are taken (basis.n_pairs), {where} has {n}"
        self.fail(["bases", basis] if own else ["pairs"], f"{taken}; below `bases` put `{line}`")
