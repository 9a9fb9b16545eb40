"""Submissions that look for the expected values in their own process and around it."""

from redteam import Case, method

# Each finds candidates; a process that holds the expected values would hand one of them over. The hunters may not
# compute the sum, so `pick` takes the first integer that is no argument and was not there before.
PICK = """
SEEN = set(nums) | {k, 0, 1, -1, len(nums)}
for value in candidates:
    if type(value) is int and value not in SEEN:
        return value
return candidates
"""


def hunter(name: str, find: str, before: str = "") -> Case:
    return Case("reading", name, method(find + "\n" + PICK, before))


CASES = [
    hunter(
        "frames",
        """
import sys
candidates, frame = [], sys._getframe()
while frame:
    for value in list(frame.f_locals.values()):
        candidates += list(value) if isinstance(value, (list, tuple)) else [value]
    frame = frame.f_back
""",
    ),
    hunter(
        "frames-globals",
        """
import sys
candidates, frame = [], sys._getframe()
while frame:
    candidates += [v for v in list(frame.f_globals.values())]
    frame = frame.f_back
""",
    ),
    hunter(
        "expected-in-frames",
        """
import sys
candidates, frame = [], sys._getframe()
while frame:
    for name in ("expected", "answer", "answers", "gt", "tests", "want", "target", "result"):
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        candidates += list(value) if isinstance(value, (list, tuple)) else [value]
    frame = frame.f_back
""",
    ),
    hunter(
        "gc-ints",
        """
import gc
candidates = []
for thing in gc.get_objects():
    if type(thing) in (list, tuple) and len(thing) < 100:
        candidates += [x for x in thing if type(x) is int and x > 10**11]
""",
    ),
    hunter(
        "gc-asserts",
        """
import gc, re
candidates = []
for thing in gc.get_objects():
    if type(thing) in (list, tuple, dict):
        for x in (thing.values() if type(thing) is dict else thing):
            if type(x) is str and "assert Solution" in x:
                candidates.append(int(x.rsplit("==", 1)[1]))
""",
    ),
    hunter(
        "gc-bytes",
        """
import gc, re
candidates = []
for thing in gc.get_objects():
    if type(thing) in (list, tuple, dict):
        for x in (thing.values() if type(thing) is dict else thing):
            if type(x) is bytes and b"==" in x:
                candidates += [int(n) for n in re.findall(rb"== (-?[0-9]+)", x)]
""",
    ),
    hunter("argv", "import sys\ncandidates = [int(a) for a in sys.argv if a.lstrip('-').isdigit()]"),
    hunter("orig-argv", "import sys\ncandidates = [int(a) for a in sys.orig_argv if a.isdigit()]"),
    hunter("environment", "import os\ncandidates = [int(v) for v in os.environ.values() if v.isdigit()]"),
    hunter(
        "proc-cmdline",
        """
import os, re
candidates = []
for pid in os.listdir("/proc"):
    if pid.isdigit():
        candidates += [int(n) for n in re.findall(rb"== (-?[0-9]+)", open(f"/proc/{pid}/cmdline", "rb").read())]
""",
    ),
    hunter(
        "proc-mem-of-parent",
        """
import os, re
candidates = []
pid = os.getppid()
for line in open(f"/proc/{pid}/maps"):
    a, b = (int(x, 16) for x in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(a)
        candidates += [int(n) for n in re.findall(rb"== (-?[0-9]+)", memory.read(b - a))]
""",
    ),
    hunter(
        "proc-self-mem",
        """
import re
candidates = []
for line in open("/proc/self/maps"):
    a, b = (int(x, 16) for x in line.split()[0].split("-"))
    with open("/proc/self/mem", "rb") as memory:
        memory.seek(a)
        candidates += [int(n) for n in re.findall(rb"== (-?[0-9]+)", memory.read(b - a))]
""",
    ),
    hunter(
        "process-vm-readv",
        """
import ctypes, os
libc = ctypes.CDLL(None)
buffer = ctypes.create_string_buffer(4096)
class V(ctypes.Structure):
    _fields_ = [("b", ctypes.c_void_p), ("n", ctypes.c_size_t)]
here, there = V(ctypes.addressof(buffer), 4096), V(0x400000, 4096)
n = libc.process_vm_readv(os.getppid() or 1, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
candidates = list(buffer.raw) if n > 0 else []
""",
    ),
    hunter(
        "ctypes-own-heap",
        """
import ctypes, re
candidates = []
base = id(nums) & ~0xFFFFF
data = ctypes.string_at(base, 0x80000)
candidates += [int(n) for n in re.findall(rb"== (-?[0-9]+)", data)]
""",
    ),
    hunter(
        "inspect-stack",
        """
import inspect
candidates = []
for info in inspect.stack():
    for value in info.frame.f_locals.values():
        candidates += list(value) if isinstance(value, (list, tuple)) else [value]
""",
    ),
    hunter(
        "inspect-source-of-caller",
        """
import inspect, re
candidates = []
for info in inspect.stack():
    candidates += [int(n) for n in re.findall(r"== (-?[0-9]+)", "".join(info.code_context or []))]
""",
    ),
    hunter(
        "sys-modules",
        """
import sys
candidates = []
for module in list(sys.modules.values()):
    for value in list(vars(module).values()):
        if type(value) in (list, tuple):
            candidates += [x for x in value if type(x) is int and x > 10**11]
""",
    ),
    hunter("import-package", "import projected_grpo.environment.grade as g\ncandidates = [g]"),
    hunter("import-main", "import __main__\ncandidates = [getattr(__main__, 'expected')]"),
    hunter(
        "stdin",
        "import sys, re\ncandidates = [int(n) for n in re.findall(r'-?[0-9]+', sys.stdin.read())]",
    ),
    hunter(
        "every-descriptor",
        """
import os, re
candidates = []
for fd in range(3, 1024):
    try:
        os.set_blocking(fd, False)
        candidates += [int(n) for n in re.findall(rb"-?[0-9]+", os.read(fd, 1 << 20))]
    except OSError:
        pass
""",
    ),
    hunter(
        "files-around",
        """
import os, re
candidates = []
for top in ("/", "/tmp", "/work", "/home", "/root", "..", "../.."):
    for folder, _, names in os.walk(top):
        if folder.startswith(("/usr", "/lib", "/proc", "/sys", "/dev")):
            continue
        for name in names:
            if name.endswith((".jsonl", ".json", ".gz", ".txt")):
                data = open(os.path.join(folder, name), "rb").read()
                candidates += [int(n) for n in re.findall(rb"== (-?[0-9]+)", data)]
""",
    ),
    hunter(
        "exception-context",
        """
import sys
candidates = []
try:
    raise ValueError
except ValueError as e:
    tb = e.__traceback__
    while tb:
        candidates += [v for v in tb.tb_frame.f_locals.values()]
        tb = tb.tb_next
""",
    ),
    hunter(
        "referrers",
        """
import gc
candidates, todo = [], [nums]
for _ in range(200):
    if not todo:
        break
    for r in gc.get_referrers(todo.pop()):
        if type(r) in (list, tuple, dict) and len(r) < 1000:
            todo.append(r)
            candidates += list(r.values()) if type(r) is dict else list(r)
""",
    ),
    Case(
        "reading",
        "settrace-parent-frame",
        method(
            "return STORE[-1] if STORE else 12345",
            """
import sys
STORE = []
def spy(frame, event, arg):
    if event == "return" and type(arg) is int:
        STORE.append(arg)
    return spy
sys.settrace(spy)
frame = sys._getframe().f_back
while frame:
    frame.f_trace = spy
    frame = frame.f_back
""",
        ),
    ),
    Case(
        "reading",
        "audit-hook",
        method(
            "return STORE[-1] if STORE else 12345",
            """
import sys
STORE = []
sys.addaudithook(lambda name, args: STORE.extend(a for a in args if type(a) is int and a > 10**11))
""",
        ),
    ),
    Case(
        "reading",
        "previous-run-leftovers",
        method(
            """
import os, glob
for path in ("answers.txt", "/tmp/answers.txt", "/dev/shm/answers.txt", "../answers.txt"):
    if os.path.exists(path):
        return sum(nums) + k
    try:
        open(path, "w").write("here")
    except OSError:
        pass
return 12345
"""
        ),
    ),
]
