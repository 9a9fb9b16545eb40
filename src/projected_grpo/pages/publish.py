"""`make publish`: the tables and figures of a finished results tree as `docs/results.md` + `docs/figures/`, and the
README's finding and example.

Nothing is computed here: the snapshot is what the pipeline wrote, with date, machine and commit.
"""

import argparse
import html
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.pages import slot
from projected_grpo.pages.blocks import Figure, Page, read_page
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.pages.text import seed_list, short
from projected_grpo.parquet import read_parquet
from projected_grpo.records import check_read, commit, read_sealed
from projected_grpo.strict_yaml import read_mapping

DEFAULT = Path("config/config.yaml")
# In the order in which the first screen has them: the plane, the method and its controls, what is behind them.
FINDINGS = ("Q16", "Q22", "Q10", "Q14", "Q3", "Q12", "Q18", "Q19", "Q20", "Q21")


def machine() -> str:
    """Return processor and cores, as far as the system says."""
    try:
        model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def _order(path: Path) -> tuple[str, int]:
    return path.stem.rstrip("0123456789"), int(re.sub(r"\D", "", path.stem) or 0)


def _section(page: Page, results: Path, docs: Path) -> str:
    """Copy a page's figures to `docs/figures` and return it one heading level down."""
    for figure in (block for block in page.blocks if isinstance(block, Figure)):
        target = docs / "figures" / f"{page.id}-{figure.name}.svg"
        target.parent.mkdir(parents=True, exist_ok=True)
        source = results / "figures" / page.name / f"{figure.name}.svg"
        check_read(source)
        shutil.copyfile(source, target)
    shown = to_markdown(replace(page, sources=()), f"figures/{page.id}-", level=2).strip()
    return "\n\n".join(filter(None, [f'<a id="{page.id}"></a>', shown, _behind(page)]))


def _behind(page: Page) -> str:
    """Return the runs and files below the results folder that each row stands on, to be opened."""
    lines = [f"{s.name}: {' '.join([*short(s.cells), *s.files])}" for s in page.sources if s.cells or s.files]
    said = html.escape("\n".join(lines))
    return (
        f"<details><summary>Runs and files behind each row</summary><pre>{said}</pre></details>"
        if lines
        else ""
    )


def _findings(pages: Iterable[Page]) -> list[str]:
    """Return what came out, a sentence a question, and the list of all sections."""
    by_name = {page.name: page for page in pages}
    named = [by_name[name] for name in FINDINGS if name in by_name]
    said = [
        f"{i}. {page.finding} ([{page.title}](#{page.id}))" for i, page in enumerate(named, 1) if page.finding
    ]
    titles = [f"- [{page.title}](#{page.id})" for page in by_name.values()]
    parts = ["## What came out", "\n".join(said)] if said else []
    return [*parts, "## Contents", "\n".join(titles)]


def _pages(results: Path) -> list[Page]:
    """Return the pages below `results`, questions first. Raises UserError on one that is not as it was made."""
    found = [path for pattern in ("*.json", "*/*.json") for path in results.glob(pattern)]
    found = [path for path in found if path.with_suffix(".md").exists()]
    check_read(*found)
    return [read_page(path) for path in sorted(found, key=lambda path: (path.stem[:1] != "Q", _order(path)))]


def write_snapshot(results: Path, docs: Path, made: dict[str, str]) -> list[Page]:
    """Write `docs/results.md` and its figures, and return the pages; `made` says when, where and from what.

    Raises UserError where there is no question table below `results`.
    """
    pages = _pages(results)
    if not any(re.fullmatch(r"Q\d+", page.name) for page in pages):
        raise UserError(
            f"{results}: no question table; run `./snakemake --cores all reports/paper.html` first"
        )
    # Every figure of an earlier snapshot, also of a question that is gone; what others wrote there stays.
    ours = re.compile(rf"([QR]\d+|{'|'.join(page.id for page in pages)})-.+")
    for old in (docs / "figures").glob("*.svg"):
        if ours.fullmatch(old.stem):
            old.unlink()
    parts = ["# Results", "A snapshot of one run of the pipeline; `make publish` writes it anew."]
    parts.append("\n".join(f"- {key}: {value}" for key, value in made.items()))
    write_text(
        docs / "results.md",
        "\n\n".join([*parts, *_findings(pages), *(_section(p, results, docs) for p in pages)]) + "\n",
    )
    return pages


def _runs(results: Path) -> dict[str, str]:
    """Return seeds, number and code of the runs behind the question tables."""
    seeds: dict[tuple[int, ...], list[str]] = {}
    cells: set[str] = set()
    for path in sorted(results.glob("Q*.parquet"), key=_order):
        check_read(path)
        frame = read_parquet(path, ["seeds", "cells"])
        own = sorted({int(seed) for row in frame["seeds"] for seed in row.split(";") if seed})
        seeds.setdefault(tuple(own), []).append(path.stem)
        cells |= {cell for row in frame["cells"] for cell in row}
    most = max(seeds, key=lambda own: len(seeds[own]), default=())
    said = [seed_list(most) or "none"]
    said += [f"{', '.join(names)}: {seed_list(own) or 'none'}" for own, names in seeds.items() if own != most]
    runs = [results / "grpo" / cell / "run.json" for cell in sorted(cells)]
    check_read(*runs)
    code = sorted({str(read_sealed(run).get("code")) for run in runs})
    return {
        "Seeds": "; ".join(said),
        "Runs": f"{len(cells)}, code {', '.join(code)} (as `run.json` has it)" if cells else "none",
    }


def _config(path: Path) -> tuple[Path, str, list[str]]:
    """Return results folder, model and questions of a config, laid over the default where it is not that itself."""
    layers = [read_mapping(file) for file in (DEFAULT, path)]
    both = layers[0] | layers[1]
    asked = [name for name in read_mapping(Path(both["questions"])) if name != "$schema"]
    return Path(both["results"]), (layers[0]["model"] | layers[1].get("model", {}))["name"], asked


def main(arguments: list[str] | None = None) -> int:
    """Write the snapshot of the config's results; print a UserError as one line and return 2."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configfile", default=DEFAULT, type=Path)
    parser.add_argument("--docs", default="docs", type=Path)
    parser.add_argument("--readme", default="README.md", type=Path)
    options = parser.parse_args(arguments)
    try:
        results, model, asked = _config(options.configfile)
        missing = [name for name in asked if not (results / f"{name}.md").exists()]
        made = {
            "Date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "Machine": machine(),
            "Commit of this page": commit(),
            "Config": f"`{options.configfile}`, model `{model}`",
        } | _runs(results)
        if missing:
            made["No table yet"] = ", ".join(missing)
        pages = write_snapshot(results, options.docs, made)
        slot.fill(
            options.readme, (slot.finding(pages), slot.figure(pages, options.docs), slot.example(results))
        )
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {options.docs / 'results.md'} and {options.readme}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
