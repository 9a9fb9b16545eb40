"""No letter box: what one check does, by every way known, is not seen in another that is started beside it."""

import contextlib
import itertools
import marshal
import random
import threading
import time

import pytest
from layers import each_layer, need

from projected_grpo.sandbox.levels import WEAK
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.values import decode
from projected_grpo.sandbox.worker import check, job

SLOT, SLOTS = 0.12, 14
COMMON = f"""
import ctypes, os, platform, threading, time
SLOT = {SLOT}
"""
COMMON += """
libc = ctypes.CDLL(None, use_errno=True)
FUTEX = {"x86_64": 202, "aarch64": 98}[platform.machine()]
libc.mmap.restype = ctypes.c_void_p
address = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, os.open(os.__file__, os.O_RDONLY), ctypes.c_long(0))
def futex(operation, value, timeout=None):
    return libc.syscall(FUTEX, ctypes.c_void_p(address), operation, value, timeout, None, 0)
def word():
    return ctypes.c_uint.from_address(address).value
def wait_for(start, slot, part):
    time.sleep(max(0, start + (slot + part) * SLOT - time.monotonic()))
"""
WRITER = (
    COMMON
    + """
class Time(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
class Solution:
    def f(self, start, bits):
        for slot, bit in enumerate(bits):
            wait_for(start, slot, 0)
            if not bit: continue
            pause = Time(0, int(0.8e9 * SLOT))
            waits = lambda: futex(0, word(), ctypes.byref(pause))
            sleeps = lambda: time.sleep(0.8 * SLOT)
            threads = [threading.Thread(target=t) for t in [waits] + [sleeps] * 20]
            for t in threads: t.start()
            for attempt in (pipes, files, disk, locks):
                try: attempt()
                except Exception: pass
            for t in threads: t.join()
            for name in os.listdir("."): os.unlink(name)
        return 0
def pipes():
    for _ in range(60):
        for fd in os.pipe(): os.close(fd)
def files():
    for n in range(60): os.close(os.open(f"f{n}", os.O_CREAT | os.O_WRONLY))
def disk():
    with open("large", "wb") as file: file.write(b"x" * (4 << 20)); os.fsync(file.fileno())
def locks():
    os.posix_fadvise(os.open(os.__file__, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
"""
)
READER = (
    COMMON
    + """
def thread_id():
    found = []
    t = threading.Thread(target=lambda: found.append(threading.get_native_id())); t.start(); t.join()
    return found[0]
def file_number():
    fd = os.open("mine", os.O_CREAT | os.O_WRONLY)
    number = os.fstat(fd).st_ino
    os.close(fd); os.unlink("mine")
    return number
def pipe_number():
    ends = os.pipe()
    number = os.fstat(ends[0]).st_ino
    for fd in ends: os.close(fd)
    return number
def information(place):
    data = ctypes.create_string_buffer(512)
    if libc.sysinfo(data): raise OSError
    return int.from_bytes(data.raw[place:place + 8], "little") & (0xFFFF if place == 80 else -1)
def page_cache():
    vector = ctypes.create_string_buffer(1)
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(4096), vector): raise OSError
    return vector.raw[0]
def others(probe):
    found = 0
    for pid in range(2, 3000):
        try: probe(pid); found += 1
        except OSError: pass
    return found
WAYS = {
    "futex": lambda: futex(1, 9), "pipe number": pipe_number, "file number": file_number, "thread id": thread_id,
    "processes": lambda: information(80), "free memory": lambda: information(40), "page cache": page_cache,
    "free blocks": lambda: os.statvfs(".").f_bfree, "free files": lambda: os.statvfs(".").f_ffree,
    "free blocks of the library": lambda: os.statvfs(os.__file__).f_bfree,
    "/proc": lambda: len(os.listdir("/proc")), "links of /proc": lambda: os.stat("/proc").st_nlink,
    "folder above": lambda: os.stat("..").st_mtime_ns, "/tmp": lambda: os.stat("/tmp").st_mtime_ns,
    "clocks of others": lambda: others(lambda pid: time.clock_gettime(~pid << 3 | 2)),
    "schedulers of others": lambda: others(os.sched_getscheduler),
    "standard output": lambda: os.fstat(1).st_ino, "report": lambda: os.fstat(3).st_ino,
}
class Solution:
    def f(self, start, bits):
        found = {name: [] for name in WAYS}
        for slot in range(bits):
            wait_for(start, slot, 0.3)
            for name, look in WAYS.items():
                try: found[name].append(int(look()))
                except Exception: found[name].append(None)
        return ";".join(name + ":" + " ".join(map(str, values)) for name, values in found.items())
"""
)


def told(values, bits):
    """Whether the values, or their steps, of slots with a one all lie on one side of those with a zero."""
    if None in values:
        return False
    steps = [b - a for a, b in itertools.pairwise(values)]
    for numbers, meant in ((values, bits), (steps, bits[:-1]), (steps, bits[1:])):
        ones = [number for number, bit in zip(numbers, meant, strict=True) if bit]
        zeros = [number for number, bit in zip(numbers, meant, strict=True) if not bit]
        if min(ones) > max(zeros) or max(ones) < min(zeros):
            return True
    return False


def ways_that_tell(level, seed):
    draw = random.Random(seed)
    bits = [1, 1, 0, 0, *(draw.randrange(2) for _ in range(SLOTS - 4))]
    start = time.monotonic() + 0.5
    asked = {
        "writer": (WRITER, (start, bits)),
        "reader": (READER, (start, len(bits))),
    }
    seen = {}

    def run(name):
        code, args = asked[name]
        one = check("calls", {"method": "f", "tests": [marshal.dumps((args, {}))]}, answers=1)
        with contextlib.closing(Pool(1, (level,))) as pool:
            pool.level  # noqa: B018
            [(_, [seen[name]])] = pool.run([(0, job("", code, [one]))])

    threads = [threading.Thread(target=run, args=(name,)) for name in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen["writer"]["frames"][-1] == b"d" and seen["reader"]["frames"][2][:1] == b"v", seen
    found = {}
    for part in decode(seen["reader"]["frames"][2][1:]).split(";"):
        name, _, values = part.rpartition(":")
        found[name] = [None if value == "None" else int(value) for value in values.split()]
    return {name for name, values in found.items() if told(values, bits)}, found


@each_layer
def test_no_way_tells_another_check_anything(level):
    need(level)
    first, found = ways_that_tell(level, 1)
    # By chance one way in a thousand may seem to tell: it has to do so twice.
    assert not first or not first & ways_that_tell(level, 2)[0], (first, found)


def test_the_weak_layer_tells_so_the_test_can_fail():
    need(WEAK)
    for seed in range(20):  # a busy machine makes it miss one now and then
        if {"futex"} <= ways_that_tell(WEAK, seed)[0]:
            return
    pytest.fail("no message came through where nothing holds it back")
