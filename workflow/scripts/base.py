"""Corpus, tokenizer and base model of a replication, from its seed."""

from pathlib import Path

from projected_grpo.environment import families
from projected_grpo.job import job
from projected_grpo.model.pretrain import train_base
from projected_grpo.model.recipes import BaseRecipe
from projected_grpo.model.sealed import Saved, key_of
from projected_grpo.model.small_tokenizer import train_tokenizer

with job(snakemake) as log:
    params, seed = snakemake.params, snakemake.params.seed
    recipe, family = BaseRecipe.model_validate_json(params.recipe), families.load(params.family)
    mixture = family.Mixture.model_validate_json(params.mixture)
    link = params.link and family.Link.model_validate_json(params.link)
    texts = list(family.base_examples(seed, params.examples, mixture, link))
    folder = Path(snakemake.output.config).parent
    tokenizer = folder.with_name("tokenizer")
    # The exercises come first, they add nothing. A link changes no tokenizer.
    seen = [
        *list(family.base_examples(seed, params.examples, mixture))[-3000:],
        *family.teacher_examples(seed, 1500, mixture),
    ]
    train_tokenizer([text for example in seen for text in example], tokenizer)
    saved = Saved(params.checkpoint, key_of(params.code, seed, recipe, texts, snakemake.threads))
    losses = train_base(texts, tokenizer, folder, seed, recipe, snakemake.threads, saved)
    saved.remove()
    log.info("%d steps, mean loss of the last 50: %.3f", len(losses), sum(losses[-50:]) / len(losses[-50:]))
