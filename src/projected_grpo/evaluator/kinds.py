"""The kinds of critic: the default one, and the others of the two-by-two by size and by variety of traces."""

from dataclasses import dataclass

from projected_grpo.cells.config import Config
from projected_grpo.cells.self_taught import ALIKE


@dataclass(frozen=True)
class CriticKind:
    """A critic of the two-by-two: on a base of another size, or taught by traces of the hacking run alone.

    size: a name under small.sizes, None for the replication's own; alike: without the traces of `gt_only`, which
    differ more. All kinds are measured on the same traces.
    """

    size: str | None = None
    alike: bool = False

    def of(self, model: str) -> str:
        """Return the folder below results/self_taught/ of this kind on a replication."""
        return "-".join([model, *filter(None, [self.size, ALIKE * self.alike])])


def critic_kinds(config: Config) -> tuple[CriticKind, ...]:
    """Return the default kind, then the others of the two-by-two, where the config asks for that."""
    second = config.self_taught.grid if config.self_taught.critic == "trained" and config.is_small else None
    kinds = (CriticKind(size, alike) for size in (None, second) for alike in (False, True))
    return tuple(kinds) if second else (CriticKind(),)
