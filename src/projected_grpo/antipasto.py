"""AntiPaSTO as a module that any transformers model carries: `attach(model)`, `export(model, folder)`."""

from projected_grpo.integrations.antipasto import AntiPaSTOLinear, attach, export

__all__ = ["AntiPaSTOLinear", "attach", "export"]
