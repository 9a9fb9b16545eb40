"""The small model's tokenizer: a byte-level BPE trained on its own corpus, with a chat template."""

import os
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from projected_grpo.files import atomic_folder, write_json
from projected_grpo.model.tokenizer import GENERATION

VOCABULARY = 768
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
# A newline with the indentation after it | letters | one digit | punctuation | one blank: indentation, words and
# numbers never share a token, so that the same code always splits the same way.
SPLIT = r"\n *| ?[A-Za-z]+| ?\d| ?[^\sA-Za-z\d]+|\s"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train_tokenizer(texts: Iterable[str], folder: str | os.PathLike, vocabulary: int = VOCABULARY) -> None:
    """Train on `texts` and write the tokenizer's files of a canonical folder, which `AutoTokenizer` reads, too."""
    from transformers import PreTrainedTokenizerFast  # seconds to import

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = TEMPLATE
    with atomic_folder(folder) as temporary:
        tokenizer.save_pretrained(str(temporary))
        ids = {"eos_token_id": [bpe.token_to_id(END)], "pad_token_id": bpe.token_to_id(PAD)}
        write_json(temporary / GENERATION, ids)
