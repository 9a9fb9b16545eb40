"""Experiments: cells, the teacher pool, the replay probe, training runs. Knows nothing of Snakemake."""
