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
    """One step's work: `completions[p][s]` are the tokens of sample s of prompt p, which every engine is made to
    draw; a row of `max_new` tokens is cut, any other ends in the end token, the last of the vocabulary. model:
    checkpoint folder; repeats: steps that will be asked for, the warm-up included."""

    name: str
    model: str
    prompts: list[list[int]]
    completions: list[list[list[int]]]
    rewards: list[list[float]]
    max_new: int
    vocab: int
    repeats: int

    @property
    def group(self) -> int:
        return len(self.completions[0])

    @property
    def rows(self) -> list[tuple[list[int], list[int]]]:
        """Prompt and completion of every row."""
        groups = zip(self.prompts, self.completions, strict=True)
        return [(prompt, row) for prompt, group in groups for row in group]

    @property
    def decoded(self) -> list[int]:
        """How many distinct prefixes are decoded at each position: rows that are alike so far count once."""
        return [
            len({(*prompt, *row[:t]) for prompt, row in self.rows if len(row) > t})
            for t in range(1, max(len(row) for _, row in self.rows))
        ]

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens of the rows, and what of them a step cannot do without: distinct prefixes that precede a token,
        in prompts, and in groups that have a gradient (`trained`; `predicting` those before a completion token)."""
        live = [
            (prompt, row)
            for prompt, group, rewards in zip(self.prompts, self.completions, self.rewards, strict=True)
            if len(set(rewards)) > 1
            for row in group
        ]
        trained = {(*p, *row)[:n] for p, row in live for n in range(1, len(p) + len(row))}
        predicting = {(*p, *row[:n]) for p, row in live for n in range(len(row))}
        return {
            "prompt": len({tuple(p[: n + 1]) for p in self.prompts for n in range(len(p))}),
            "generated": sum(len(row) for _, row in self.rows),
            "trained": len(trained),
            "predicting": len(predicting),
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

    def answer(self, phases: dict[str, float], **more: float) -> None:
        answer = more | {"cpu": time.process_time() - self.cpu, "wall": time.perf_counter() - self.wall}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({**answer, "phases": phases, "peak_mb": peak}), flush=True)


def serve(step) -> None:
    """Runs `step()`, which returns seconds by phase, once per input line."""
    clock = Clock()
    while clock.wait():
        clock.answer(step())
