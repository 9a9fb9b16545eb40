"""Corpus, tokenizer and base model of a replication, from its seed."""

from pathlib import Path

from projected_grpo.environment.corpus import base_examples, teacher_examples
from projected_grpo.job import job
from projected_grpo.model.pretrain import BaseRecipe, train_base
from projected_grpo.model.small_tokenizer import train_tokenizer

with job(snakemake) as log:
    seed, recipe = snakemake.params.seed, BaseRecipe()
    texts = list(base_examples(seed, snakemake.params.examples))
    folder = Path(snakemake.output.config).parent
    tokenizer = folder.with_name("tokenizer")
    seen = [*texts[-3000:], *teacher_examples(seed, 1500)]  # the exercises come first, they add nothing
    train_tokenizer([text for example in seen for text in example], tokenizer)
    losses = train_base(texts, tokenizer, folder, seed, recipe, snakemake.threads)
    log.info("%d steps, mean loss of the last 50: %.3f", len(losses), sum(losses[-50:]) / len(losses[-50:]))
