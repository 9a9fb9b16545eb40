"""What rules make besides runs: replays, overlaps of bases, rankings of rollouts, rates of the small model."""
