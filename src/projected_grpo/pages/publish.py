"""`make publish`: the pages of a results tree as `docs/results/`, the numbers of their runs beside them, the index
`docs/results.md`, the figures in `docs/figures/`, and the README's finding and example.

Nothing is computed here: each page is what the pipeline wrote, with date, machine and commit of its publication. Pages
that this tree has not made stay as they were published, and so does one that says what it said, of the same runs.
"""

import argparse
import html
import os
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.files import read_json, write_json, write_text
from projected_grpo.measures.columns import BY_SEED
from projected_grpo.pages import slot
from projected_grpo.pages.blocks import Figure, Page, read_page
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.pages.text import NONE, seed_list, short
from projected_grpo.records import check_read, commit, read_sealed
from projected_grpo.strict_yaml import read_mapping

DEFAULT = Path("config/config.yaml")
ORACLE = (
    "Rows along `own_mode` act along the teacher's own exploits: what a direction could do at best, since no defender "
    "has them beforehand."
)
# What may differ though a page is the one that is published.
WHEN = ("Date", "Machine", "Commit of this page")
STORE = "results/pages.json"  # below the documentation: what is published
# In the order in which the first screen has them: the plane, then the method and its controls; what is behind them.
FINDINGS = (  # heading, what is said below it, pages
    ("What came out", ORACLE, ("Q16", "Q22", "Q10", "Q14", "Q3", "Q7", "Q6", "Q13", "Q5", "Q12")),
    ("What is behind it", "", ("Q18", "Q19", "Q20", "Q21", "self_taught", "self_taught_grid")),
)


def machine() -> str:
    """Return processor and cores, as far as the system says."""
    try:
        model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def _order(name: str) -> tuple[bool, str, int]:
    """Return the place of a page's id: questions first, by number."""
    return name[:1] != "Q", name.rstrip("0123456789"), int(re.sub(r"\D", "", name) or 0)


def _figures(page: Page, results: Path) -> dict[str, str]:
    """Return a page's figures by their published name. Raises UserError on one that is not as it was made."""
    named = [block.name for block in page.blocks if isinstance(block, Figure)]
    found = {f"{page.id}-{name}.svg": results / "figures" / page.name / f"{name}.svg" for name in named}
    check_read(*found.values())
    return {name: path.read_text() for name, path in found.items()}


def _replace(page: Page, figures: dict[str, str], folder: Path) -> None:
    """Write a page's figures to the folder, in place of those of its earlier snapshot."""
    for name, text in figures.items():
        write_text(folder / name, text)
    for old in folder.glob(f"{page.id}-*.svg"):
        if old.name not in figures:
            old.unlink()


def _published(page: Page, made: dict[str, str], runs: str) -> str:
    """Return a page as Markdown, with how it was made below its title, and at its end what it stands on.

    runs: its numbers by run, empty where it has none.
    """
    title, rest = to_markdown(replace(page, sources=()), f"../figures/{page.id}-").strip().split("\n", 1)
    how = "; ".join(f"{key}: {value}" for key, value in made.items())
    numbers = f"The numbers of each run, from which every test here can be made again: [{page.id}.csv]({page.id}.csv)."
    return (
        "\n\n".join(filter(None, [title, f"*{how}.*", rest.strip(), runs and numbers, _behind(page)])) + "\n"
    )


def _since(page: Page, now: dict[str, str], before: dict[str, str], runs: str, docs: Path) -> dict[str, str]:
    """Return how a page was made: as it stands in `docs` where that is this page, of these runs; else `now`."""
    path = docs / "results" / f"{page.id}.md"
    of, published_of = ({k: v for k, v in made.items() if k not in WHEN} for made in (now, before))
    stands = of == published_of and path.exists() and path.read_text() == _published(page, before, runs)
    return before if stands else now


def _by_run(page: Page, results: Path) -> str:
    """Return a table's compared measures as CSV with a line per row and seed; nothing where the page has no table."""
    path = results / f"{page.name}.parquet"
    check_read(path)
    frame = pd.read_parquet(path)
    named = {
        name: name.removesuffix(BY_SEED.format("")) for name in frame if name.endswith(BY_SEED.format(""))
    }
    if not named or "row" not in frame:  # the evaluator's table has no rows of runs
        return ""
    rows = []
    for line in frame.to_dict("records"):
        seeds = line["seeds"].split(";") if line["seeds"] else []
        # A row of several rows pooled has more runs than seeds.
        cells = line["cells"] if len(line["cells"]) == len(seeds) else [None] * len(seeds)
        numbers = {
            own: line[name] if line[name] is not None else [None] * len(seeds) for name, own in named.items()
        }
        rows.append(
            pd.DataFrame(
                {"row": line["row"], "baseline": line["baseline"], "seed": seeds, "cell": cells} | numbers
            )
        )
    return pd.concat(rows).to_csv(index=False, float_format="%.6g", lineterminator="\n")


def _behind(page: Page) -> str:
    """Return the runs and files below the results folder that each row stands on, to be opened."""
    lines = [f"{s.name}: {' '.join([*short(s.cells), *s.files])}" for s in page.sources if s.cells or s.files]
    said = html.escape("\n".join(lines))
    return (
        f"<details><summary>Runs and files behind each row</summary><pre>{said}</pre></details>"
        if lines
        else ""
    )


def _index(stored: dict[str, dict], asked: Iterable[str]) -> str:
    """Return the first screen: what came out, a sentence a question, and the list of all pages.

    stored: id of a page -> its title, finding and how it was made; asked: questions, of which those without are named.
    """
    parts = ["# Results", "What finished runs of the pipeline found; `make publish` writes these pages."]
    for head, note, names in FINDINGS:
        found = [(name, stored[name]) for name in names if stored.get(name, {}).get("finding")]
        said = [
            f"{i}. {p['finding']} ([{p['title']}](results/{name}.md))" for i, (name, p) in enumerate(found, 1)
        ]
        parts += filter(None, [f"## {head}", note, "\n".join(said)]) if said else []
    rows = [
        f"| [{page['title']}](results/{name}.md) | {page['made'].get('Seeds', NONE)} "
        f"| {page['made'].get('Runs', NONE)} | {page['made']['Date']} |"
        for name, page in sorted(stored.items(), key=lambda item: _order(item[0]))
    ]
    parts += [
        "## Contents",
        "\n".join(["| page | seeds | runs | made |", "| --- | --- | ---: | --- |", *rows]),
    ]
    if missing := [name for name in asked if name not in stored]:
        parts.append(f"No table yet: {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def _pages(results: Path) -> list[Page]:
    """Return the pages below `results`, questions first. Raises UserError on one that is not as it was made."""
    found = [path for pattern in ("*.json", "*/*.json") for path in results.glob(pattern)]
    found = [path for path in found if path.with_suffix(".md").exists()]
    check_read(*found)
    return [read_page(path) for path in sorted(found, key=lambda path: _order(path.stem))]


def write_snapshot(results: Path, docs: Path, made: dict[str, str], asked: Iterable[str] = ()) -> list[Page]:
    """Write the pages below `results` into `docs/results`, their figures, and the index of all that are published.

    made: when, where and from what; asked: the questions of the config, so that the index names what has no page.
    Raises UserError where there is no question table below `results`, or a file is not as it was made.
    """
    pages = _pages(results)
    if not any(re.fullmatch(r"Q\d+", page.name) for page in pages):
        raise UserError(
            f"{results}: no question table; run `./snakemake --cores all reports/paper.html` first"
        )
    store = docs / STORE
    stored = read_json(store) if store.exists() else {}
    checked = [
        (page, made | _runs(results, page), _figures(page, results), _by_run(page, results)) for page in pages
    ]
    for page, now, figures, numbers in checked:  # nothing is written before all is read
        how = _since(page, now, stored.get(page.id, {}).get("made", {}), numbers, docs)
        _replace(page, figures, docs / "figures")
        write_text(docs / "results" / f"{page.id}.md", _published(page, how, numbers))
        beside = docs / "results" / f"{page.id}.csv"
        write_text(beside, numbers) if numbers else beside.unlink(missing_ok=True)
        stored[page.id] = {"title": page.title, "finding": page.finding, "made": how}
    write_json(store, stored)
    write_text(docs / "results.md", _index(stored, asked))
    return pages


def _runs(results: Path, page: Page) -> dict[str, str]:
    """Return seeds, number and code of the runs behind a page; nothing where no run is."""
    runs = [
        results / "grpo" / cell / "run.json" for cell in sorted({c for s in page.sources for c in s.cells})
    ]
    check_read(*runs)
    records = [read_sealed(run) for run in runs]
    if not records:
        return {}
    code = sorted({str(record.get("code")) for record in records})
    return {
        "Seeds": seed_list(sorted({record["settings"]["seed"] for record in records})),
        "Runs": str(len(runs)),
        "Code": f"{', '.join(code)} (as `run.json` has it)",
    }


def _config(path: Path) -> tuple[Path, str, list[str]]:
    """Return results folder, model and questions of a config, laid over the default where it is not that itself."""
    layers = [read_mapping(file) for file in (DEFAULT, path)]
    both = layers[0] | layers[1]
    asked = [name for name in read_mapping(Path(both["questions"])) if name != "$schema"]
    return Path(both["results"]), (layers[0]["model"] | layers[1].get("model", {}))["name"], asked


def main(arguments: list[str] | None = None) -> int:
    """Write the snapshot of the config's results; print a UserError as one line and return 2."""
    parser = argparse.ArgumentParser(
        prog="python -m projected_grpo.pages.publish", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--configfile", default=DEFAULT, type=Path)
    parser.add_argument("--docs", default="docs", type=Path)
    parser.add_argument("--readme", default="README.md", type=Path)
    options = parser.parse_args(arguments)
    try:
        results, model, asked = _config(options.configfile)
        place = options.configfile.resolve()
        inside = place.is_relative_to(Path.cwd())  # another machine has no use for this one's folders
        named = place.relative_to(Path.cwd()) if inside else place.name
        made = {
            "Date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "Machine": machine(),
            "Commit of this page": commit(),
            "Config": f"`{named}`, model `{model}`",
        }
        pages = write_snapshot(results, options.docs, made, asked)
        if slot.opens(pages, read_json(options.docs / STORE)):
            texts = (slot.finding(pages), slot.figure(pages, options.docs), slot.example(results))
            slot.fill(options.readme, texts)
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {len(pages)} pages of {options.docs / 'results.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
