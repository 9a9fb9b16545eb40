"""What a batch holds in memory, what a folder's emptying leaves alone, and that waiting ends."""

import contextlib
import marshal
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from projected_grpo.sandbox import pool as pools
from projected_grpo.sandbox import room
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.values import equals
from projected_grpo.sandbox.watch import WALL, Budget, Watch
from projected_grpo.sandbox.worker import check, job

HOLDS = """
import time
class Solution:
    def f(self, x):
        held = bytearray(x << 20)
        time.sleep(1.2)
        return len(held) >> 20
"""


def resident_of_descendants():
    """MB of all processes below this one but those that are still its copies, before they become another program."""
    own = Path("/proc/self/cmdline").read_bytes()
    parents, sizes = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                is_copy = Path(f"/proc/{entry}/cmdline").read_bytes() == own
                parents[int(entry)] = int(fields[1])
                sizes[int(entry)] = 0 if is_copy else int(fields[21]) * 4096
    found, wave = 0, {os.getpid()}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave}
        found += sum(sizes.get(pid, 0) for pid in wave)
    return found >> 20


def test_sleepers_hold_no_more_than_the_workers_may_and_are_all_judged(monkeypatch):
    monkeypatch.setattr(pools, "MEMORY", 300 << 20)
    asked = check("calls", {"method": "f", "tests": [marshal.dumps(((80,), {}))]}, answers=1)
    most, stop = [0], threading.Event()

    def look():
        while not stop.is_set():
            most[0] = max(most[0], resident_of_descendants())
            time.sleep(0.02)

    with contextlib.closing(Pool(1)) as pool:
        pool.level  # noqa: B018
        before = resident_of_descendants()
        thread = threading.Thread(target=look)
        thread.start()
        seen = dict(pool.run((index, job("", HOLDS, [asked])) for index in range(8)))
        stop.set()
        thread.join()
    assert all(equals(one["frames"][2][1:], 80, 100) for [one] in seen.values()) and len(seen) == 8
    # Each of eight warm processes counts, too; without a bound they would hold 640 beside them.
    assert 150 < most[0] - before < 300 + 2 * 80 + 8 * 20, (before, most)


def test_emptying_a_folder_follows_no_link_even_one_that_takes_a_folders_place(tmp_path):
    outside, box = tmp_path / "outside", tmp_path / "box"
    outside.mkdir()
    (outside / "kept").write_text("x")
    box.mkdir()
    outside.chmod(0o755)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            with contextlib.suppress(OSError):
                os.mkdir(box / "d")
                os.rename(box / "d", box / "e")
            with contextlib.suppress(OSError):
                os.symlink(outside, box / "l")
                os.rename(box / "l", box / "e")
            with contextlib.suppress(OSError):
                os.rmdir(box / "e")
                os.symlink(outside, box / "e")

    thread = threading.Thread(target=swap)
    thread.start()
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            room.empty(str(box))
    stop.set()
    thread.join()
    room.empty(str(box))
    assert not list(box.iterdir())
    assert (outside / "kept").read_text() == "x" and stat.S_IMODE(outside.stat().st_mode) == 0o755


def test_a_check_ends_whatever_it_waits_for():
    watch = Watch(os.open("/dev/null", os.O_RDONLY), None, b"", 3, None, Budget(), 0)
    watch.started, watch.pid = True, os.getpid()
    watch._cpu, watch._waited = lambda: 0.0, lambda: 1e9  # it says that it waits for a core
    for _ in range(int(WALL / 0.5) + 2):
        watch.looked = time.monotonic() - 0.5
        watch.look()
    os.close(watch.reader)
    assert watch.cause == "timeout" and watch.idle == 0


# 20 threads that hand one another the turn: at every moment one of them could run.
TURNS = """
import sys, threading
sys.setswitchinterval(0.001)
turns = [threading.Lock() for _ in range(20)]
for turn in turns: turn.acquire()
def work(number):
    while True:
        turns[number].acquire()
        sum(range(2000))
        turns[(number + 1) % 20].release()
for number in range(20): threading.Thread(target=work, args=(number,)).start()
turns[0].release()
"""


def idle_share(code, seconds, core):
    command = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{core}}})\n{code}"]
    child = subprocess.Popen(command)
    try:
        time.sleep(1.0)
        watch = Watch(os.open("/dev/null", os.O_RDONLY), None, b"", 3, None, Budget(1e9, 1e9), 0)
        watch.started, watch.pid = True, child.pid
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            watch.look()
            time.sleep(0.05)
        os.close(watch.reader)
        return watch.idle / seconds
    finally:
        child.kill()
        child.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing says who waits for a core")
def test_waiting_for_a_core_in_turns_is_no_idleness():
    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    load = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(6)]
    try:
        turns = idle_share(TURNS, 2.0, core)
        sleeps = idle_share("import time\nwhile True: time.sleep(0.3)", 2.0, core)
    finally:
        for process in load:
            process.kill()
            process.wait()
    assert turns < 0.2 and sleeps > 0.6, (turns, sleeps)


def test_what_takes_the_place_of_a_box_is_not_touched(tmp_path):
    """At the weak layer a submission may move its folder and put a link there."""
    outside, box = tmp_path / "outside", tmp_path / "box"
    outside.mkdir()
    (outside / room.RESULTS[0]).write_text("x")
    box.symlink_to(outside)
    assert room.open_file(str(box), room.RESULTS[0]) is None
    room.remove(str(box))
    assert (outside / room.RESULTS[0]).read_text() == "x" and box.is_symlink()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing says that a process is gone")
def test_tidying_up_after_a_check_is_not_its_idleness():
    ended = subprocess.Popen(["true"])
    ended.wait()
    watch = Watch(os.open("/dev/null", os.O_RDONLY), None, b"", 3, None, Budget(), 0)
    watch.started, watch.pid = True, ended.pid
    for _ in range(30):
        watch.looked = time.monotonic() - 0.5
        watch.look()
    os.close(watch.reader)
    assert watch.cause is None and watch.idle == 0
