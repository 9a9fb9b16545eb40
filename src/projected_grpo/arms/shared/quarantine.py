"""Arms with a second adapter that trains beside the first and is left out at deployment (docs/method.md, "Routing")."""

from typing import TYPE_CHECKING, Any, ClassVar

from projected_grpo.arms import Arm, Given

if TYPE_CHECKING:
    from projected_grpo.arms import Family
    from projected_grpo.method.adapter import Parameters


class Quarantined(Arm):
    """Holds delta_S_hack; both act while training, delta_S alone is deployed."""

    if TYPE_CHECKING:
        family: ClassVar[Family]
    family = "quarantine"

    def __init__(self, knobs: Any, given: Given):
        super().__init__(knobs, given)
        self.quarantine = given.policy.adapter.zeros()
        self.optimizer = given.optimizer(self.quarantine)

    def sampled_theta(self, theta: "Parameters") -> "Parameters":
        return {name: value + self.quarantine[name] for name, value in theta.items()}

    def park(self, gradient: "Parameters", direction: "Parameters", lr: float) -> None:
        """Train the quarantine, by an optimizer of its own, on what `split_gradient` took out."""
        self.train_quarantine(self.optimizer.direction(self.filled(gradient)), lr)

    def train_quarantine(self, direction: "Parameters", lr: float) -> None:
        """Move the quarantine by -lr times a direction, which may leave modules out."""
        self.quarantine = self.optimizer.apply(self.quarantine, self.filled(direction), lr)

    def filled(self, vectors: "Parameters") -> "Parameters":
        """Return the vectors of all modules, zero where there is none."""
        return {name: vectors.get(name, zero) for name, zero in self.given.policy.adapter.zeros().items()}

    def columns(self) -> dict[str, float | None]:
        from projected_grpo.method.optimizer import total_norm

        return {**super().columns(), "delta_hack_norm": total_norm(self.quarantine)}

    def stored(self) -> "dict[str, Parameters]":
        return {"delta_S_hack": self.quarantine}

    def state(self) -> dict:
        return {**super().state(), "quarantine": self.quarantine, "optimizer": self.optimizer.state()}

    def load(self, state: dict) -> None:
        super().load(state)
        self.quarantine = state["quarantine"]
        self.optimizer.load(state["optimizer"])
