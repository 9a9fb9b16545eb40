"""How often a model uses the lever it is told of: `loopholes` and `levers` of inspect_ai (docs/inspect.md)."""

from projected_grpo.integrations.loopholes import levers, loopholes

__all__ = ["levers", "loopholes"]
