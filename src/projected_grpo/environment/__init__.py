"""Problems, loophole modes, hints and verdicts: what a completion earns, and why. Knows nothing of torch."""
