"""Tokenizers, templates and end tokens of given bases come in as transformers has them, or are refused in one line."""

import json
from datetime import date

import pytest
import torch
from given import CHATML, brought, checkpoint, edit, refused, refused_base
from transformers import AutoModelForCausalLM, AutoTokenizer

from projected_grpo.model.load import load
from projected_grpo.model.sampler import sample, uniforms
from projected_grpo.model.tokenizer import Tokenizer

CHAT = [
    {"role": "system", "content": "Keep x < 3 & don't stop"},
    {"role": "user", "content": "t1"},
    {"role": "assistant", "content": "t2 é"},
    {"role": "user", "content": "t3"},
]


def test_a_token_beyond_the_vocabulary_is_one_line(tmp_path):
    """As where tokens were added and the embedding was not made larger."""
    base = tmp_path / "base"
    model = checkpoint(base, template="<|new|>" + CHATML)
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens = json.loads((base / "tokenizer.json").read_text())["added_tokens"]
    tokens += [{"id": 259 + i, "content": name, **added} for i, name in enumerate(("<|free|>", "<|new|>"))]
    edit(base / "tokenizer.json", added_tokens=tokens)
    assert model.config.vocab_size == 260
    match = r"base: token 260 \('<\|new\|>'\), allowed: below vocab_size 260"
    refused_base(match, base)
    (base / "chat_template.jinja").write_text(CHATML)  # other texts have it
    refused_base(match, base)
    edit(base / "tokenizer.json", added_tokens=tokens[:-1])
    brought(base)
    edit(base / "tokenizer_config.json", pad_token="<|pad|>")
    refused_base(r"base: token 260 \('<\|pad\|>'\), allowed", base)


def test_a_merge_beyond_the_vocabulary_is_one_line(base):
    model = json.loads((base / "tokenizer.json").read_text())["model"]
    merged = {"vocab": model["vocab"] | {"qz": 300}, "merges": [["q", "z"]]}
    edit(base / "tokenizer.json", model=model | merged)
    refused_base(r"token 300 \('qz'\), allowed", base)


def test_a_stored_truncation_cuts_nothing(base):
    text = " ".join(f"t{i}" for i in range(30))
    used = AutoTokenizer.from_pretrained(base)
    used([text], truncation=True, padding="max_length", max_length=8)
    used.save_pretrained(base)
    assert json.loads((base / "tokenizer.json").read_text())["truncation"]["max_length"] == 8
    out = brought(base)
    written = json.loads((out / "tokenizer.json").read_text())
    assert written["truncation"] is None and written["padding"] is None
    tokenizer = Tokenizer(out)
    assert tokenizer.encode(text) == AutoTokenizer.from_pretrained(base)(text)["input_ids"]
    assert len(tokenizer.encode(text)) > 30 and tokenizer.encode_batch([text]) == [tokenizer.encode(text)]


HEAD = "{% for m in messages %}<|im_start|>{{ m.role }}\n"
TAIL = (
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
TEMPLATES = {
    "plain": CHATML,
    "generation": HEAD + "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}" + TAIL,
    "year": "{{ strftime_now('%Y') }}\n" + HEAD + "{{ m.content }}" + TAIL,
    "eos_token": HEAD + "{{ m.content }}{{ eos_token }}{{ pad_token }}" + TAIL,
    "json": HEAD + "{{ m | tojson }}{{ m.content | tojson(indent=2) }}" + TAIL,
    "tools": "{% if tools is none and documents is defined %}none{% endif %}" + HEAD + "{{ m.content }}" + TAIL,
    "loops": "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
    "{% set ns.n = ns.n + 1 %}<|im_start|>{{ ns.n }}{{ m.role }}\n  {%- if loop.index > 9 %}{% break %}{% endif %}\n"
    "{{ m['content'].strip() + ' ' }}" + TAIL,
    "no system, by chance": "{% if messages[0].role == 'system' %}{{ 1 // 0 }}{% endif %}" + CHATML,
    "no system": "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}" + CHATML,
}  # fmt: skip
# As trainers write them: names of a message that are set in a generation, and set again before they are read.
ASSISTANT = "{% elif m.role == 'assistant' %}{% generation %}"
TRAINERS = {
    "a name set anew": "{% set content = m.content %}{% if m.role == 'user' %}{{ content }}" + ASSISTANT
    + "{% set content = content | upper %}{{ content }}{% endgeneration %}{% else %}{{ content }}{% endif %}",
    "a name of a loop inside": "{% set tool = 'b' %}{% if m.role == 'user' %}{{ m.content }}" + ASSISTANT
    + "{% for tool in [{'f': 1}] %}{% set tool = tool.f %}{{ tool }}{% endfor %}{{ m.content }}{% endgeneration %}"
    "{% endif %}{{ tool }}",
    "a name in plain text": "{% if m.role == 'user' %}Reply in <content> tags: {{ m.content }}" + ASSISTANT
    + "{% set content = m.content %}{{ content }}{% endgeneration %}{% endif %} content",
    "a namespace": "{% set ns = namespace(n=1) %}{% if m.role == 'user' %}{{ m.content }}" + ASSISTANT
    + "{% set ns.n = 2 %}{{ m.content }}{% endgeneration %}{% endif %}{{ ns.n }}",
    "a macro's own": "{% macro show(text) %}{{ text }}{% endmacro %}{% if m.role == 'user' %}{{ show(m.content) }}"
    + ASSISTANT + "{% set text = m.content %}{{ show(text) }}{% endgeneration %}{% endif %}",
    "set in every branch": "{% if m.role == 'user' %}{{ m.content }}" + ASSISTANT
    + "{% set x, y = 1, 2 %}{% endgeneration %}"
    "{% if m.content %}{% set x = 3 %}{% else %}{% set x = 4 %}{% endif %}{{ x }}{% endif %}",
}  # fmt: skip
TEMPLATES |= {name: HEAD + middle + TAIL for name, middle in TRAINERS.items()}
INSIDE = "{% if m.role == 'tool' %}{% generation %}{% set tail = 'B' %}{% endgeneration %}{% endif %}"


@pytest.mark.parametrize(
    "middle",
    [INSIDE + "{{ tail }}", INSIDE + "{% if m.x %}{% set tail = 1 %}{% endif %}{{ tail }}",
     INSIDE.replace("set tail", "set one, tail").replace("'B'", "1, 2") + "{{ tail }}",
     INSIDE.replace("= 'B' %}", "%}text{% endset %}") + "{% for part in [1] %}{{ part ~ tail }}{% endfor %}",
     INSIDE + "{% set tail = tail ~ 1 %}", INSIDE + "{% set tail %}{{ tail }}{% endset %}",
     INSIDE.replace("set tail = 'B'", "macro tail() %}{% endmacro") + "{{ tail is defined }}",
     "{% macro show() %}{{ tail }}{% endmacro %}" + INSIDE + "{{ show() }}",
     INSIDE + "{% generation %}{{ tail }}{% endgeneration %}"],
)  # fmt: skip
def test_a_name_that_transformers_forgets_is_refused_in_chats_that_are_not_compared(tmp_path, middle):
    checkpoint(tmp_path / "base", template=HEAD + "{{ m.content }}" + middle + TAIL)
    refused_base("sets 'tail' inside of {% generation %} and names it outside", tmp_path / "base")


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_written_for_transformers_gives_the_same_text(name, tmp_path):
    checkpoint(tmp_path / "base", template=TEMPLATES[name])
    out = brought(tmp_path / "base")
    theirs, tokenizer = AutoTokenizer.from_pretrained(tmp_path / "base"), Tokenizer(out)
    chat = CHAT[1:] if name.startswith("no system") else CHAT
    how = {"add_generation_prompt": True, "enable_thinking": False}
    assert tokenizer.chat(chat) == theirs.apply_chat_template(chat, tokenize=False, **how)
    if name == "no system":
        refused("does not take messages of system, user.*no system here", tokenizer.chat, CHAT)
    ids = AutoTokenizer.from_pretrained(out).apply_chat_template(chat, return_dict=False, **how)
    assert ids == tokenizer.encode_chat(chat)


def test_a_date_stays_that_of_the_door(tmp_path):
    checkpoint(tmp_path / "base", template=TEMPLATES["year"])
    out = brought(tmp_path / "base")
    settings = json.loads((out / "tokenizer_config.json").read_text())
    assert settings["today"] == date.today().isoformat()
    edit(out / "tokenizer_config.json", today="1999-01-02")
    assert Tokenizer(out).chat(CHAT).startswith("1999\n")
    checkpoint(tmp_path / "hour", template="{{ strftime_now('%s %f') }}" + CHATML)
    refused_base("another text here", tmp_path / "hour")


def test_pad_token_as_an_object(base):
    """As transformers 4 writes it."""
    token = {"__type": "AddedToken", "content": "<|endoftext|>", "lstrip": False, "normalized": False}
    edit(base / "tokenizer_config.json", pad_token=token | {"rstrip": False, "single_word": False})
    tokenizer = Tokenizer(brought(base))
    assert [tokenizer.pad] == tokenizer.encode("<|endoftext|>")


def test_a_prompt_of_another_template_is_refused(canonical):
    tokenizer = Tokenizer(canonical)
    assert tokenizer.chat("<|im_start|>user\nhi") == "<|im_start|>user\nhi"
    assert tokenizer.chat("hi") == tokenizer.chat([{"role": "user", "content": "hi"}])
    other = "<|start_header_id|>user<|end_header_id|>"
    refused(r"templated with <\|start_header_id\|>", tokenizer.chat, other)


BY_WORDS = {"type": "WordLevel", "vocab": {"[UNK]": 0, "so": 1, ",": 2, ".": 3}, "unk_token": "[UNK]"}
WORDS = {"model": BY_WORDS, "pre_tokenizer": {"type": "Whitespace"}, "decoder": None}
CLEANED = {"clean_up_tokenization_spaces": True}
OF_MERGES = CLEANED | {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True}
# A token that is special by the other file.
PLAIN = {"added_tokens_decoder": {"258": {"content": "<|im_start|>", "special": False}}}


@pytest.mark.parametrize(
    ("core", "settings", "match"),
    [(WORDS, CLEANED, "from ' , .* in place of ', "), ({}, OF_MERGES, "from .* 's so , .* in place of .*'s so, "),
     ({}, PLAIN, "from '<.im_start.>' in place of ''")],
)  # fmt: skip
def test_ids_that_transformers_decodes_to_another_text_are_refused(base, core, settings, match):
    edit(base / "tokenizer.json", **core)
    edit(base / "tokenizer_config.json", **settings)
    refused_base(f"base: ids are decoded to another text here than with transformers, {match}", base)


def test_a_cleaning_that_transformers_leaves_out_is_left_out(base):
    """Of merges it would take blanks that were in the text."""
    edit(base / "tokenizer_config.json", **CLEANED)
    tokenizer = Tokenizer(brought(base))
    assert tokenizer.decode(tokenizer.encode("so , it 's")) == "so , it 's"


@pytest.mark.parametrize("kind", ["Qwen2Tokenizer", "CodeLlamaTokenizer"])
def test_a_folder_without_a_vocabulary_is_one_line(base, kind):
    """Transformers makes one of special tokens, in which a text is nothing or unknown throughout."""
    (base / "tokenizer.json").unlink()
    edit(base / "tokenizer_config.json", tokenizer_class=kind)
    refused_base("base: the tokenizer has no vocabulary .*allowed: a folder with tokenizer.json", base)


def test_a_dropout_of_merges_is_of_training_alone(base):
    model = json.loads((base / "tokenizer.json").read_text())["model"]
    merged = model | {"vocab": model["vocab"] | {"zq": 259}, "merges": [["z", "q"]]}
    edit(base / "tokenizer.json", model=merged | {"dropout": 0.5})
    tokenizer = Tokenizer(brought(base))
    assert {tuple(tokenizer.encode("zq")) for _ in range(20)} == {(259,)}


def test_end_tokens_of_the_config_count_where_the_generation_config_names_none(base):
    ids = AutoTokenizer.from_pretrained(base).convert_tokens_to_ids(
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    )
    edit(base / "config.json", eos_token_id=ids[:2])
    (base / "generation_config.json").write_text('{"temperature": 0.7, "do_sample": true}')
    assert Tokenizer(brought(base)).ends == set(ids)


def test_an_end_token_that_no_file_names_is_not_made_up(tmp_path):
    """Transformers gives a llama the token 2, which is a sign of punctuation here."""
    base = tmp_path / "base"
    checkpoint(base, "llama")
    edit(base / "config.json", drop=["eos_token_id"])
    (base / "generation_config.json").write_text('{"temperature": 0.7, "do_sample": true}')
    refused_base("config.json: no eos_token_id, allowed: a config with all numbers", base)
    (base / "generation_config.json").write_text('{"eos_token_id": 256}')
    assert 2 not in Tokenizer(brought(base)).ends


@pytest.mark.parametrize(
    ("template", "said", "expected"),
    [(CHATML, None, ["<|im_end|>"]), (CHATML, ["<|endoftext|>"], ["<|im_end|>", "<|endoftext|>"]),
     (CHATML, ["<|endoftext|>", "<|im_end|>"], ["<|im_end|>", "<|endoftext|>"]),
     ("{% for m in messages %}[{{ m.role }}] {{ m.content }} {{ pad_token }}{% endfor %}", None,
      ["<|endoftext|>", "<|im_end|>"]),
     ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}", ["<|endoftext|>"], ["<|endoftext|>"]),
     (CHATML.replace("m.content", "m.content | upper"), None, ["<|im_end|>"]),
     (CHATML.replace("m.content", "m.content if m.role == 'user'"), None, ["<|im_end|>"]),
     ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}", None, ["<|im_end|>"])],
)  # fmt: skip
def test_end_tokens_are_that_of_a_turn_and_all_of_the_model(tmp_path, template, said, expected):
    checkpoint(tmp_path / "base", template=template)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "base")
    if said:
        ids = tokenizer.convert_tokens_to_ids(said)
        (tmp_path / "base/generation_config.json").write_text(json.dumps({"eos_token_id": ids}))
    out = brought(tmp_path / "base")
    found, wanted = Tokenizer(out), tokenizer.convert_tokens_to_ids(expected)
    assert found.end == wanted[0] and found.ends == set(wanted)
    assert AutoModelForCausalLM.from_pretrained(out).generation_config.eos_token_id == wanted


def test_a_row_stops_at_the_second_end_token_as_in_transformers(tmp_path):
    model = checkpoint(tmp_path / "base", tie_word_embeddings=False)
    first, second = 258, 256
    for name, p in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight", "lm_head.weight")):
            p.data.zero_()
        if "embed_tokens" in name or name == "model.norm.weight":
            p.data.fill_(1.0)
    model.lm_head.weight.data[second] = 9.0
    model.save_pretrained(tmp_path / "base")
    (tmp_path / "base/generation_config.json").write_text(json.dumps({"eos_token_id": [first, second]}))
    decoder, tokenizer = load(brought(tmp_path / "base"))
    drawn = sample(decoder, [[1, 2]], 1, uniforms(0, 0, 0, 1, 1, 7), 7, tokenizer.ends)[0].tokens
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    assert drawn == [second] == theirs.generate(torch.tensor([[1, 2]]), max_new_tokens=7)[0, 2:].tolist()
