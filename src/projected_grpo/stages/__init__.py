"""What rules make besides runs: teacher pool, replays, contrasts, marks of the small model."""
