# Config, the expansion of the questions, and every input function: the rules below are declarations.
import json
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from projected_grpo import arms
from projected_grpo.arguments import check_targets, report_file
from projected_grpo.errors import UserError, nearest
from projected_grpo.cells import cell as cells
from projected_grpo.cells.bases import pair_files
from projected_grpo.cells.check import load
from projected_grpo.cells.knobs import GENERATED_PAIRS
from projected_grpo.cells.setting import Setting
from projected_grpo.code_hashes import CodeHashes
from projected_grpo.digests import announce, of_value
from projected_grpo.method.pairs import load_pairs
from projected_grpo.hub import local_folder
from projected_grpo.machine import has_gpu
from projected_grpo.measures.names import check_names
from projected_grpo.strict_yaml import read_mapping, read_yaml
from projected_grpo.pages.context import Context

try:
    files = ["config/config.yaml", *workflow.overwrite_configfiles]
    CONFIG, parsed = load(files, config, workflow.config_settings.config)
    config.clear()
    config.update(CONFIG.plain())  # what scripts read: checked, its numbers as numbers
    QUESTIONS = cells.load_questions(parsed, CONFIG)
    check_names(CONFIG, QUESTIONS)
    CELLS = cells.all_cells(QUESTIONS)
except UserError as error:
    raise SystemExit(f"error: {error}") from None
# A plan asks ten thousands of times which arms there are; another workflow's module may have others.
arms.files = cache(getattr(arms.files, "__wrapped__", arms.files))

announce({path: of_value(read_yaml(path)) for path in CONFIG.questions})
# The root of this repository, also where it is another workflow's module.
HERE = Path(workflow.current_basedir).parents[1]
CODE = CodeHashes(HERE / "workflow" / "scripts")
PAIR_FILES = pair_files(CONFIG.pairs)
CONTEXT = Context("", CONFIG, QUESTIONS)
RESULTS = CONFIG.results
REPORT = report_file(RESULTS)
SEEDS = CONFIG.seeds
# {model} -> its seed and the setting that names size and variant; a given base is no replication.
REPLICATIONS = {CONFIG.model_name(seed): (seed, Setting()) for seed in SEEDS}
REPLICATIONS |= {cell.model: (cell.seed, cell.setting) for cell in CELLS.values()}
MODELS = CONFIG.models
# {pool} -> the model whose rollouts it holds, and the loopholes of its problems: each model's own, then those that rows name.
TEACHER_POOLS = {model: (model, CONFIG.pool.modes) for model in REPLICATIONS}
TEACHER_POOLS |= {cell.pool: (cell.model, cell.setting.modes) for cell in CELLS.values()}
SMALL = CONFIG.is_small
# What seeds share of a given model is made with kernels that processors share; half-width products have none.
PORTABLE = not SMALL and CONFIG.device == "cpu" and CONFIG.dtype == "float32"
GPU = 1 if CONFIG.device == "cuda" else 0
COMPUTE = {"device": CONFIG.device, "dtype": CONFIG.dtype}
MACHINE = {**COMPUTE, "allow_weak_sandbox": CONFIG.sandbox == "weak"}  # of jobs that grade


onstart:
    # Elsewhere, as on a cluster, machines have what this one has not.
    here = [
        job for job in workflow.dag.needrun_jobs() if workflow.local_exec and job.resources.get("gpu")
    ]
    if here and not has_gpu():
        raise SystemExit(
            f"error: device: 'cuda', but no GPU is here for {here[0].rule}; allowed: cpu, or a cluster"
        )


onsuccess:
    # What the first seed's plain run wrote, where the config asks for it and there is such a run.
    folder = Path(RESULTS, "grpo", vanilla_cell(SEEDS[0]))
    if CONFIG.examples and (folder / "deployed.parquet").exists():
        from projected_grpo.commands.examples import examples

        print(examples(folder), file=sys.stderr)


wildcard_constraints:
    model="[A-Za-z0-9._-]+",
    pool="[A-Za-z0-9._+-]+",
    cell="[A-Za-z0-9._+-]+",
    basis="[A-Za-z0-9._-]+",
    question="[A-Za-z0-9_]+",


def wanted(paths):
    """All of these files; with `runs=existing` those that are there, since nothing makes the others."""
    return [path for path in paths if CONFIG.runs == "make" or Path(path).exists()]


def by_content(path):
    """A file that a rule reads; one that no rule makes counts by its content alone, whatever its time."""
    return path if Path(path).is_relative_to(RESULTS) else ancient(path)


@cache
def code(script, *sources):
    """Fingerprint of a script and of the library code behind it and behind `sources`, which it loads by name."""
    return CODE.of(script, [HERE / source for source in sources])


# The code of the problem family, which is loaded by name.
FAMILY = f"src/projected_grpo/environment/families/{CONFIG.small.family}/__init__.py"


def seed_of_model(model):
    """The seed of a replication, or of what all seeds share."""
    return REPLICATIONS[model][0] if CONFIG.is_replicated else CONFIG.shared_seed


def recipe_of(model):
    """The recipe of a small model."""
    return CONFIG.small.of(REPLICATIONS[model][1].size or CONFIG.model.size)


def mixture_of(model):
    """The numbers of a small model's corpus, as JSON."""
    return CONFIG.small.corpus(REPLICATIONS[model][1].variant)[0].model_dump_json()


def link_of(model):
    """The link that is planted in a small model's corpus, as JSON; null: none."""
    link = CONFIG.small.corpus(REPLICATIONS[model][1].variant)[1]
    return link and link.model_dump_json()


def base_checkpoint(model):
    """The checkpoint file that jobs on a replication wait for."""
    return [f"{base_path(model)}/model.safetensors"]


def base_files(wildcards):
    """The checkpoint file that a model job waits for."""
    return base_checkpoint(wildcards.model)


def base_path(model):
    """The canonical folder of a replication's base, trained here or given."""
    return f"{RESULTS}/models/{model}/base"


def problems_file(model):
    """The problem rows of a replication."""
    generated = f"{RESULTS}/models/{model}/problems.jsonl.gz"
    return generated if CONFIG.model.problems == "generated" else ancient(CONFIG.model.problems)


def verdicts_file(model):
    """The verdicts that all jobs of a replication share; deleting it costs time alone."""
    return f"{RESULTS}/cache/verdicts-{model}.sqlite"


def pool_manifest(pool):
    """The hashes of a teacher pool: one input for all its files, so that large DAGs plan fast."""
    return f"{RESULTS}/teacher_pool/{pool}/pool.json"


def pool_model(wildcards):
    """The replication whose teacher writes a pool; a pool without a row is that of the model of its name."""
    return TEACHER_POOLS.get(wildcards.pool, (wildcards.pool, None))[0]


def pool_modes(wildcards):
    """The loopholes of a pool's problems."""
    return list(TEACHER_POOLS.get(wildcards.pool, (None, CONFIG.pool.modes))[1])


def pair_file(name, model):
    """The pair-set file of a basis: by hand (the first folder that has it), or from the self-taught evaluator."""
    if name in GENERATED_PAIRS:
        return f"{RESULTS}/self_taught/{model}/pairs/{name}.yaml"
    if name not in PAIR_FILES:
        raise UserError(f"{name}: no basis and no pair set; {nearest(name, PAIR_FILES)}")
    return str(PAIR_FILES[name])


@cache
def pairs_digest(basis, whole=False):
    """Hash of the parsed pair set of a basis, whole and as selected by tag; generated sets are inputs instead.

    whole: the pairs count although the basis is random.
    """
    knobs = CONFIG.knobs(basis)
    if knobs.is_generated:
        return None
    return load_pairs(pair_file(knobs.pairs, None)).used(
        knobs.model_dump() | ({"control": "none"} if whole else {})
    )[1]


@cache
def seeded_bases():
    """File name -> (basis, seed) of the controls that are one per seed where seeds share a model."""
    names = [*CONFIG.bases, *PAIR_FILES]
    files = {CONFIG.basis_file(name, seed): (name, seed) for name in names for seed in SEEDS}
    return {file: found for file, found in files.items() if file != found[0]}


def basis_name(file):
    """The basis of a file name."""
    return seeded_bases().get(file, (file, None))[0]


def basis_seed(wildcards):
    """The seed of a basis's controls."""
    _, seed = seeded_bases().get(wildcards.basis, (None, None))
    return seed_of_model(wildcards.model) if seed is None else seed


def vanilla_cell(seed):
    """The id of a replication's vanilla run: the one of a question, which may be evaluated at its end, or one more."""
    return cells.add_cell(CELLS, CONTEXT.vanilla(seed)).id


def traced_cells(seed):
    """The ids of the runs that a replication's critic sees: those of a question, or more."""
    return [cells.add_cell(CELLS, cell).id for cell in CONTEXT.traced(seed)]


# Of the jobs from a base to its vanilla run, its critic and all bases: every other run waits for some of them.
CRITICAL = 1


@cache
def critical_cells(seed):
    """Ids of the runs which a replication's critic waits for."""
    return {cell.id for cell in CONTEXT.traced(seed)}


def run_priority(wildcards):
    """That of the runs which a replication's critic waits for, before all other runs."""
    return CRITICAL * (wildcards.cell in critical_cells(CELLS[wildcards.cell].seed))


def cell_model(wildcards):
    """The replication that a cell belongs to."""
    return CELLS[wildcards.cell].model


def cell_basis(wildcards):
    """The basis file of a cell, if its arm has one; the clean run's axes are one."""
    cell = CELLS[wildcards.cell]
    if cell.setting.needs.clean_run:
        return [f"{RESULTS}/clean/{cell.model}/axes.safetensors"]
    return [f"{RESULTS}/basis/{cell.model}/{cell.basis}.safetensors"] if cell.basis else []


def cell_base(wildcards):
    """The base checkpoint that a cell waits for."""
    return base_checkpoint(cell_model(wildcards))
