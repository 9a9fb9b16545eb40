"""How much one check can tell the next at `landlock`, measured: a sender counts up process ids, a receiver reads one.

Both read the ids where libc keeps them, which no filter hides. What blurs is the gap between the last id of the sender
and the first of the receiver: where the sender can choose among `reach` ids, log2(reach) less the entropy of the gap
gets through.
"""

import marshal
import math
import platform
import sys
from pathlib import Path

import pytest
from layers import need

from projected_grpo.sandbox.exchange import read
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.watch import CPU
from projected_grpo.sandbox.worker import check, job

PAIRS, IDS = 24, 500
RESERVED = 300  # ids that are not given again
CODE = """
import ctypes, time

libc = ctypes.PyDLL(None)
create, join, give_way = libc.pthread_create, libc.pthread_join, libc.sched_yield
create.argtypes, join.argtypes = [ctypes.c_void_p] * 4, [ctypes.c_void_p] * 2
at_once = ctypes.cast(libc.pthread_self, ctypes.c_void_p).value
detached = ctypes.create_string_buffer(128)
libc.pthread_attr_init(detached)
libc.pthread_attr_setdetachstate(detached, 1)


def last():
    thread = ctypes.c_void_p()
    while create(ctypes.addressof(thread), None, at_once, None):
        time.sleep(0.001)  # others have not ended yet
    found = ctypes.c_int.from_address(thread.value + 720).value
    join(thread, None)
    return found


class Solution:
    def f(self, ids):
        thread = ctypes.c_void_p()
        place, attributes = ctypes.addressof(thread), ctypes.addressof(detached)
        began = time.process_time()
        for n in range(ids):
            while create(place, attributes, at_once, None):
                time.sleep(0.001)
            give_way()
            if n % 32 == 31:  # no more than 128 at a time
                time.sleep(0.002)
        return [time.process_time() - began, last()]
"""


def told(pool: Pool, ids: int) -> list:
    """Return the CPU seconds that counting up took, and the last id."""
    arguments = {"method": "f", "tests": [marshal.dumps(((ids,), {}))]}
    ((_, (seen,)),) = pool.run([(0, job("", CODE, [check("calls", arguments, answers=1)]))])
    assert seen["frames"][2][:1] == b"v", seen
    return read(seen["frames"][2][1:].decode())


def entropy(sample: list[int]) -> float:
    """Return the differential entropy in bits, by spacings (Vasicek 1976)."""
    ordered, n = sorted(sample), len(sample)
    m = round(math.sqrt(n))
    spacings = (ordered[min(n - 1, i + m)] - ordered[max(0, i - m)] for i in range(n))
    return sum(math.log2(n / (2 * m) * max(1, spacing)) for spacing in spacings) / n


def test_entropy_of_a_known_distribution():
    assert entropy(list(range(0, 4096, 16))) == pytest.approx(12, abs=0.3)


@pytest.mark.slow
@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="libc keeps ids elsewhere"
)
def test_bits_a_check_at_landlock():
    need("landlock")
    ids = int(Path("/proc/sys/kernel/pid_max").read_text()) - RESERVED
    pool = Pool(1, ("landlock",))
    try:
        sent = [(told(pool, IDS), told(pool, 0)) for _ in range(PAIRS)]
    finally:
        pool.close()
    gaps = [(heard - last) % ids for (_, last), (_, heard) in sent]
    seconds = sorted(seconds for (seconds, _), _ in sent)[PAIRS // 2] / IDS
    reach = min(CPU / seconds, ids)
    bits = math.log2(reach) - entropy(gaps)
    print(f"{bits:.1f} bits: {1e6 * seconds:.0f} us an id, {reach:.0f} ids in reach, gaps {sorted(gaps)}")
    assert 0 < bits < 12
