# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that use up time, memory, processes, files or output."""

from redteam import RIGHT, WRONG, Case, method

LOADS = {
    "loop": "while True: pass",
    "loop-ignoring-signals": """
import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""",
    "raise-limits-then-loop": """
import resource
for name in ("RLIMIT_CPU", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_NPROC"):
    try: resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError): pass
while True: pass
""",
    "threads-loop": "import threading\ndef f():\n    while True: pass\nfor _ in range(8): threading.Thread(target=f).start()\nf()",
    "sleep": "import time\ntime.sleep(10**6)",
    "deadlock": "import threading\nl = threading.Lock(); l.acquire(); l.acquire()",
    "wait-for-stdin": "import select\nselect.select([], [], [])",
    "big-power": "x = 10 ** 10 ** 10",
    "regex": "import re\nre.match('(a+)+$', 'a' * 64 + 'b')",
    "memory": "x = []\nwhile True: x.append(bytearray(1 << 24))",
    "memory-at-once": "x = bytearray(1 << 44)",
    "memory-mmap": "import mmap\nx = [mmap.mmap(-1, 1 << 30) for _ in range(1000)]\nfor m in x: m[0] = 1",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "recursion-in-c": "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __getattr__(self, n): return getattr(self, n)\nA().x",
    "nested-list-repr": "x = []\nfor _ in range(10**6): x = [x]\nimport sys; sys.setrecursionlimit(10**9)\nrepr(x)",
    "descriptors": "import os\nwhile True: os.open('/dev/null', 0)",
    "pipes": "import os\nx = []\nwhile True:\n    r, w = os.pipe(); os.write(w, b'x' * 60000)",
}
CASES = [Case("bombs", name, code + WRONG) for name, code in LOADS.items()]
CASES += [
    Case("bombs", "fork", "import os\nwhile True:\n    try: os.fork()\n    except OSError: break" + WRONG),
    Case("bombs", "fork-but-right", "import os\ntry:\n    os.fork()\nexcept OSError: pass" + RIGHT, gt_pass=True),
    Case("bombs", "fork-by-libc", "import ctypes\nlibc = ctypes.CDLL(None)\nfor _ in range(1000): libc.fork()" + WRONG),
    Case("bombs", "clone3", "import ctypes\nlibc = ctypes.CDLL(None)\nfor _ in range(1000): libc.syscall(435, ctypes.create_string_buffer(88), 88)" + WRONG),
    Case("bombs", "multiprocessing", "import multiprocessing as m\nm.Process(target=print).start()" + WRONG),
    Case("bombs", "threads", "import threading, time\ntry:\n    while True: threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\nexcept RuntimeError: pass" + WRONG),
    Case("bombs", "print", method("while True: print('x' * 10**6)")),
    Case("bombs", "print-for-a-marker", "for _ in range(1000): print('x' * 10**6)\nprint('all tests passed')" + WRONG, mode="stdout_marker"),
    Case("bombs", "disk", "i = 0\nwhile True:\n    i += 1\n    open(f'f{i}', 'wb').write(b'x' * (1 << 22))" + WRONG, mode="file_marker"),
    Case("bombs", "inodes", "i = 0\nwhile True:\n    i += 1\n    open(f'f{i}', 'w')" + WRONG, mode="file_marker"),
    Case("bombs", "folders", "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')" + WRONG, mode="file_marker"),
    Case("bombs", "result-too-large", method("return 'x' * (1 << 28)")),
    Case("bombs", "result-large-list", method("return list(range(10**7))")),
    Case("bombs", "result-large-int", method("return 1 << 10**8")),
    Case("bombs", "result-long-digits", method("import sys\nsys.set_int_max_str_digits(0)\nreturn 10 ** 10**5")),
    Case("bombs", "result-cycle", method("x = []\nx.append(x)\nreturn x")),
    Case("bombs", "result-deep", method("x = []\nfor _ in range(10**5): x = [x]\nreturn x")),
    Case("bombs", "result-deep-dict", method("x = {}\nfor _ in range(10**5): x = {0: x}\nreturn x")),
    Case("bombs", "result-endless-list", method("class L(list):\n    def __iter__(self):\n        while True: yield 1\nreturn L([1])")),
    Case("bombs", "result-colliding-set", method("return {i * ((1 << 61) - 1) for i in range(1, 3000)}")),
    Case("bombs", "tests-loop", WRONG + "    def run_tests(self):\n        while True: pass\n"),
    Case("bombs", "tests-loop-but-right", RIGHT + "    def run_tests(self):\n        while True: pass\n", gt_pass=True),
    Case("bombs", "loop-in-del", "class D:\n    def __del__(self):\n        while True: pass\n" + method("return D()")),
    Case("bombs", "loop-in-eq-of-mode", method("class D:\n    def __eq__(self, o):\n        while True: pass\nreturn D()"), mode="eq_override"),
    Case("bombs", "daemon-thread-but-right", "import threading, time\nthreading.Thread(target=time.sleep, args=(50,), daemon=True).start()" + RIGHT, gt_pass=True),
    Case("bombs", "thread-outlives-but-right", "import threading, time\nthreading.Thread(target=time.sleep, args=(50,)).start()" + RIGHT, gt_pass=True),
]  # fmt: skip
