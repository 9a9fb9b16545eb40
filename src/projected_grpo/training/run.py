"""What a run holds while it trains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from projected_grpo.arms import Arm, Messages
from projected_grpo.cells.hyper import Training
from projected_grpo.cells.setting import Setting
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import KIND
from projected_grpo.environment.problems import Problem
from projected_grpo.environment.prompts import messages_for
from projected_grpo.method.optimizer import AdamW
from projected_grpo.method.policy import Policy
from projected_grpo.training.graded import Graded


@dataclass
class Run:
    """Everything a run needs, loaded. `pool`: problem id (as text) -> its teacher rows.

    critic: which of some (problem's text, row) the self-taught critic flags, where the arm has it for its monitor.
    """

    seed: int
    setting: Setting
    training: Training
    policy: Policy
    problems: list[Problem]
    pool: dict[str, list[Graded]]
    grader: Grader
    arm: Arm
    optimizer: AdamW
    critic: Callable[[Sequence[tuple[str, Mapping]]], list[bool]] | None = None
    prompts: dict[str, list[int]] = field(init=False)  # by problem id: sampled under
    train_prompts: dict[str, list[int]] = field(init=False)  # the gradient is taken under

    def __post_init__(self) -> None:
        plain = {str(problem.id): messages_for(problem) for problem in self.problems}
        encode = self.policy.tokenizer.encode_chat
        tokens = {id: encode(messages) for id, messages in plain.items()}

        def encoded(change: Callable[[Messages], Messages]) -> dict[str, list[int]]:
            changed = {id: change(messages) for id, messages in plain.items()}
            return {id: tokens[id] if changed[id] == plain[id] else encode(changed[id]) for id in plain}

        self.prompts, self.train_prompts = encoded(self.arm.prompt), encoded(self.arm.train_prompt)

    @property
    def modes(self) -> list[str]:
        """The loopholes of its problems, each by its first name."""
        return sorted({KIND[problem.mode] for problem in self.problems if problem.mode})
