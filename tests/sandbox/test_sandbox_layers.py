"""What must hold at every layer: nothing of another check in memory, limits on threads and disk, odd places."""

import contextlib
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from layers import each_layer, each_layer_and_weak, need
from redteam import PROBLEM, Case
from redteam.theft import READ_MEMORY

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import parse_problem
from projected_grpo.sandbox import landlock, worker
from projected_grpo.sandbox.levels import probe
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.values import decode, equals
from projected_grpo.sandbox.worker import Zygote, check, job

# Words are in parts, so that none of them stands whole in what looks for it.
SCAN = (
    READ_MEMORY
    + """
import gc, sys
WORDS = {words}
def scan(control):
    places = [libc.sbrk(0) - 1, id(control), ctypes.addressof(vector)]
    places.append(ctypes.addressof(ctypes.c_char.in_dll(libc, "environ")))
    gc.unfreeze()
    places += [id(thing) for thing in gc.get_objects()]
    places += [ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in ("malloc", "write", "sbrk")]
    stack = ctypes.c_char()
    places.append(ctypes.addressof(stack))
    found, size = dict.fromkeys([*range(len(WORDS)), "control"], 0), 0
    wanted = [(n, bytes(part for pair in zip(a, b) for part in pair)) for n, (a, b) in enumerate(WORDS)]
    for low, high in regions(places):
        before = b""
        for data in pages(low, high):
            size += len(data)
            text = before + data
            found["control"] += control in text
            for n, (a, b) in enumerate(WORDS):
                place = text.find(a)
                while place >= 0:
                    found[n] += text[place + len(a):place + len(a) + len(b)] == b
                    place = text.find(a, place + 1)
            before = data[-64:]
    return [size >> 20, found["control"], [found[n] for n in range(len(WORDS))]]
class Solution:
    def f(self, control):
        return scan(control)
"""
).replace(
    "    wanted = [(n, bytes(part for pair in zip(a, b) for part in pair)) for n, (a, b) in enumerate(WORDS)]\n",
    "",
)


def secret(name):
    return f"PLANT-{name}-", f"{name}-ED"


@each_layer_and_weak
def test_memory_holds_nothing_of_other_checks(level):
    """Scanned from inside, all that can be read: code, arguments, setup, canonical solution and answers of others."""
    need(level)
    kinds = ("code", "argument", "setup", "canonical", "value", "file", "output")
    word = {kind: "".join(secret(kind)) for kind in kinds}
    code = "class Solution:\n    def f(self, x):\n"
    code += f"        return [{word['code']!r}, ''.join(['PLANT-value', '-value-ED'])]\n"
    code += "    def run_tests(self): pass\n"
    code += f"open('result.txt', 'w').write({word['file']!r}[::-1][::-1])\nprint({word['output']!r})\n"
    canonical = f"class Solution:\n    def f(self, x):\n        return {word['canonical']!r}\n"
    planted = job(
        f"SETUP = {word['setup']!r}\n",
        code,
        [
            check(
                "calls", {"method": "f", "tests": [marshal.dumps(((word["argument"],), {}))] * 3}, answers=3
            ),
            *(
                check(
                    "own_tests",
                    {"method": "f", "name": "run_tests", "against": against},
                    answers=1,
                    mute=isinstance(against, bytes),
                )
                for against in ("stub", "own", worker.compiled(canonical))
            ),
            check("nothing", {}, stdout=True, file="result.txt"),
        ],
    )
    words = [tuple(part.encode() for part in secret(kind)) for kind in kinds]
    control = os.urandom(24).hex().encode()
    tests = [marshal.dumps(((control,), {}))]
    scanning = job(
        "", SCAN.replace("{words}", repr(words)), [check("calls", {"method": "f", "tests": tests}, answers=1)]
    )
    with contextlib.closing(Pool(1, levels=(level,))) as pool:
        answers = list(pool.run([(0, planted)] * 5))
        assert [len(seen) for _, seen in answers] == [5] * 5
        assert word["file"].encode().lower() in answers[0][1][4]["file"]
        [(_, [seen])] = pool.run([(1, scanning)])
    frame = seen["frames"][2]
    megabytes, controls, found = [part for part in _lists(frame[1:])]
    assert megabytes > 5 and controls > 0, frame
    assert found == [0] * len(kinds), dict(zip(kinds, found, strict=True))


def _lists(text):
    """The plain lists of integers that a frame spells."""
    import json

    def plain(node):
        return [plain(item) for item in node[1:]] if isinstance(node, list) else node

    return plain(json.loads(text))


THREADS = """
import ctypes, threading, time
class Solution:
    def f(self, x):
        threading.stack_size(32768)
        started = 0
        try:
            while True:
                threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
                started += 1
        except (RuntimeError, MemoryError):
            pass
        time.sleep(1)
        return started
"""


@each_layer
def test_threads_are_bounded(level):
    need(level)
    tests = [marshal.dumps(((1,), {}))]
    with contextlib.closing(Pool(1, levels=(level,))) as pool:
        pool.level  # noqa: B018
        most, stop = [0], threading.Event()
        own = len(os.listdir("/proc/self/task"))

        def count():
            while not stop.is_set():
                most[0] = max(most[0], _threads_of_descendants() - own)
                time.sleep(0.01)

        thread = threading.Thread(target=count)
        thread.start()
        [(_, [seen])] = pool.run(
            [(0, job("", THREADS, [check("calls", {"method": "f", "tests": tests}, answers=1)]))]
        )
        stop.set()
        thread.join()
    assert seen["cause"] == "threads" or decode(seen["frames"][2][1:]) < 200, seen
    assert most[0] < 8000


def _threads_of_descendants():
    parents, threads = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry)], threads[int(entry)] = int(stat[1]), int(stat[17])
    found, wave = 0, {os.getpid()}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave}
        found += sum(threads[pid] for pid in wave)
    return found


FILLS = {
    "files": "i = 0\nwhile True:\n    i += 1\n    open(f'f{i}', 'wb').write(b'x' * (1 << 20))\n",
    "one-file": "f = open('f', 'wb')\nwhile True: f.write(b'x' * (1 << 20))\n",
    "names": "i = 0\nwhile True:\n    i += 1\n    open(f'f{i}', 'w')\n",
    "folders": "import os\ni = 0\nwhile True:\n    i += 1\n    os.mkdir(f'd{i}')\n",
    "nested": "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')\n",
    "sparse": "import os\ni = 0\nwhile True:\n    i += 1\n"
    "    f = os.open(f'f{i}', 65)\n    os.posix_fallocate(f, 0, 1 << 24); os.close(f)\n",
}


@each_layer
@pytest.mark.parametrize("how", FILLS)
def test_disk_is_bounded_and_emptied(level, how):
    need(level)
    after = "import os\nclass Solution:\n    def f(self, x):\n        return os.listdir('.')\n"
    tests = [marshal.dumps(((1,), {}))]
    asked = check("calls", {"method": "f", "tests": tests}, answers=1)
    with contextlib.closing(Pool(1, levels=(level,))) as pool:
        [(_, [seen])] = pool.run([(0, job("", FILLS[how], [check("nothing", {})]))])
        # It is ended, or its own disk is full (ENOSPC), or its file as long as files get (EFBIG).
        refused = seen["cause"] is None and seen["reason"][0] == "OSError"
        assert seen["cause"] in ("output", "timeout") or (refused and seen["reason"][1][:3] in ("28,", "27,"))
        [(_, [seen])] = pool.run([(1, job("", after, [asked]))])
        assert equals(seen["frames"][2][1:], [], 100)


@each_layer
@pytest.mark.parametrize("version", [1, 2, pytest.param(3, marks=pytest.mark.slow), 5])
def test_older_landlock_guards_the_same(level, version, monkeypatch):
    """As on a kernel whose Landlock knows fewer rights: its probes hold, nothing is truncated, no file is left."""
    need(level)
    if landlock.version() < version:
        pytest.skip(f"Landlock {landlock.version()}")
    if level == "namespaces" and version != 2:
        pytest.skip("does not use Landlock")
    older = f"import projected_grpo.sandbox.landlock as l; exec('l.version = lambda: {version}'); main()()"
    monkeypatch.setattr(worker, "BOOT", worker.BOOT.replace("main()()", older))
    from redteam import escapes, fair, sharing

    names = ("truncate", "folders", "box", "temporary", "owner", "tmp", "symlink", "hardlink", "flock")
    cases = [
        case
        for case in [*sharing.CASES, *escapes.CASES, *fair.CASES]
        if any(name in case.name for name in names)
    ]
    assert len(cases) > 20
    assert_judged(cases, level)


def assert_judged(cases: list[Case], level: str):
    with Grader([parse_problem(PROBLEM, "redteam")], levels=(level,)) as grader:
        found = grader.grade([(1, case.mode, case.completion) for case in cases])
    wrong = {
        case.id: verdict["error"]
        for case, verdict in zip(cases, found, strict=True)
        if (verdict["can_compile"], verdict["gt_pass"], verdict["channel"])
        != (case.compiles, case.gt_pass, case.channel)
    }
    assert not wrong


PLACE = """
import sys
from projected_grpo.sandbox.levels import Zygote, probe
zygote = Zygote(sys.argv[1])
print(probe(zygote, sys.argv[1]))
zygote.close()
"""


@each_layer
def test_a_checkout_and_a_temporary_folder_below_tmp(level):
    need(level)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        source = Path(folder) / "a checkout" / "src"
        package = Path(worker.__file__).parents[1]
        shutil.copytree(package, source / "projected_grpo", ignore=shutil.ignore_patterns("__pycache__"))
        place = Path(folder) / "tmp" / "inner"
        place.mkdir(parents=True)
        for mode in (0o755, 0o700):
            os.chmod(folder, mode)
            environ = os.environ | {"TMPDIR": str(place), "PYTHONPATH": str(source)}
            done = subprocess.run(
                [sys.executable, "-c", PLACE, level], cwd="/", env=environ, capture_output=True, text=True
            )
            assert done.stdout.strip() == "None", done.stderr
            assert list(place.iterdir()) == []


def test_no_number_of_a_descriptor_leads_astray():
    """Whatever numbers the zygote's descriptors have got, each ends where it belongs."""
    need("landlock")
    held = []
    try:
        for _ in range(6):
            with contextlib.closing(Zygote("landlock")) as zygote:
                assert probe(zygote, "landlock") is None
            held.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for fd in held:
            os.close(fd)
