"""Gradient projection against reward hacking in GRPO: the library behind the Snakemake pipeline.

Floors, each importing only from those below it: analysis, experiment (with self_taught), method, model,
environment, sandbox.
"""
