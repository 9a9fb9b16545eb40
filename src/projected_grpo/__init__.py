"""Gradient projection against reward hacking in GRPO: the library behind the Snakemake pipeline.

Floors, each importing only from those below it: pages, measures, evaluator, stages, training, arms,
cells, method, model, environment, sandbox.
"""
