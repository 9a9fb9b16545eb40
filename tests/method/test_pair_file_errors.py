"""Broken pair files, and which files of pairs a config reads at all."""

import pytest
from broken import matches

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


def test_too_few_pairs_in_a_set_that_a_row_uses(folder):
    folder.copy_pairs()
    (folder.path / "pairs" / "moral.yaml").write_text(PAIR)
    assert matches(
        folder.error(),
        "pairs/moral.yaml: 1 pair, a basis takes 18 (basis.n_pairs); below `bases` in the config put "
        "`moral: { pairs: moral, n_pairs: 1, n_heldout: 0, top_k: 1, k: 1 }`",
    )


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
