"""`projected-grpo basis MODEL PAIRS OUT`: a hack basis of any transformers model, for `projected_grpo.trl`."""

import argparse
import math
from pathlib import Path
from typing import Any

from projected_grpo.arguments import check_numbers, output_file, refuse_inputs
from projected_grpo.commands.help import add_command
from projected_grpo.errors import UserError

EXAMPLE = """\
example:
  projected-grpo basis Qwen/Qwen2.5-0.5B-Instruct config/pairs/own_mode.yaml own_mode.safetensors

With --adapter lora, a basis holds for the factors that it was made at. MODEL
may be a PEFT folder with a LoRA. For any other model a fresh LoRA is written
beside OUT, in a folder named as OUT without its suffix: load that and train
it. Where B = 0, A has no gradient, so a basis of a fresh LoRA covers B alone;
`refresh` sees both.
"""
RANK, ALPHA = 32, 64.0  # of a fresh LoRA


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `basis`."""
    about = "Extract the hack basis of a pair set at a model's weights, for projected_grpo.trl."
    words = "extract a hack basis from a model and a pair set, for use in TRL"
    parser = add_command(subparsers, write_basis, "basis", words, about, EXAMPLE)
    parser.add_argument(
        "model", metavar="MODEL", help="folder or hub id that transformers loads, or a PEFT LoRA"
    )
    parser.add_argument("pairs", type=Path, metavar="PAIRS", help="pair set, YAML")
    parser.add_argument("out", type=output_file, metavar="OUT", help="basis file to write, .safetensors")
    parser.add_argument(
        "--adapter", choices=("antipasto", "lora"), default="antipasto", help="what will be trained"
    )
    parser.add_argument(
        "--rank", type=int, default=RANK, metavar="R", help=f"of a fresh LoRA (default: {RANK})"
    )
    parser.add_argument(
        "--alpha", type=float, default=ALPHA, metavar="A", help=f"of a fresh LoRA (default: {ALPHA:g})"
    )
    parser.add_argument(
        "--top-k", type=int, default=12, metavar="K", help="axes stored at most (default: 12)"
    )
    parser.add_argument(
        "--tau", type=float, default=0.0, help="leave out axes below this share of the first one's S"
    )
    parser.add_argument("--method", choices=("svd", "mean_diff"), default="svd")
    parser.add_argument(
        "--control",
        choices=("none", "random", "clean_vs_clean", "within_class", "shuffled"),
        default="none",
        help="axes of the same shape that should do nothing",
    )
    parser.add_argument("--pairs-used", type=int, metavar="N", help="the first N pairs (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the control, and of a fresh LoRA")


def write_basis(args: argparse.Namespace) -> None:
    """Write the basis and, where one is begun here, the LoRA. Raises UserError on what cannot be read."""
    from projected_grpo.method.basis import Knobs
    from projected_grpo.method.pairs import load_pairs

    check_numbers(args, rank=1, top_k=1, seed=0)
    given = Path(args.model, "adapter_config.json").is_file()  # a LoRA to go on from
    if (given or args.adapter != "lora") and (args.rank, args.alpha) != (RANK, ALPHA):
        raise UserError("--rank, --alpha: of a fresh LoRA, allowed with --adapter lora and a whole model")
    if not 0 <= args.tau <= 1:  # nor is nan
        raise UserError(f"--tau {args.tau}: allowed: 0 to 1")
    if not 0 < args.alpha < math.inf:
        raise UserError(f"--alpha {args.alpha}: allowed: a finite number above 0")
    if args.out.suffix != ".safetensors":
        raise UserError(f"{args.out}: allowed: a file that ends in .safetensors")
    refuse_inputs("OUT", args.out, args.pairs, *Path(args.model).glob("*.safetensors"))
    lora = args.out.with_suffix("")  # a fresh one's folder
    if args.adapter == "lora" and not given:
        refuse_inputs("the LoRA's folder", lora, Path(args.model))
        if lora.is_file():
            raise UserError(f"{lora}: is a file, and the LoRA's folder would have its name")
    pairs = load_pairs(args.pairs)
    if args.pairs_used is not None:
        pairs = pairs.first(args.pairs_used)
    knobs = Knobs(args.top_k, args.tau, args.method, control=args.control, seed=args.seed)

    from transformers import AutoTokenizer

    from projected_grpo.integrations.pair_basis import extract_basis

    model = load_model(args, given)
    source = args.model
    if given and not Path(source, "tokenizer_config.json").is_file():  # as PEFT writes its folders
        source = model.active_peft_config.base_model_name_or_path
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError) as error:
        raise UserError(f"{source}: no tokenizer that transformers loads ({first_line(error)})") from error
    basis = extract_basis(model, tokenizer, pairs, knobs)
    basis.save(args.out)
    said = f"{len(basis.V)} modules, up to {max(map(len, basis.V.values()))} axes from {len(pairs)} pairs"
    if args.adapter == "lora" and not given:
        model.save_pretrained(lora)
        said += f"; LoRA to train: {lora}"
    print(f"{args.out}: {said}")


def load_model(args: argparse.Namespace, given: bool) -> Any:
    """Return the model with the adapter to be trained; given: MODEL is that adapter. Raises UserError."""
    import torch
    from peft import AutoPeftModelForCausalLM, LoraConfig, get_peft_model
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    from projected_grpo.integrations.antipasto import attach

    try:
        if given:
            if args.adapter != "lora":
                raise UserError(
                    f"{args.model}: a PEFT adapter, allowed with --adapter antipasto: a whole model"
                )
            return AutoPeftModelForCausalLM.from_pretrained(args.model, is_trainable=True)
        model = AutoModelForCausalLM.from_pretrained(args.model)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"{args.model}: no model that transformers loads ({first_line(error)})") from error
    if args.adapter == "antipasto":
        return attach(model)
    torch.manual_seed(args.seed)
    config = LoraConfig(
        r=args.rank, lora_alpha=args.alpha, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(model, config)


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
