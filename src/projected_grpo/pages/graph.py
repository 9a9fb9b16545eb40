"""The graph of rules behind a results tree, read from its records and drawn as SVG.

Rules stand in layers, each below all that it reads; within a layer they are ordered by the mean place of what they
read. Edges that follow from others are left out. Rules may read each other in turn (the self-taught evaluator reads
vanilla runs, and other runs read its pairs): of such edges those against the order in which the rules first ended are
dashed.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from projected_grpo.errors import UserError
from projected_grpo.records import FOLDER, read_sealed

WIDTH, HEIGHT, GAP, RISE = 118, 38, 10, 34  # of a rule's box, between boxes, between layers; pixels
ROUNDS = 8  # of ordering the layers


@dataclass
class Made:
    """What was made: by rule its jobs, their seconds, when the first ended, and the rules that it reads from."""

    jobs: Counter = field(default_factory=Counter)
    seconds: Counter = field(default_factory=Counter)
    first: dict[str, float] = field(default_factory=dict)
    reads: dict[str, set[str]] = field(default_factory=dict)


def made(results: Path) -> Made:
    """Read the records of a results tree; one that is damaged is left out, as the plan would remake it."""
    found, records, maker = Made(), [], {}
    for path in sorted((results / FOLDER).rglob("*.json")):
        try:
            records.append(read_sealed(path))
        except UserError:
            continue
    seen = set()
    for record in records:
        for output in record["outputs"]:
            for name in (output, *map(str, PurePosixPath(output).parents)):
                maker.setdefault(name, record["rule"])
    for record in records:
        rule, ended = record["rule"], record["finished"]
        found.first[rule] = min(ended, found.first.get(rule, ended))
        found.reads.setdefault(rule, set()).update(
            maker[path] for path, _ in record["inputs"] if maker.get(path, rule) != rule
        )
        job = rule, tuple(sorted(record["wildcards"].items()))
        if job not in seen:  # a job has a record in each folder that it writes to
            seen.add(job)
            found.jobs[rule] += 1
            found.seconds[rule] += record.get("seconds") or 0.0
    return found


def _behind(reads: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return by rule all rules that it depends on, itself only on a cycle."""
    found = {}
    for rule in reads:
        seen, open_ = set(), list(reads[rule])
        while open_:
            other = open_.pop()
            if other not in seen:
                seen.add(other)
                open_ += reads.get(other, ())
        found[rule] = seen
    return found


def in_turn(found: Made) -> set[tuple[str, str]]:
    """Return the edges (rule, what it reads) on a cycle that go against the order of first ends."""
    behind = _behind(found.reads)
    return {
        (rule, other)
        for rule, own in found.reads.items()
        for other in own
        if rule in behind[other] and (found.first[other], other) > (found.first[rule], rule)
    }


def reduced(reads: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return a graph without cycles, without the edges that follow from others."""
    behind = _behind(reads)
    return {
        rule: {one for one in own if not any(one in behind[o] for o in own)} for rule, own in reads.items()
    }


def layers(reads: dict[str, set[str]]) -> list[list[str]]:
    """Return the rules in layers, each rule one below the lowest that it reads."""
    depth: dict[str, int] = {}

    def of(rule: str) -> int:
        if rule not in depth:
            depth[rule] = 1 + max((of(other) for other in reads.get(rule, ())), default=-1)
        return depth[rule]

    found: list[list[str]] = []
    for rule in sorted(reads):
        while len(found) <= of(rule):
            found.append([])
        found[of(rule)].append(rule)
    readers = {rule: [other for other in reads if rule in reads[other]] for rule in reads}
    for number in range(ROUNDS):
        for layer in found if number % 2 == 0 else reversed(found):
            beside = reads if number % 2 == 0 else readers
            place = {rule: (i + 0.5) / len(row) for row in found for i, rule in enumerate(row)}
            layer.sort(
                key=lambda rule: (
                    sum(place[other] for other in beside[rule]) / len(beside[rule])
                    if beside[rule]
                    else place[rule]
                )
            )
    return found


def _took(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def draw(found: Made) -> Markup:
    """Return the graph as SVG; empty where nothing is recorded."""
    if not found.reads:
        return Markup()
    again = in_turn(found)
    reads = reduced({rule: {o for o in own if (rule, o) not in again} for rule, own in found.reads.items()})
    rows = layers(reads)
    width = max(len(row) for row in rows) * (WIDTH + GAP) - GAP
    height = len(rows) * (HEIGHT + RISE) - RISE
    at = {}
    for y, row in enumerate(rows):
        left = (width - len(row) * (WIDTH + GAP) + GAP) / 2
        at |= {rule: (left + x * (WIDTH + GAP), y * (HEIGHT + RISE)) for x, rule in enumerate(row)}
    down = [(rule, other, "") for rule, own in sorted(reads.items()) for other in sorted(own)]
    edges = []
    for rule, other, kind in (*down, *((*edge, "again") for edge in sorted(again))):
        (x, y), (a, b) = at[rule], at[other]
        (x, y), (a, b) = (x + WIDTH / 2, y), (a + WIDTH / 2, b + HEIGHT)
        path = f"M{a:.0f},{b:.0f} C{a:.0f},{b + RISE:.0f} {x:.0f},{y - RISE:.0f} {x:.0f},{y:.0f}"
        edges.append(Markup('<path class="{}" d="{}"/>').format(kind, path))
    boxes = []
    for rule, (x, y) in at.items():
        jobs = f"{found.jobs[rule]} job{'' if found.jobs[rule] == 1 else 's'}, {_took(found.seconds[rule])}"
        boxes.append(
            Markup(
                '<g transform="translate({:.0f},{:.0f})"><rect width="{}" height="{}" rx="5"/>'
                '<text x="{}" y="16">{}</text><text x="{}" y="30" class="jobs">{}</text></g>'
            ).format(x, y, WIDTH, HEIGHT, WIDTH // 2, rule, WIDTH // 2, jobs)
        )
    label = f"{len(reads)} rules, each below those whose files it reads"
    return Markup(
        '<svg class="dag" viewBox="-2 -2 {:.0f} {:.0f}" style="max-width: {:.0f}px" role="img" aria-label="{}">'
        "{}{}</svg>"
    ).format(width + 4, height + 4, 1.3 * width, label, Markup().join(edges), Markup().join(boxes))
