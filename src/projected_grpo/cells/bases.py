"""The bases a config offers, and whether pair sets and knobs fit together."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, get_args

import yaml

from projected_grpo.cells.config import Config
from projected_grpo.cells.knobs import GENERATED_PAIRS, BasisKnobs, Control
from projected_grpo.cells.layers import Layers
from projected_grpo.cells.typed import NAME
from projected_grpo.errors import nearest
from projected_grpo.method.pairs import PairSet, load_pairs
from projected_grpo.schema_errors import WORDS, Fail, Keys, ascii_repr, get

# What a basis is, by which tables and docs know its name; how much of it is used may differ.
MEANING = ("pairs", "without_tag", "with_tag", "method", "loss", "control", "adapter")


def pair_files(folders: tuple[str, ...]) -> dict[str, Path]:
    """Every pair set by name; of several folders the first that has a set counts."""
    found = {path.stem: path for folder in reversed(folders) for path in Path(folder).glob("*.yaml")}
    return dict(sorted(found.items()))


class Bases:
    """The named bases and the pair sets, each a basis under its own name."""

    def __init__(self, config: Config, layers: Layers):
        self.config, self.layers, self.fail = config, layers, layers.fail
        self.named = config.bases
        self.files = pair_files(config.pairs)
        self.sets = [*self.files, *GENERATED_PAIRS]
        self.names = sorted({*self.named, *self.sets})
        self._loaded: dict[str, PairSet] = {}

    def check_name(self, name: str, keys: Keys, fail: Fail) -> None:
        """`name` is a basis or a pair set, and that one is sound; `fail` says that `keys` name none."""
        if name not in self.names:
            fail(keys, f"{ascii_repr(name)} is no basis and no pair set; {nearest(name, self.names)}")
        if not re.search(NAME, name):  # a set's name is its file's
            fail(keys, f"{ascii_repr(name)}, allowed: {WORDS[NAME]}")
        if name not in self.named:  # the named ones have been checked under `bases`
            self.check(name)

    def check(self, basis: str) -> None:
        """The pair set of `basis` exists and loads, and every number fits the others."""
        knobs = self.config.knobs(basis)

        def wrong(key: str, problem: str) -> NoReturn:
            own = basis in self.named and key in self.named[basis].model_fields_set
            inherited = not own and key in self.config.basis.model_fields_set
            self.fail(["basis", key] if inherited else ["bases", basis, key], f"{problem} (basis {basis!r})")

        self._check_meaning(basis, knobs, wrong)
        if knobs.pairs not in self.sets:
            wrong("pairs", f"no pair set {ascii_repr(knobs.pairs)}; {nearest(knobs.pairs, self.sets)}")
        self._check_number_of_pairs(basis, knobs, wrong)
        used = knobs.n_pairs - knobs.n_heldout
        if used < 1:
            wrong("n_heldout", f"{knobs.n_heldout}, allowed: 0 to {knobs.n_pairs - 1}, less than n_pairs")
        if knobs.method == "svd" and knobs.top_k > used:
            wrong("top_k", f"{knobs.top_k}, allowed: 1 to {used}, the pairs used: n_pairs - n_heldout")
        if knobs.k > knobs.axes:
            why = "all that mean_diff has" if knobs.method == "mean_diff" else "top_k, the axes stored"
            wrong("k", f"{knobs.k}, allowed: 1 to {knobs.axes}, {why}")

    def _check_meaning(self, basis: str, knobs: BasisKnobs, wrong: Callable[[str, str], NoReturn]) -> None:
        if basis in self.sets and knobs.pairs != basis:
            wrong("pairs", f"{ascii_repr(knobs.pairs)}, allowed: {basis}, the pair set of that name")
        if basis in get_args(Control) and knobs.control != basis:
            wrong("control", f"{knobs.control!r}, allowed: {basis}, the control of that name")
        if basis not in self.named:
            return
        path, shipped = self.layers.files[0]
        before = get(shipped, ["bases", basis])
        if not isinstance(before, dict):
            return
        before = {"without_tag": None, "with_tag": None, **self.config.basis.model_dump(), **before}
        for key in MEANING:
            own = getattr(knobs, key)
            if key in before and key in self.named[basis].model_fields_set and own != before[key]:
                as_before = f"allowed: {before[key]}, as {path} has the basis of this name"
                wrong(key, f"{ascii_repr(own)}, {as_before}; give another one a name of its own")

    def _check_number_of_pairs(
        self, basis: str, knobs: BasisKnobs, wrong: Callable[[str, str], NoReturn]
    ) -> None:
        name = knobs.pairs
        if knobs.is_generated:
            return
        pairs = self._load(name)
        where, left = str(self.files[name]), pairs
        for key in ("with_tag", "without_tag"):
            if tag := getattr(knobs, key):
                if tag not in left.tags:
                    wrong(key, f"{ascii_repr(tag)} is no tag of {where}; {nearest(tag, left.tags)}")
                left, where = getattr(left, key)(tag), f"{where} {key.replace('_', ' ')} {tag}"
        left = len(left)
        if knobs.n_pairs <= left:
            return
        own = self.named[basis].model_dump(exclude_unset=True) if basis in self.named else {"pairs": name}
        if "n_pairs" in own:
            wrong("n_pairs", f"{knobs.n_pairs}, allowed: 1 to {left}, the pairs in {where}")
        # Other bases keep the global knobs, so this one's line takes the length of its set.
        heldout = min(knobs.n_heldout, left - 1)
        fitting = {"n_pairs": left, "n_heldout": heldout, "top_k": min(knobs.top_k, left - heldout)}
        fitting["k"] = min(knobs.k, fitting["top_k"])
        line = yaml.safe_dump({basis: own | fitting}, default_flow_style=None, sort_keys=False, width=1000)
        self.fail(
            ["bases", basis],
            f"{knobs.n_pairs} pairs are taken (basis.n_pairs), {where} has {left}; "
            f"below `bases` put `{line.strip()}`",
        )

    def _load(self, name: str) -> PairSet:
        if name not in self._loaded:
            self._loaded[name] = load_pairs(self.files[name])
        return self._loaded[name]
