"""Language models: load a checkpoint, run it on packed batches, sample from it. Knows nothing of hacks."""
