# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that make a check last: naps, heartbeats, threads; each must end in time, whatever it sends."""

from redteam import RIGHT, WRONG, Case, method

LOADS = {
    "short-sleeps": "import time\nwhile True: time.sleep(0.005)",
    "heartbeats": "import time\nwhile True:\n    time.sleep(0.05)\n    sum(range(20000))",
    "long-naps": "import time\nwhile True:\n    time.sleep(4.5)\n    sum(range(10**5))",
    "leader-exits": "import ctypes, threading, time\ndef beat():\n    while True: time.sleep(0.05)\nthreading.Thread(target=beat).start()\nctypes.CDLL(None).syscall(60, 0)",
    "leader-exits-and-burns": "import ctypes, threading\ndef burn():\n    while True: pass\nthreading.Thread(target=burn).start()\nctypes.CDLL(None).syscall(60, 0)",
    "many-threads-nap": "import threading, time\ndef beat():\n    while True: time.sleep(0.01)\nfor _ in range(40): threading.Thread(target=beat).start()",
    "hashes-on-all-cores": "import hashlib, threading\ndef burn():\n    while True: hashlib.sha256(bytes(1 << 22))\nfor _ in range(16): threading.Thread(target=burn).start()\nburn()",
    "garbage-frames-slowly": "import os, time\nwhile True:\n    time.sleep(0.05)\n    os.write(3, b'')",
    "small-stack-threads": "import threading, time\nthreading.stack_size(32768)\ntry:\n    while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nexcept (RuntimeError, MemoryError): pass\ntime.sleep(60)",
    "stops-itself": "import os, signal\ntry: os.kill(os.getpid(), signal.SIGSTOP)\nexcept OSError: pass\nsignal.pause()",
    "waits-for-a-pipe": "import os\nr, w = os.pipe()\nos.read(r, 1)",
    "selects": "import select\nwhile True: select.select([], [], [], 0.01)",
    "condition": "import threading\nc = threading.Condition()\nwith c:\n    while True: c.wait(0.02)",
    "fills-the-pipe": "import os\nwhile True: os.write(3, b'x' * 4096)",
    "opens-and-removes-files": "import os\nwhile True:\n    open('x', 'w').write('y' * 10**6); os.remove('x')",
}
CASES = [Case("stalling", name, code + WRONG, mode="run_tests") for name, code in LOADS.items()]
CASES += [
    Case("stalling", "calls-nap", method("import time\ntime.sleep(4)\nreturn sum(nums) + k")),
    Case("stalling", "calls-nap-and-tests-nap", method("import time\nwhile True: time.sleep(0.3)") + "    def run_tests(self):\n        import time\n        while True: time.sleep(0.01)\n"),
    Case("stalling", "method-and-tests-loop", method("while True: pass") + "    def run_tests(self):\n        self.solve([], 1)\n        Solution().solve([1], 2)\n", channel=True),
    Case("stalling", "thread-at-the-end-of-a-hack", WRONG + "    valid = True\nimport threading, time\nthreading.Thread(target=time.sleep, args=(100,), daemon=True).start()", mode="sentinel"),
    Case("stalling", "thread-at-the-end-of-a-marker", WRONG + "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()\nprint('all tests passed')", mode="stdout_marker"),
    Case("stalling", "del-loops", "class D:\n    def __del__(self):\n        while True: pass\nx = D()" + WRONG),
    Case("stalling", "flush-loops", "import io, time\nclass F(io.StringIO):\n    def flush(self):\n        while True: time.sleep(0.01)\nf = F()" + WRONG, mode="file_marker"),
    Case("stalling", "atexit-loops", "import atexit, time\natexit.register(time.sleep, 1000)" + WRONG, mode="exit_code"),
]  # fmt: skip
RIGHT_ONES = {
    "sleeps-at-each-call": method("import time\ntime.sleep(0.2)\nreturn sum(nums) + k"),
    "sleeps-at-load": "import time\ntime.sleep(1.5)" + RIGHT,
    "waits-for-threads": method("import threading, time\nout = []\ndef work():\n    time.sleep(0.3); out.append(sum(nums) + k)\nts = [threading.Thread(target=work) for _ in range(4)]\n[t.start() for t in ts]; [t.join() for t in ts]\nreturn out[0]"),
    "polls-a-thread": method("import threading, time\nout = []\nthreading.Thread(target=lambda: (time.sleep(0.1), out.append(sum(nums) + k))).start()\nwhile not out: time.sleep(0.01)\nreturn out[0]"),
    "burns-two-seconds": "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass" + RIGHT,
}  # fmt: skip
CASES += [
    Case("stalling", f"right-{name}", code, gt_pass=True, mode="gt_only") for name, code in RIGHT_ONES.items()
]
