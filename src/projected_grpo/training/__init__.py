"""One GRPO run, from its groups to its files."""
