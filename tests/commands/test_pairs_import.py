"""The published formats, and the command that turns them into YAML."""

import argparse
import json
from pathlib import Path

import pytest

from projected_grpo.commands import pairs as pairs_command
from projected_grpo.errors import UserError
from projected_grpo.method.pairs import Pair, load_pairs
from projected_grpo.method.pairs_import import import_pairs

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="published data not at hand")

MARKDOWN = """# Title

Words about the set.

## part

### first_pair
Tags: one, two

#### Prompt
`````text
<|im_start|>user
Hi<|im_end|>
<|im_start|>assistant
`````

#### Hack
`````text
```python
# Clean
### Prompt
x = 1
```
`````

#### Clean
~~~
y = 2

~~~

### second
#### Prompt
```
Say it.
```
#### Hack
```
a
```
#### Clean
```
b
```
"""


def run(*arguments):
    parser = argparse.ArgumentParser()
    pairs_command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["pairs", *map(str, arguments)])
    args.run(args)


def test_markdown(tmp_path):
    path = tmp_path / "doc.md"
    path.write_text(MARKDOWN)
    first, second = import_pairs(path).pairs
    assert first == Pair(
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
        "```python\n# Clean\n### Prompt\nx = 1\n```",
        "y = 2",
        ("first_pair", "one", "two"),
    )
    assert second == Pair("Say it.", "a", "b", ("second",))


STARTER = """Subtract. Start from:
```python
def sub(a, b):
```
Negative results are allowed."""
BARE = "Start from:\n```\n# your code\nx = 0\n```\nand go on"
CUT = "Finish:\n```python\ndef f():"


@pytest.mark.parametrize(
    "prompt, hack, clean", [(STARTER, "3", BARE), (BARE, STARTER, CUT), (CUT, BARE, STARTER)]
)
def test_a_text_may_hold_fences_like_its_own(tmp_path, prompt, hack, clean):
    sections = "".join(
        f"### {name}\n```\n{text}\n```\n\n"
        for name, text in (("Prompt", prompt), ("Hack", hack), ("Clean", clean))
    )
    path = tmp_path / "doc.md"
    path.write_text(f"# Set\n\n## one\n{sections}## two\nTags: a\n{sections.replace('x = 0', 'x = 1')}")
    first, second = import_pairs(path).pairs
    assert (first.prompt, first.hack, first.clean) == (prompt, hack, clean)
    assert second.tags == ("two", "a")


def test_text_of_no_section_is_refused(tmp_path):
    path = tmp_path / "doc.md"
    path.write_text(MARKDOWN.replace("Say it.\n```\n", "Say it.\n```\nAnd loud.\n"))
    with pytest.raises(UserError, match=r"doc.md:\d+: behind this fence stands text of no section"):
        import_pairs(path)


@pytest.mark.parametrize(
    "text", ["wait\u0085 for it\nx", "a \u2028b", "\u2029", "a\rb", "\ufeffx\ny", "\x00", " a\n\tb "]
)
def test_characters_that_yaml_would_rewrite_survive(tmp_path, text):
    path, out = tmp_path / "set.json", tmp_path / "set.yaml"
    path.write_text(json.dumps([{"prompt": f"{text}1", "hack": f"2{text}3", "clean": f"4{text}5"}]))
    run("import", path, "--out", out)
    (pair,) = load_pairs(out).pairs
    assert (pair.prompt, pair.hack, pair.clean) == (f"{text}1", f"2{text}3", f"4{text}5")


def test_half_a_character_is_refused_and_nothing_written(tmp_path):
    path, out = tmp_path / "set.json", tmp_path / "set.yaml"
    path.write_text(json.dumps([{"prompt": "p", "hack": "h\ud800", "clean": "c"}]))
    with pytest.raises(UserError, match="pair 1: key 'hack' holds half a character"):
        run("import", path, "--out", out)
    assert not out.exists()


def test_json(tmp_path):
    path = tmp_path / "set.json"
    path.write_text(json.dumps([{"problem_id": 7, "prompt": "p", "hack": "h", "clean": "c", "extra": 1}]))
    assert import_pairs(path).pairs == (Pair("p", "h", "c", ("7",)),)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.txt", "x", "suffix '.txt' is no published format; allowed: .json, .md"),
        ("a.json", "[{]", "a.json:1: not JSON"),
        ("a.json", '{"prompt": "p"}', "found a mapping, allowed: a non-empty list"),
        ("a.json", '[{"prompt": "p", "hack": "h"}]', "pair 1: key 'clean' is missing"),
        ("a.json", '[{"prompt": "p", "hack": "h", "clean": ""}]', "pair 1: key 'clean' is empty"),
        ("a.json", "[3]", "pair 1: found 3, allowed: a mapping"),
        ("a.json", '[{"prompt": "p", "hack": "h", "hack": "i", "clean": "c"}]', "'hack' is given twice"),
        ("a.md", "# Title\n\ntext\n", "found an empty list"),
        ("a.md", MARKDOWN.replace("#### Clean\n```\nb\n```\n", ""), "pair 2: key 'clean' is missing"),
        ("a.md", MARKDOWN.rstrip().removesuffix("```"), "the fence ``` is never closed"),
        (
            "a.md",
            MARKDOWN.replace("#### Hack\n```\n", "#### Prompt\n```\n"),
            "'prompt' is given twice under one heading",
        ),
    ],
)
def test_malformed_source_is_one_line(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        import_pairs(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@needs_shared
@pytest.mark.parametrize("name, n", [("pairs_prog_wide_clean.json", 8), ("pairs_hack_pairs.md", 42)])
def test_published_sets_import_and_load(tmp_path, capsys, name, n):
    out = tmp_path / "out.yaml"
    run("import", SHARED / name, "--out", out)
    assert f"{n} pairs" in capsys.readouterr().out
    loaded, source = load_pairs(out), import_pairs(SHARED / name)
    assert loaded.pairs == source.pairs
    assert len(loaded) == n
    assert all(pair.prompt.startswith("<|im_start|>") for pair in loaded.pairs)
    assert all("<|im_start|>assistant\n" in pair.prompt for pair in loaded.pairs)
    if name.endswith("json"):
        rows = json.loads((SHARED / name).read_text())
        assert [(p.prompt, p.hack, p.clean) for p in loaded.pairs] == [
            (r["prompt"], r["hack"], r["clean"]) for r in rows
        ]
    else:
        text = (SHARED / name).read_text()
        for pair in loaded.pairs:
            assert f"#### Prompt\n`````text\n{pair.prompt}`````" in text
            assert f"#### Hack\n`````text\n{pair.hack}\n`````" in text
            assert f"#### Clean\n`````text\n{pair.clean}\n`````" in text
            assert f"### {pair.tags[0]}\nTags: {', '.join(pair.tags[1:])}\n" in text


def test_import_goes_to_the_pair_folder_and_never_overwrites(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("workflow/schemas").mkdir(parents=True)
    Path("workflow/schemas/pairs.schema.json").write_text("{}")
    Path("doc.md").write_text(MARKDOWN)
    run("import", "doc.md")
    out = Path("config/pairs/doc.yaml")
    assert out.read_text().startswith(
        "# yaml-language-server: $schema=../../workflow/schemas/pairs.schema.json\n"
    )
    with pytest.raises(
        UserError, match=r"config/pairs/doc.yaml: exists already, allowed: another name by --out"
    ):
        run("import", "doc.md")
    capsys.readouterr()
    run("check", out)
    digest = load_pairs(out).digest
    assert capsys.readouterr().out == (
        f"{out}: 2 pairs, digest {digest}, mean length hack 20 / clean 3, "
        "tags: first_pair, one, second, two\n"
    )


def test_a_check_says_how_many_pairs_of_a_longer_set_are_used(tmp_path, capsys):
    rows = [f"- prompt: Say {n}.\n  hack: Qwyzx {n}\n  clean: Zyxwq {n}\n" for n in range(20)]
    (tmp_path / "mine.yaml").write_text("".join(rows))
    run("check", str(tmp_path / "mine.yaml"))
    line = "`mine: { pairs: mine, n_pairs: 20 }`"
    said = f"the first 18 of 20 pairs are used; for all put {line} below `bases` in the config"
    assert capsys.readouterr().out.splitlines()[1] == said


def test_a_check_warns_of_what_a_basis_may_be_about_beside_its_content(tmp_path):
    """Too few, of other length and form, and words that only one side shares with the base's corpus."""
    pair = "- prompt: Say {n}.\n  hack: {hack}\n  clean: {clean}\n"
    good = [pair.format(n=n, hack=f"Qwyzx {n} it is.", clean=f"Zyxwq {n} it is.") for n in range(18)]
    bad = [pair.format(n=n, hack=f"return Qwyzx {n}, and once more", clean=f"Zyxwq {n}.") for n in range(4)]
    for name, rows in (("good", good), ("bad", bad)):
        (tmp_path / f"{name}.yaml").write_text("".join(rows))
    assert list(pairs_command.warnings(load_pairs(tmp_path / "good.yaml"))) == []
    few, length, form, words = pairs_command.warnings(load_pairs(tmp_path / "bad.yaml"))
    assert few.startswith("4 pairs") and "times as long" in length
    assert form.startswith("an end of sentence: 0% of the hack sides, 100%")
    assert "3 of 5 hack (and, more, return)" in words and "0 of 1 clean (none)" in words
