"""What a batch holds in memory, what a folder's emptying leaves alone, and that waiting ends."""

import contextlib
import marshal
import os
import stat
import threading
import time
from pathlib import Path

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
