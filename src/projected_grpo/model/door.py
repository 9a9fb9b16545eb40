"""The door for given models: read by transformers and PEFT, written as canonical folders, held against the originals.

Whatever comes in (a folder, a hub id, a GGUF file, one in a wheel; any adapter that PEFT can merge), what follows
reads canonical folders alone (`model.load`).
"""

from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from tokenizers import Tokenizer as Core
from torch import nn

from projected_grpo.errors import UserError
from projected_grpo.files import atomic_folder, read_json, write_json, write_text
from projected_grpo.hub import checkpoint_digest
from projected_grpo.model import agreement, given, given_adapter
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.given_tokenizer import read_tokenizer
from projected_grpo.model.load import (
    DTYPES,
    WEIGHTS,
    check_digests,
    copy_tokenizer,
    save_weights,
    write_digests,
)
from projected_grpo.model.template import Template
from projected_grpo.model.tokenizer import GENERATION, NO_DATE, SETTINGS, TEMPLATE, Tokenizer
from projected_grpo.model.wheel import Wheel

TRAINED_ON = "trained_on.json"  # in the folder of a published adapter, beside its digests
# key of a config -> a Linear that has a bias where it is true; some families read no such key
BIASED = {"attention_bias": "model.layers.0.self_attn.o_proj", "mlp_bias": "model.layers.0.mlp.up_proj"}


def bring_base(source: str | Wheel, out: Path, dtype: str, whole: bool = False) -> agreement.Agreement:
    """Write the canonical folder `out` of a given model, its weights in `dtype`; return how far the forwards differ.

    whole: compare all layers of a model above a billion parameters, too. Raises UserError, one line, for what is not
    run, is damaged or differs.
    """
    name = source.wheel if isinstance(source, Wheel) else source
    with given.read_by_others(name), given.opened(source) as where, atomic_folder(out) as folder:
        theirs = read_tokenizer(where, name)
        model = given.read_model(where, name)
        # A generation config may hold settings of sampling alone.
        ends = _ids(model.generation_config.eos_token_id) or _ids(model.config.eos_token_id)
        if wrong := [end for end in ends if type(end) is not int or end < 0]:
            raise UserError(f"{name}: eos_token_id {wrong[0]!r}, allowed: ids of the vocabulary")
        _write_tokenizer(theirs, ends, folder, name)
        ours = _tokenizer(folder, name)
        rows = agreement.token_rows(ours, theirs, name)
        config = _config(model, name)
        highest = max(*ours.ends, *ours.core.get_vocab().values())
        if highest >= config.vocab_size:
            raise UserError(
                f"{name}: token {highest} ({ours.core.id_to_token(highest)!r}), allowed: below vocab_size "
                f"{config.vocab_size}"
            )
        _write_weights(model, config, folder, dtype, name)
        wanted = agreement.reference(model, rows, name, agreement.compared(model, whole))
        return agreement.compare(_decoder(model, config), wanted, name)


def bring_teacher(
    adapter: str, base: Path, out: Path, dtype: str, whole: bool = False
) -> agreement.Agreement:
    """Write the canonical folder `out` of a PEFT adapter (folder or hub id), merged in float32 into a canonical base.

    The decoder on the merged weights is held against PEFT's unmerged model. Raises UserError as `bring_base`, and
    for an adapter that cannot be merged exactly or changes nothing.
    """
    with given.read_by_others(adapter), atomic_folder(out) as folder:
        source = given.find(adapter, "adapter_config.json")
        check_digests(base)
        _check_published(source, base)
        copy_tokenizer(base, folder)
        where, name = {"pretrained_model_name_or_path": str(base)}, str(base)
        rows = agreement.token_rows(_tokenizer(folder, name), read_tokenizer(where, name), name)
        model = given.read_model(where, name)
        before = agreement.reference(model, rows, name, agreement.compared(model, whole))
        del model  # in float32 now; what PiSSA takes out of a base is rounded as the base is
        adapted = given_adapter.read_adapter(given.read_model(where, name), source)
        wanted = agreement.reference(adapted, rows, adapter, before.layers)
        model = given_adapter.merged(adapted, source)
        config = _config(model, adapter)
        found = agreement.compare(_decoder(model, config), wanted, adapter)

        def is_the_base() -> bool:
            if before.layers is None:
                return agreement.apart(_decoder(model, config), before, adapter) <= wanted.bound
            return _holds(base, model)  # what was compared is not the whole of it

        same = is_the_base()
        for p in model.parameters():  # as they are written, in float32
            p.data = p.data.to(DTYPES[dtype]).float()
        if same or (dtype != "float32" and is_the_base()):
            raise UserError(
                f"{adapter}: its log-probabilities are the base's, allowed: an adapter that changes them"
                f"{'' if dtype == 'float32' else f' once its weights are rounded to {dtype}'}"
            )
        _write_weights(model, config, folder, dtype, adapter)
        return found


def _check_published(adapter: Path, base: Path) -> None:
    """Raise UserError where an adapter that says what it was trained on is damaged, or `base` is another one."""
    said = adapter / TRAINED_ON
    if not said.is_file():
        return
    check_digests(adapter)
    if (wanted := read_json(said)["base"]) != (found := checkpoint_digest(str(base))):
        raise UserError(
            f"{said}: base: {wanted}, but that of {base} is {found}; allowed: model.teacher: small"
        )


def _config(model: Any, source: str) -> Config:
    """The config of what transformers holds, which may differ from what the file says: a tied head, biases."""
    weights = given.named_weights(model)
    said = model.config.to_dict() | {
        "tie_word_embeddings": given.is_tied(model),
        **{key: f"{part}.bias" in weights for key, part in BIASED.items()},
    }
    return Config.from_dict(said, f"{source}: config.json")


def _tokenizer(folder: Path, source: str) -> Tokenizer:
    """The tokenizer of the folder that is being written, on today's date; what it refuses names the given model."""
    tokenizer = Tokenizer(folder)
    text, special = (folder / TEMPLATE).read_text(encoding="utf-8"), tokenizer.template.special
    # A base that came in on another day keeps that date, and transformers, with which it is compared, has today's.
    tokenizer.template = Template(text, special, date.today(), f"{source}: chat template")
    return tokenizer


def _holds(folder: Path, model: nn.Module) -> bool:
    """Return whether a canonical folder has the very weights of a model."""
    weights = given.named_weights(model)
    with safe_open(folder / WEIGHTS, "pt") as file:
        return weights.keys() == set(file.keys()) and all(
            torch.equal(W, file.get_tensor(name).float()) for name, W in weights.items()
        )


def _decoder(model: nn.Module, config: Config) -> Decoder:
    """The decoder on the very tensors of a transformers model, as many layers as it was asked to run."""
    return Decoder(config, given.named_weights(model))


def _write_weights(model: nn.Module, config: Config, folder: Path, dtype: str, source: str) -> None:
    weights, wanted = given.named_weights(model), shapes(config)
    for name in sorted(weights.keys() ^ wanted.keys()):
        lack = "no such weight in the checkpoint" if name in wanted else "no such weight in the family"
        raise UserError(f"{source}: {name}: {lack} {config.model_type}")
    written = {name: W.to(DTYPES[dtype]) for name, W in weights.items()}
    for name, W in written.items():
        if tuple(W.shape) != wanted[name]:
            raise UserError(f"{source}: {name} is {tuple(W.shape)}, allowed: {wanted[name]}")
        if not W.isfinite().all():
            raise UserError(
                f"{source}: {name} has weights that are not finite in {dtype}, allowed: finite ones"
            )
    save_weights(Decoder(config, written), folder)
    write_digests(folder)


def _ids(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _write_tokenizer(theirs: Any, ends: list[int], folder: Path, source: str) -> None:
    """Write transformers' tokenizer as plain files, and the end tokens: that of a turn first, then the model's own."""
    from transformers import PreTrainedTokenizerFast

    core = Core.from_str(theirs.backend_tokenizer.to_str())
    core.no_truncation()
    core.no_padding()
    special = {k: str(v) for k, v in theirs.special_tokens_map.items() if k.endswith("_token")}
    plain = PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False, **special)
    template = theirs.get_chat_template()
    plain.chat_template = template
    plain.save_pretrained(str(folder))
    core.save(str(folder / "tokenizer.json"))
    write_text(folder / TEMPLATE, template)
    dated = {"today": date.today().isoformat()} if "strftime_now" in template else {}
    write_json(folder / SETTINGS, read_json(folder / SETTINGS) | dated)
    today = date.fromisoformat(dated["today"]) if dated else NO_DATE
    turn = end_of_turn(Template(template, special, today, f"{source}: chat template"), core)
    if turn is None and not ends and theirs.eos_token_id is None:
        raise UserError(f"{source}: eos_token_id: none, allowed: a model that ends its answers with a token")
    every = [*([] if turn is None else [turn]), *ends, *([] if ends else _ids(theirs.eos_token_id))]
    pad = every[0] if theirs.pad_token_id is None else theirs.pad_token_id
    write_json(folder / GENERATION, {"eos_token_id": list(dict.fromkeys(every)), "pad_token_id": pad})


def end_of_turn(template: Template, core: Core) -> int | None:
    """Return the special token that a template writes behind an answer; None where it writes none.

    What is behind it is what the texts of two answers have in common at their ends, in whatever form they stand there.
    """
    question = {"role": "user", "content": "a question"}
    one, other = (
        template.render([question, {"role": "assistant", "content": answer}], add_generation_prompt=False)
        for answer in ("the answer itself", "another one")
    )
    if one == other:  # the answer is not in it
        return None
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(reversed(one), reversed(other), strict=False))
    behind = one[len(one) - len(list(shared)) :].lstrip()
    special = {token.content: i for i, token in core.get_added_tokens_decoder().items() if token.special}
    found = [token for token in special if behind.startswith(token)]
    return special[max(found, key=len)] if found else None
