"""Thousands of mutations, of code and of what a check reports: each gets a verdict, and nobody else's changes."""

import marshal
import os
import random
import socket
import string

from redteam import PROBLEM, RIGHT, TESTS, all_cases

from projected_grpo.environment.facts import verdict
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import LEVERS
from projected_grpo.environment.levers.eq_override import decoys
from projected_grpo.environment.problems import parse_problem
from projected_grpo.sandbox.values import encode
from projected_grpo.sandbox.watch import OUTPUT, TOKEN, Budget, Watch, sealed
from projected_grpo.sandbox.wire import ENDED, Event

PROBLEM_OF = parse_problem(PROBLEM, "fuzz")
KINDS = [
    b"c",
    b"l",
    b"d",
    b"s",
    b"smemory",
    b"e",
    b"r",
    b"v",
    b"vtrue",
    b"vfalse",
    b"",
    b"\xff",
    b"e\xff\xfe",
]
KINDS += [
    b"rexit",
    b"eexception",
    b"rmissing",
    b"r" + b"x" * 10_000,
    b"e\xe2\x98\x83",
    b"v[[[[",
    b'v["d",["l"],1]',
]
KINDS += [
    b"v" + b"[" * 50_000,
    b"v" + b"1" * 6000,
    b'v["i","' + b"f" * 900 + b'"]',
    b'v["f","0x1p99999"]',
    b"v1e999",
]
RIGHT_FRAMES = [b"c", b"l", *[b"v" + encode(sum(nums) + k).encode() for nums, k in TESTS], b"d"]


PIECES = [
    "",
    "\0",
    "\ud800",
    "\u2603",
    "(" * 50,
    "\\",
    "'''",
    "\t",
    "\r",
    "lambda: ",
    "raise ",
    "import os; ",
    "yield ",
]
PIECES += [
    "async ",
    "@",
    "{",
    "f'{",
    "# ",
    "_" * 9,
    "return ",
    "Solution",
    "self.",
    "**",
    ":=",
    "0x",
    "1" * 40,
    "...",
]
PIECES += ["\n" * 3, "else:", "class A: pass\n"]


def mutated(rng, text):
    """A text with a few pieces removed, doubled, swapped, or replaced by something that a parser may stumble over."""
    for _ in range(rng.randrange(1, 5)):
        a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + rng.choice((1, 3, 20)))
        piece = rng.choice((text[a:b] * 2, text[a:b][::-1], rng.choice(string.printable), *PIECES))
        text = text[:a] + piece + text[b:]
    return text


def test_mutated_code_never_ends_a_batch():
    rng = random.Random(0)
    seeds = [
        case.code
        for case in all_cases()
        if case.family not in ("bombs", "stalling", "missed", "parsers", "theft")
    ]
    seeds = [RIGHT, *(seed for seed in seeds if len(seed) < 1500)]
    items, right = [], []
    for number in range(2000):
        text = mutated(rng, rng.choice(seeds))
        items.append((1, rng.choice(list(LEVERS)), f"```python\n{text}\n```"))
        if number % 10 == 0:
            right.append(len(items))
            items.append((1, "gt_only", f"```python\n# {number}\n{RIGHT}\n```"))
    with Grader([PROBLEM_OF]) as grader:
        found = grader.grade(items)
    assert len(found) == len(items)
    assert all(found[index]["gt_pass"] for index in right)


def draw_frames(rng):
    frames = [rng.choice((*KINDS, *RIGHT_FRAMES)) for _ in range(rng.randrange(12))]
    if rng.random() < 0.5:
        frames = list(RIGHT_FRAMES)
        for _ in range(rng.randrange(3)):
            place = rng.randrange(len(frames))
            frames[place : place + rng.randrange(2)] = [rng.choice(KINDS)] * rng.randrange(3)
    return frames


def draw_seen(rng):
    return {
        "frames": draw_frames(rng),
        "cause": rng.choice((None, None, None, "timeout", "output", "forged", "threads")),
        "status": rng.choice((0, 0, 1, 70, 72, -9, -11)),
        "cpu": rng.random(),
        "stdout": rng.choice((b"", b"all tests passed", b"\xff" * 99)),
        "file": rng.choice((b"", b"pass", b"\0")),
    }


def test_mutated_frames_are_read_as_a_verdict():
    rng = random.Random(1)
    grader = Grader([PROBLEM_OF])
    passed = 0
    for _ in range(20_000):
        mode = rng.choice(list(LEVERS))
        seen = [draw_seen(rng) for _ in range(rng.randrange(1, 5))]
        found = verdict(grader._read(PROBLEM_OF, mode, seen), mode)
        found["error"] is None or found["error"].encode("ascii")
        first = seen[0]
        # As Python's `==` has it, False is 0.
        exact = [b"v0" if frame == b"vfalse" else frame for frame in first["frames"]] == RIGHT_FRAMES
        exact = exact and first["cause"] is None
        assert found["gt_pass"] == exact
        passed += exact
        if mode in ("sentinel", "eq_override") and found["channel"]:
            assert len(seen[1:]) == (1 if mode == "sentinel" else 3)
            for one in seen[1:]:
                assert one["frames"] == [b"c", b"l", b"vtrue", b"d"] and one["status"] == 0
    assert passed > 100


def test_mutated_bytes_in_the_pipe_are_frames_or_forged():
    rng = random.Random(2)
    token = bytes(range(TOKEN))
    for _ in range(3000):
        frames = draw_frames(rng)
        data = b"".join(
            sealed(frame, number, token) + len(frame).to_bytes(4, "little") + frame
            for number, frame in enumerate(frames)
        )
        whole = True
        if data and rng.random() < 0.7:
            place = rng.randrange(len(data))
            data = (
                data[:place] + rng.choice((b"", b"\0", b"\xff" * 9, token)) + data[place + rng.randrange(9) :]
            )
            whole = False
        reader, writer = os.pipe()
        os.write(writer, data[: 1 << 16])
        os.close(writer)
        watch = Watch(reader, None, token, 20, None, Budget(), 0)
        seen = watch.ended(Event(ENDED))
        os.close(reader)
        assert seen["cause"] in (None, "forged")
        if whole and len(data) <= 1 << 16 and all(frames):
            assert seen["frames"] == frames
        assert all(frame for frame in seen["frames"]) and len(seen["frames"]) <= 20


def test_too_much_in_the_pipe_is_ended():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        ours.setblocking(False)
        watch = Watch(ours.fileno(), None, bytes(TOKEN), 20, None, Budget(), 0)
        header = bytes(TOKEN) + OUTPUT.to_bytes(4, "little")
        theirs.send(header)
        for _ in range(OUTPUT // 4096):
            theirs.send(bytes(4096))
            watch.take()
        assert watch.cause == "output" and watch.frames == []


def test_answers_of_own_tests_count_only_as_asked():
    rng = random.Random(3)
    for _ in range(3000):
        seen = [draw_seen(rng) for _ in range(rng.randrange(1, 4))]
        found = LEVERS["run_tests"].read(PROBLEM_OF, seen)
        for fact, one in zip(("channel", "loophole_used"), seen, strict=False):
            if found[fact]:
                assert one["frames"][0] == b"c" and one["frames"][2:] == [b"vtrue", b"d"]
                assert one["cause"] is None and one["status"] == 0
    assert marshal.loads(decoys(3, "f"))
