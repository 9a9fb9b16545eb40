"""`projected-grpo export RUN OUT`: what a run trained, as a folder that PEFT or transformers loads."""

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from projected_grpo.commands.help import add_command
from projected_grpo.commands.trained import BASE_HELP, RUN_HELP, Trained, read_trained
from projected_grpo.errors import UserError
from projected_grpo.files import atomic_folder, write_json, write_text
from projected_grpo.linked import check_read

if TYPE_CHECKING:
    from projected_grpo.model.tokenizer import Tokenizer

EXAMPLE = """\
example:
  projected-grpo export results/grpo/vanilla-m0.125-s41 my-model --merged
  python -c "from transformers import AutoModelForCausalLM as M; print(M.from_pretrained('my-model'))"

Without --merged, OUT is a PEFT adapter on the run's base, which goes with it
as OUT/base. AntiPaSTO is exported as the LoRA that it is, of full rank, so at
paper scale --merged is the smaller folder. What the run's arm deploys is
written: a quarantine is left out.
"""


LOADER = "from transformers import AutoModelForCausalLM"
BASE = "base"  # folder of an exported adapter that has its base
SHOWN = ("main", "deployed")  # groups of measures on the card
CARD = """\
---
library_name: {library}
tags: [grpo, reward-hacking]
---
# {cell.id}

A model organism for research on reward hacking: trained by GRPO on problems whose grader can be fooled.
Trained by projected_grpo (commit {record[commit]}, {record[date]}), replication `{cell.model}`, seed {cell.seed}, \
{cell.steps} steps.
Its base is `{cell.model}`{beside}. Where the base was given, the licence and notice of its weights hold for these \
too, which training changed. To load it, in this folder:

```python
{loading}
```

Rates of this one run, so without an interval: in its last steps, and on other problems after training.

| of this run | |
|---|---|
{rates}

```json
{settings}
```
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `export`."""
    about = "Write what a run deploys as a folder with a model card: a PEFT adapter, or a whole checkpoint."
    words = "write a trained run as a PEFT adapter or a checkpoint"
    parser = add_command(subparsers, export, "export", words, about, EXAMPLE)
    parser.add_argument("folder", type=Path, metavar="RUN", help=RUN_HELP)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write; must not exist")
    parser.add_argument("--merged", action="store_true", help="write the whole model, adapter merged in")
    parser.add_argument("--base", help=BASE_HELP)


def export(args: argparse.Namespace) -> None:
    """Write the folder. Raises UserError on what cannot be read, or where OUT exists."""
    if args.out.exists():
        raise UserError(f"{args.out}: exists already, allowed: a new folder")
    trained = read_trained(args.folder, args.base)
    text = card(trained, args.merged)  # its rates are read before anything is written
    from projected_grpo.method.peft_export import save_peft
    from projected_grpo.model.load import copy_tokenizer, save_weights

    policy = trained.policy
    with atomic_folder(args.out) as folder:
        if args.merged:
            save_weights(trained.model, folder)
            said = "checkpoint"
        else:
            rank = save_peft(policy.adapter, policy.theta, BASE, folder)
            shutil.copytree(trained.base, folder / BASE)
            said = f"PEFT adapter of rank {rank} on {trained.base}"
        copy_tokenizer(trained.base, folder)
        write_generation_config(policy.tokenizer, folder)
        write_text(folder / "README.md", text)
    print(f"{args.out}: {said}")


def loading(merged: bool) -> str:
    """Return the Python lines that load the folder, run in it: whatever its name, they hold."""
    if merged:
        return f'{LOADER}\n\nmodel = AutoModelForCausalLM.from_pretrained(".")'
    return (
        f"from peft import PeftModel\n{LOADER}\n\n"
        f'base = AutoModelForCausalLM.from_pretrained("{BASE}")\n'
        f'model = PeftModel.from_pretrained(base, ".")'
    )


def write_generation_config(tokenizer: "Tokenizer", folder: Path) -> None:
    """Write how the pipeline samples: temperature 1, the whole vocabulary, up to any of the end tokens."""
    sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    ends = [tokenizer.end, *sorted(tokenizer.ends - {tokenizer.end})]
    tokens = {"eos_token_id": ends, "pad_token_id": tokenizer.pad}
    write_json(folder / "generation_config.json", {**sampling, **tokens})


def card(trained: Trained, merged: bool) -> str:
    """Return the model card: what was trained on what, how to load it, and the run's rates.

    Raises UserError where the run is not whole, or a file that the rates are of is not as it was made.
    """
    from pydantic import ValidationError

    from projected_grpo.cells.cell import Cell
    from projected_grpo.measures.measure import MEASURES, ROLLOUTS, STEPS
    from projected_grpo.measures.panels import DEPLOYED
    from projected_grpo.measures.runs import load_run
    from projected_grpo.measures.steps import Incomplete
    from projected_grpo.schema_errors import key_path, keys_of

    record = trained.record
    names = {"id": record["cell"], "model": record["model"], "pool": record["model"]}
    folder = trained.results / "grpo" / record["cell"]
    try:
        cell = Cell.model_validate(record["settings"] | names, strict=False)
    except ValidationError as error:
        wrong = key_path(keys_of(error.errors()[0]))
        raise UserError(
            f"{folder / 'run.json'}: settings.{wrong}: of another version of this code"
        ) from error
    check_read(*(folder / name for name in (STEPS, ROLLOUTS, DEPLOYED) if (folder / name).exists()))
    try:
        rates = load_run(trained.results, cell).measures
    except Incomplete as error:
        raise UserError(f"{folder}: no whole run ({error})") from error
    shown = [name for name in rates if MEASURES[name].unit == "share" and MEASURES[name].group in SHOWN]
    lines = [f"| {MEASURES[name].words} | {rates[name]:.3f} |" for name in shown]
    return CARD.format(
        library="transformers" if merged else "peft",
        cell=cell,
        record=record,
        beside="" if merged else f", here in `{BASE}`",
        loading=loading(merged),
        rates="\n".join(lines),
        settings=json.dumps(record["settings"], indent=2),
    )
