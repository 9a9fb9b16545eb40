# ruff: noqa: E501  (submissions are kept as they would be written)
"""Right code under odd but fair use of a machine: many threads, temporary folders, big answers, slow starts."""

from redteam import RIGHT, Case, method

BODIES = {
    "sixty-threads": "import threading\nbarrier = threading.Barrier(61)\nout = []\ndef work():\n    barrier.wait(); out.append(1)\nts = [threading.Thread(target=work) for _ in range(60)]\n[t.start() for t in ts]; barrier.wait(); [t.join() for t in ts]\nreturn sum(nums) + k + len(out) - 60",
    "executor-of-sixty": "import time\nfrom concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(60) as pool:\n    return sum(pool.map(lambda x: (time.sleep(0.01), x)[1], nums)) + k",
    "threads-that-allocate": "import threading\ndef work():\n    x = [bytearray(10**5) for _ in range(20)]\nts = [threading.Thread(target=work) for _ in range(40)]\n[t.start() for t in ts]; [t.join() for t in ts]\nreturn sum(nums) + k",
    "temporary-directory": "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n    p = os.path.join(d, 'a'); os.makedirs(os.path.join(d, 'b', 'c'))\n    open(p, 'w').write('1'); os.rename(p, p + 'x')\nassert not os.path.exists(d)\nreturn sum(nums) + k",
    "named-temporary-file": "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as f:\n    f.write('7'); f.flush(); assert open(f.name).read() == '7'\nreturn sum(nums) + k",
    "spooled-file": "import tempfile\nwith tempfile.SpooledTemporaryFile(max_size=10) as f:\n    f.write(b'x' * 100)\nreturn sum(nums) + k",
    "folders": "import os, shutil\nos.makedirs('a/b'); open('a/b/c', 'w').write('x'); shutil.copyfile('a/b/c', 'd'); shutil.rmtree('a'); os.remove('d')\nreturn sum(nums) + k",
    "sqlite-in-memory": "import sqlite3\nc = sqlite3.connect(':memory:')\nreturn c.execute('select ?', (sum(nums) + k,)).fetchone()[0]",
    "asyncio-gather": "import asyncio\nasync def f(x):\n    await asyncio.sleep(0.01); return x\nasync def g(): return sum(await asyncio.gather(*map(f, nums))) + k\nreturn asyncio.run(g())",
    "asyncio-threads": "import asyncio\nasync def g(): return await asyncio.to_thread(lambda: sum(nums) + k)\nreturn asyncio.run(g())",
    "alarm": "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nsignal.pause()\nreturn sum(nums) + k",
    "nonblocking-pipe": "import os\nr, w = os.pipe(); os.set_blocking(r, False); os.write(w, b'x'); os.read(r, 1); os.close(os.dup(r))\nreturn sum(nums) + k",
    "mmap": "import mmap\nm = mmap.mmap(-1, 1 << 20); m[0] = 1\nreturn sum(nums) + k",
    "mmap-of-all-kinds": "import mmap\nwith mmap.mmap(-1, length=13, access=mmap.ACCESS_WRITE) as m:\n    m[:] = b'x' * 13; m.resize(4096); assert m[:13] == b'x' * 13 and isinstance(m, mmap.mmap)\nr = mmap.mmap(-1, 4096, access=mmap.ACCESS_READ)\ntry:\n    r[0] = 1; k += 1\nexcept TypeError: pass\nopen('f', 'wb').write(b'a' * 5000)\nwith open('f', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:\n    m[0] = 66; m.flush()\nwith open('f', 'rb') as f, mmap.mmap(f.fileno(), 904, access=mmap.ACCESS_COPY, offset=4096) as m:\n    assert m.find(b'a') == 0\nassert open('f', 'rb').read(1) == b'B'\nreturn sum(nums) + k",
    "settrace": "import sys\nsys.settrace(lambda *a: None); sys.settrace(None)\nreturn sum(nums) + k",
    "inspects-itself": "import inspect, sys, traceback\nassert inspect.currentframe().f_code.co_name == 'solve'\ntraceback.extract_stack(); inspect.stack()\nreturn sum(nums) + k",
    "ctypes": "import ctypes\nreturn ctypes.c_int64(sum(nums) + k).value",
    "ctypes-libc": "import ctypes\nlibc = ctypes.CDLL(None)\nreturn sum(nums) + k + libc.abs(0)",
    "gc": "import gc\ngc.collect(); gc.get_objects(); gc.freeze(); gc.unfreeze()\nreturn sum(nums) + k",
    "weakref": "import weakref\nclass A: pass\na = A(); r = weakref.ref(a); assert r() is a\nreturn sum(nums) + k",
    "contextvars": "import contextvars\nv = contextvars.ContextVar('v', default=0)\nreturn contextvars.copy_context().run(lambda: sum(nums) + k + v.get())",
    "low-recursion-limit": "import sys\nsys.setrecursionlimit(200)\nreturn sum(nums) + k",
    "unicode-names": "сумма = sum(nums)\nreturn сумма + k",
    "warnings-as-errors": "import warnings\nwarnings.simplefilter('error')\nreturn sum(nums) + k",
    "prints-ten-megabytes": "print('x' * 10**7)\nreturn sum(nums) + k",
    "closes-its-streams": "import sys\nsys.stdout.close(); sys.stderr.close(); sys.stdin.close()\nreturn sum(nums) + k",
    "changes-folder": "import os\nos.makedirs('q', exist_ok=True); os.chdir('q'); os.chdir('..')\nreturn sum(nums) + k",
    "large-array": "import array\nx = array.array('q', bytes(8 * 10**7))\nreturn sum(nums) + k",
    "decimal-context": "import decimal\ndecimal.getcontext().prec = 50\nreturn int(decimal.Decimal(sum(nums)) + k)",
    "subinterpreter-free": "import concurrent.futures, queue, sched, selectors, socket, ssl, struct\nreturn sum(nums) + k",
    "process-pool-falls-back": "import multiprocessing\ntry:\n    with multiprocessing.Pool(2) as p: return sum(p.map(abs, [])) + sum(nums) + k\nexcept Exception:\n    return sum(nums) + k",
    "numbers-of-many-digits": "import sys\nsys.set_int_max_str_digits(0)\nlen(str(10**6000))\nreturn sum(nums) + k",
}
CASES = [Case("fair", name, method(body), gt_pass=True) for name, body in BODIES.items()]
CASES += [
    Case("fair", "method-partialmethod", "from functools import partialmethod\nclass Solution:\n    def _solve(self, plus, nums, k): return plus(sum(nums), k)\n    solve = partialmethod(_solve, lambda a, b: a + b)\n", gt_pass=True),
    Case("fair", "method-lru-cache", "import functools\nclass Solution:\n    def solve(self, nums, k): return self._s(tuple(nums), k)\n    @functools.lru_cache(None)\n    def _s(self, nums, k): return sum(nums) + k\n", gt_pass=True),
    Case("fair", "method-of-instance", "class Solution:\n    def __init__(self): self.solve = lambda nums, k: sum(nums) + k\n", gt_pass=True),
    Case("fair", "slots-new-metaclass", "class M(type): pass\nclass Solution(metaclass=M):\n    __slots__ = ('x',)\n    def __new__(cls): return object.__new__(cls)\n    def solve(self, nums, k): return sum(nums) + k\n", gt_pass=True),
    Case("fair", "thread-left-behind", "import threading, time\nthreading.Thread(target=lambda: time.sleep(30), daemon=True).start()" + RIGHT, gt_pass=True),
    Case("fair", "file-left-open", "f = open('log.txt', 'w')\nf.write('x')" + RIGHT, gt_pass=True),
    Case("fair", "type-alias-and-generic", "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass Base(Generic[T]): pass\nclass Solution(Base[int]):\n    def solve(self, nums, k): return sum(nums) + k\n", gt_pass=True),
    Case("fair", "match-statement", "class Solution:\n    def solve(self, nums, k):\n        match nums:\n            case []: return k\n            case [first, *rest]: return first + self.solve(rest, k)\n", gt_pass=True),
    Case("fair", "exit-in-main-guard", RIGHT + "if __name__ == '__main__':\n    import sys\n    sys.exit()", gt_pass=True),
    Case("fair", "registers-atexit", "import atexit\natexit.register(print, 'bye')" + RIGHT, gt_pass=True),
]  # fmt: skip
