"""Broken pair files, and which files of pairs a config reads at all."""

import pytest
import yaml

PAIR = "- {prompt: p, hack: h, clean: c}\n"
PAIR_FILES = [
    (PAIR.replace(", clean: c", ""), "pair 1: key 'clean' is missing; required: prompt, hack, clean"),
    (
        PAIR + "- {prompt: p, hack: '', clean: c}",
        "pair 2: key 'hack' is empty, allowed: text that is not blank",
    ),
    (
        PAIR.replace("hack:", "hak:"),
        "pair 1: unknown key 'hak'; allowed: prompt, hack, clean, tags; did you mean 'hack'?",
    ),
    ("prompt: p", "found a mapping, allowed: a non-empty list of pairs"),
    ("- [", "not YAML"),
]


@pytest.mark.parametrize("text, expected", PAIR_FILES)
def test_broken_pair_file(folder, text, expected):
    folder.copy_pairs()
    path = folder.path / "pairs" / "moral.yaml"
    path.write_text(text)
    message = folder.error()
    assert message.startswith(str(path))
    assert expected in message


def test_pair_sets_that_the_pipeline_writes_need_no_file(folder):
    for name in ("self_taught", "self_taught_code"):
        folder.questions["Q10"]["rows"].append({"name": f"own {name}", "arm": "erase", "basis": name})
    folder.config["bases"]["taught"] = {"pairs": "self_taught", "k": 2}
    folder.check()


@pytest.mark.parametrize("own", [None, {"pairs": "short"}, {"pairs": "short", "n_heldout": 1, "k": 2}])
def test_a_set_that_is_shorter_ends_with_a_line_that_fits_it(folder, own):
    folder.copy_pairs()
    path = folder.path / "pairs/short.yaml"
    path.write_text("".join(PAIR.replace("h,", f"h{n},") for n in range(8)))
    basis = "of_short" if own else "short"
    folder.config["bases"] |= {basis: own} if own else {}
    folder.questions["Q10"]["rows"].append({"name": "of a short set", "arm": "erase", "basis": basis})
    message = folder.error()
    where = (
        f"bases.{basis}" if own else "pairs"
    )  # a set that no basis names: what the user wrote is where sets are
    said = f"{where}: 18 pairs are taken (basis.n_pairs), {path} has 8; below `bases` put `"
    assert message.startswith(f"{folder.path / 'config.yaml'}: {said}")
    line = yaml.safe_load(message.split("put `")[1].rstrip("`"))
    assert line[basis] == {"n_pairs": 8, "n_heldout": 2, "top_k": 6, "k": 5, "pairs": "short"} | (
        own or {}
    ) | ({"top_k": 7} if own and "k" in own else {})
    folder.config["bases"] |= line
    folder.check()


def test_a_pair_set_that_nothing_uses_is_not_read(folder):
    folder.copy_pairs()
    (folder.path / "pairs" / "draft.yaml").write_text("not finished")
    folder.check()


def test_first_of_several_pair_folders_counts(folder):
    folder.copy_pairs()
    extra = folder.path / "extra"
    extra.mkdir()
    (extra / "moral.yaml").write_text("[]")
    folder.config["pairs"] = [folder.config["pairs"], str(extra)]
    folder.check()
    folder.config["pairs"] = folder.config["pairs"][::-1]
    assert folder.error().startswith(str(extra / "moral.yaml"))
