"""A given adapter as PEFT reads and merges it. What PEFT leaves out, or cannot merge exactly, is refused here."""

import re
import warnings
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from projected_grpo.errors import UserError
from projected_grpo.files import read_json
from projected_grpo.model.given import in_a_line, read_by_others, upcast
from projected_grpo.model.given_codes import PLAIN
from projected_grpo.model.offered import ADAPTER

# Options of all kinds of adapters that say how strong one is, or from where its fixed numbers are drawn.
STRENGTH = re.compile(r"r|scaling|(.*_)?(alpha|seed|prng_key)")
# Options that PEFT has on and that change nothing in a file without them.
IDLE = re.compile(r"bias|init_.*|megatron_core|qalora_group_size")


def read_adapter(model: nn.Module, folder: Path, as_it_is: bool = False) -> nn.Module:
    """Return the model with PEFT's adapter on it. Raises UserError where a key of file or model found no partner.

    as_it_is: of any kind, for one that PEFT itself will run.
    """
    from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
    from peft.utils import load_peft_weights

    _, weights = ADAPTER.files
    if not any((folder / name).is_file() for name in weights):  # of a relative name PEFT would ask the hub
        raise UserError(f"{folder}: cannot be read (no {' or '.join(weights)} in it)")
    with read_by_others(folder), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        _check_options(folder)
        adapted = PeftModel.from_pretrained(model, str(folder)).eval()
        file = load_peft_weights(str(folder), device="cpu")
        if not as_it_is:
            upcast(adapted)
            set_peft_model_state_dict(adapted, file)  # what PEFT rounded to the base's dtype as it loaded
        asked = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    config = adapted.active_peft_config
    if not as_it_is and getattr(config, "is_prompt_learning", False):
        kind = config.peft_type
        raise UserError(f"{folder}: peft_type: {kind!r}, allowed: an adapter that can be merged into weights")
    if not as_it_is and getattr(config, "layer_replication", None):
        said = f"layer_replication: {config.layer_replication}"
        raise UserError(f"{folder}: {said}, allowed: an adapter of the base's own layers")
    init = getattr(config, "init_lora_weights", None)
    if isinstance(init, str) and "_niter_" in init:
        raise UserError(
            f"{folder}: init_lora_weights: {init!r}, of which PEFT draws what it takes out of the base by chance at "
            "each loading; allowed: 'pissa', or the adapter converted to a plain one"
        )
    if init == "lora_ga":
        raise UserError(
            f"{folder}: init_lora_weights: 'lora_ga', whose start PEFT takes out of the base when training begins and "
            "not when it loads; allowed: the adapter converted to a plain one"
        )
    for warning in warned:
        text = str(warning.message).strip().splitlines()[0]
        if "adapter keys" in text:
            raise UserError(f"{folder}: PEFT did not load it whole ({text[:200]})")
        if "retrain your adapter" in text:
            raise UserError(f"{folder}: PEFT does not run it as it was trained ({text[:200]})")
    for key in sorted(asked.keys() & file.keys()):
        if asked[key].is_floating_point() and file[key].dtype not in PLAIN:
            raise UserError(f"{folder}: {key} is {file[key].dtype} in the file, allowed: plain weights")
    everything = adapted.state_dict()
    lacking = sorted(asked.keys() - file.keys())
    astray = sorted(key for key in file.keys() - asked.keys() if not _same(everything.get(key), file[key]))
    for keys, what in ((lacking, "are missing"), (astray, "fit no module of the model")):
        if keys:
            raise UserError(f"{folder}: {len(keys)} keys of the adapter {what}, first {keys[0]}")
    return adapted


def _check_options(folder: Path) -> None:
    """Raise UserError where `adapter_config.json` leaves its numbers to PEFT, or has an option of a later one."""
    from peft import PeftConfig

    path = folder / "adapter_config.json"
    said = read_json(path)
    known = {field.name: field.default for field in fields(PeftConfig.from_pretrained(str(folder)))}
    for key, default in known.items():
        lacks = key not in said or (said[key] is None and default is not None)
        is_on = default and default is not MISSING and not IDLE.fullmatch(key)
        if lacks and (is_on or STRENGTH.fullmatch(key)):
            raise UserError(f"{path}: no {key}, allowed: an adapter that says its strength, seeds and form")
    for key, value in said.items():
        if value and key not in known:
            raise UserError(
                f"{path}: {key}: {value!r}, which PEFT does not know; allowed: what the installed one knows, or null"
            )


def merged(adapted: Any, folder: Path) -> Any:
    """Return the plain model with the adapter in its weights. Raises UserError where PEFT cannot.

    PEFT adds to a tensor what its module got: modules that share one, as a tied head does, get their own before.
    """
    tied, seen = adapted.get_base_model().config.tie_word_embeddings, set()
    for module in adapted.modules():
        for name, p in module.named_parameters(recurse=False):
            if id(p) in seen:
                module._parameters[name] = nn.Parameter(p.detach().clone(), requires_grad=False)
            seen.add(id(p))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that they are no longer tied
            model = adapted.merge_and_unload(safe_merge=True)
    except Exception as error:  # whatever an adapter's kind raises
        raise UserError(f"{folder}: PEFT cannot merge it ({in_a_line(error)})") from error
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if tied and torch.equal(head.weight, embedding.weight):
        head.weight = embedding.weight
    return model


def _same(a: Tensor | None, b: Tensor) -> bool:
    return a is not None and a.shape == b.shape and torch.equal(a.cpu().to(b.dtype), b)
