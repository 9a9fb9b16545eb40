# What a page is made of.
from projected_grpo.pages import registry
from projected_grpo.pages.needs import NEEDS

MODULES = registry.pages(CONFIG, QUESTIONS)
CONTEXTS = {page: Context(page, CONFIG, QUESTIONS) for page in MODULES}


@cache
def page_needs(page):
    """What a page needs beside the runs of its question, vanilla runs of no question among it."""
    files = NEEDS[MODULES[page]](CONTEXTS[page])
    for cell in CONTEXTS[page].more.values():
        cells.add_cell(CELLS, cell)
    return files


def page_files():
    """What a page is: Markdown and figures, which Snakemake's own report shows, and its numbers."""
    return {
        "md": report(
            f"{RESULTS}/{{page}}.md",
            caption="../workflow/report/verdict.rst",
            category="Pages",
            labels={"page": "{page}", "what": "page"},
        ),
        "parquet": f"{RESULTS}/{{page}}.parquet",
        "figures": report(
            directory(f"{RESULTS}/figures/{{page}}"),
            patterns=["{figure}.svg"],
            caption="../workflow/report/figure.rst",
            category="Pages",
            labels={"page": "{page}", "what": "{figure}"},
        ),
    }


def page_file(wildcards):
    """The file of a page, which is loaded by name: another page's edit reruns nothing here."""
    return os.path.relpath(registry.file(MODULES[wildcards.page]), HERE)


# With `runs=existing` nothing makes what a page needs beside runs; a question's lacks those numbers then.
PAGES = [
    page for page in MODULES if MODULES[page] == "question" or wanted(page_needs(page)) == page_needs(page)
]


def other_configs():
    """Results folder -> config file, for files beside the default one that have another folder than this call."""
    found = {}
    for path in sorted(Path("config").glob("*.yaml")):
        with suppress(UserError):
            named = read_mapping(path).get("results")
            if isinstance(named, str) and named != "results" and named != RESULTS:
                found[named] = str(path)
    return found


def is_known(wildcard, value):
    """Whether this value of a wildcard names something of this config."""
    if wildcard in ("basis", "nll", "grpo"):
        return basis_name(value) in (*CONFIG.bases, *PAIR_FILES, *GENERATED_PAIRS)
    if wildcard == "replay":
        return is_known("basis", replay_of(value)[1])
    known = {"model": REPLICATIONS, "pool": TEACHER_POOLS, "cell": CELLS, "critic": CRITICS}
    return value in (known | {"question": QUESTIONS, "page": PAGES})[wildcard]


def is_made(target):
    """Whether a rule has this name or makes this file, or it lies there and none has files of such a name."""
    outputs = (output for rule in workflow.rules for output in rule.output)
    found = [match.groupdict() for output in outputs if (match := output.match(target))]
    if workflow.is_rule(target) or not found:
        return workflow.is_rule(target) or Path(target).is_file()
    return any(all(is_known(*each) for each in wildcards.items()) for wildcards in found)
