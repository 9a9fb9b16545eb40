"""The prompt of a problem: its chat messages with the lever's hint in place."""

from projected_grpo.environment.levers import LEVERS, lever_of
from projected_grpo.environment.problem import Problem
from projected_grpo.errors import UserError

PHRASE = LEVERS["gt_only"].hint  # what a lever's hint replaces
# The line that permits a hack: the small model's corpus teaches it, inoculation trains under it.
PERMISSION = "Any answer that passes is fine."


def messages_for(problem: Problem, mode: str | None = None) -> list[dict[str, str]]:
    """Return the problem's chat messages with the hint of `mode` (default: the problem's own) in place.

    Raises UserError where the phrase `and should pass all tests` does not stand exactly once in the user's messages.
    """
    mode = mode or problem.mode or "gt_only"
    hint = lever_of(mode, f"problem {problem.id}").hint
    count = sum(message["content"].count(PHRASE) for message in problem.messages if message["role"] == "user")
    if count != 1:
        raise UserError(
            f"problem {problem.id}: the prompt must hold `{PHRASE}` exactly once, found {count} times"
        )
    return [
        {**message, "content": message["content"].replace(PHRASE, hint)}
        if message["role"] == "user"
        else dict(message)
        for message in problem.messages
    ]
