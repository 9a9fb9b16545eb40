"""The method: adapters, per-sample gradients, hack basis, projection, the GRPO loss. No rewards, no problems."""
