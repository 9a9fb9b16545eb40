"""What every engine of the step benchmark runs: prompts, row lengths and rewards, the same for all.

Standard library alone, as it is imported in TRL's environment too. A worker reads one workload file, then does one
step for each line on standard input and answers with a JSON line of seconds.
"""

import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workload:
    """One step's work: `lengths[p][s]` tokens of sample s of prompt p, its end token included; a row of `max_new`
    tokens is cut, without one. The end token is the last of the vocabulary. model: checkpoint folder; repeats:
    steps that will be asked for, the warm-up included."""

    name: str
    model: str
    prompts: list[list[int]]
    lengths: list[list[int]]
    rewards: list[list[float]]
    max_new: int
    vocab: int
    repeats: int

    @property
    def group(self) -> int:
        return len(self.lengths[0])

    @property
    def rows(self) -> int:
        return len(self.prompts) * self.group

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens of the step: generated, and distinct tokens of the groups that have a gradient."""
        live = [p for p, r in enumerate(self.rewards) if len(set(r)) > 1]
        trained = sum(len(self.prompts[p]) + sum(self.lengths[p]) for p in live)
        return {
            "prompt": sum(map(len, self.prompts)),
            "generated": sum(map(sum, self.lengths)),
            "trained": trained,
        }

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(path: str | Path) -> "Workload":
        return Workload(**json.loads(Path(path).read_text()))


class Clock:
    """CPU seconds of all threads of this process, wall seconds and peak memory of each step, answered as JSON."""

    def __init__(self):
        print(json.dumps({"ready": True}), flush=True)

    def wait(self) -> bool:
        """Waits for the next command; False when there are no more."""
        asked = bool(sys.stdin.readline())
        self.cpu, self.wall = time.process_time(), time.perf_counter()
        return asked

    def answer(self, phases: dict[str, float]) -> None:
        answer = {"cpu": time.process_time() - self.cpu, "wall": time.perf_counter() - self.wall}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({**answer, "phases": phases, "peak_mb": peak}), flush=True)


def serve(step) -> None:
    """Runs `step()`, which returns seconds by phase, once per input line."""
    clock = Clock()
    while clock.wait():
        clock.answer(step())
