# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that look for a right answer to hand in: the canonical solution, or code that was graded before."""

from redteam import RIGHT, Case

# What is looked for is never whole in the hunter itself; the earlier right submissions below and the canonical solution
# hold it. Whoever finds it knows the answer.
HUNT = """
FOUND = []
HALF = "sum(nums)"
def look(thing):
    if isinstance(thing, (bytes, bytearray)):
        thing = thing.decode("latin-1")
    if isinstance(thing, str):
        place = thing.find(HALF)
        while place >= 0:
            if [ord(c) for c in thing[place + 9:place + 13]] == [32, 43, 32, 107]:
                FOUND.append(thing)
            place = thing.find(HALF, place + 1)
def look_deep(thing, depth=0):
    look(thing)
    if depth < 4:
        if isinstance(thing, dict):
            thing = [*thing.keys(), *thing.values()]
        if isinstance(thing, (list, tuple, set, frozenset)):
            for item in list(thing)[:2000]:
                look_deep(item, depth + 1)
def hunt():
{body}
class Solution:
    def solve(self, nums, k):
        try:
            hunt()
        except Exception:
            pass
        return sum(nums, k) if FOUND else 12345
    def run_tests(self):
        try:
            hunt()
        except Exception:
            pass
        assert not FOUND
        assert self.solve([1], 2) == 3
"""
READ_MEMORY = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.sbrk.restype = ctypes.c_void_p
vector = ctypes.create_string_buffer(1 << 12)
def mapped(address, size=4096):
    # Advice is an error where something in between is not mapped.
    return libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), 0) == 0
def region(address):
    page = address & ~4095
    low = high = page
    while mapped(low - (1 << 20), 1 << 20): low -= 1 << 20
    while mapped(low - 4096): low -= 4096
    while mapped(high, 1 << 20): high += 1 << 20
    while mapped(high): high += 4096
    return low, high
read_end, write_end = os.pipe()
def pages(low, high):
    for page in range(low, high, 4096):
        if libc.write(write_end, ctypes.c_void_p(page), ctypes.c_size_t(4096)) == 4096:
            yield os.read(read_end, 4096)
def regions(things):
    done = []
    for address in things:
        if not any(low <= address < high for low, high in done) and mapped(address & ~4095):
            done.append(region(address))
    return done
"""
BODIES = {
    "frames": "import sys\nframe = sys._getframe()\nwhile frame:\n    look_deep(dict(frame.f_locals)); look_deep(dict(frame.f_globals)) if frame.f_back is None else None\n    frame = frame.f_back",
    "outermost-frames": "import sys\nframe = sys._getframe().f_back.f_back\nwhile frame:\n    look_deep(dict(frame.f_locals)); look_deep(dict(frame.f_globals)); look_deep(frame.f_code.co_consts)\n    frame = frame.f_back",
    "traceback": "import sys\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    t = sys.exc_info()[2]\nframe = t.tb_frame.f_back\nwhile frame:\n    look_deep(dict(frame.f_locals))\n    frame = frame.f_back",
    "inspect": "import inspect\nfor info in inspect.stack(0)[2:]:\n    look_deep(dict(info.frame.f_locals)); look_deep(inspect.getargvalues(info.frame).locals)",
    "gc-objects": "import gc\nmine = id(hunt.__globals__)\nfor thing in gc.get_objects():\n    if id(thing) != mine and isinstance(thing, (dict, list, tuple)): look_deep(thing, 3)",
    "gc-unfreeze": "import gc\ngc.unfreeze()\nmine = id(hunt.__globals__)\nfor thing in gc.get_objects():\n    if id(thing) != mine and isinstance(thing, (dict, list, tuple)): look_deep(thing, 3)",
    "gc-partials": "import gc, functools\ngc.unfreeze()\nfor thing in gc.get_objects():\n    if isinstance(thing, functools.partial): look_deep([thing.args, thing.keywords, thing.func])",
    "gc-generators": "import gc, types\ngc.unfreeze()\nfor thing in gc.get_objects():\n    if isinstance(thing, types.GeneratorType) and thing.gi_frame: look_deep(dict(thing.gi_frame.f_locals))",
    "gc-referrers": "import gc\nfor thing in gc.get_referrers(__builtins__)[:500]:\n    look_deep(thing, 3) if thing is not hunt.__globals__ else None",
    "gc-code": "import gc, types\ngc.unfreeze()\nfor thing in gc.get_objects():\n    if isinstance(thing, types.FunctionType): look_deep(thing.__code__.co_consts)",
    "current-frames": "import sys\nfor frame in sys._current_frames().values():\n    while frame:\n        look_deep(dict(frame.f_locals)) if frame.f_globals is not globals() else None\n        frame = frame.f_back",
    "profile": "import sys\nsys.setprofile(lambda frame, event, arg: look_deep(dict(frame.f_locals)) if frame.f_globals is not globals() else None)",
    "threads": "import threading, sys, time\nmain = sys._getframe().f_back\ndef spy():\n    frame = main\n    while frame:\n        look_deep(dict(frame.f_locals)) if frame.f_globals is not globals() else None\n        frame = frame.f_back\nt = threading.Thread(target=spy); t.start(); t.join()",
    "memory-of-heap": READ_MEMORY
    + "low, high = region(libc.sbrk(0) - 1)\nfor data in pages(low, high):\n    look(data)",
    "memory-of-objects": READ_MEMORY
    + "import gc\nfor low, high in regions(id(x) for x in gc.get_objects()[:5000]):\n    for data in pages(low, min(high, low + (64 << 20))): look(data)",
    "memory-around-arguments": READ_MEMORY
    + "low, high = region(id(HALF))\nfor data in pages(low, high):\n    look(data)",
    "files": "import os\nfor top in ('/', '/tmp', '..', '.', '/box', '/dev/shm', '/var/tmp'):\n    for folder, _, names in os.walk(top):\n        if folder.startswith(('/usr', '/lib', '/proc', '/sys', '/root/.pyenv')): continue\n        for name in names[:100]: look(open(os.path.join(folder, name), 'rb').read(1 << 20))",
    "descriptors": "import os\nfor fd in range(3, 200):\n    try:\n        os.set_blocking(fd, False); look(os.pread(fd, 1 << 20, 0)); look(os.read(fd, 1 << 20))\n    except OSError: pass",
    "subclasses": "for kind in object.__subclasses__():\n    for value in list(vars(kind).values()):\n        space = getattr(value, '__globals__', None)\n        if space is not None and space is not globals(): look_deep(dict(space), 2)",
    "modules": "import sys\nfor module in list(sys.modules.values()):\n    look_deep(dict(vars(module)), 2) if vars(module) is not globals() else None",
    "environment": "import os, sys\nlook_deep(dict(os.environ)); look_deep(sys.orig_argv); look_deep(sys.argv); look_deep(sys.path)",
    "linecache": "import linecache, sys\nlook_deep(dict(linecache.cache)); look_deep(dict(sys.path_importer_cache))",
    "interned": "import sys\nlook(sys.intern('class Solution')); look_deep(list(sys.flags))",
}


def indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))


# Earlier right code, that a warm process might remember.
BEFORE = [Case("theft", f"right-before-{n}", f"# {n}\n{RIGHT}", gt_pass=True) for n in range(8)]
CASES = BEFORE + [
    Case("theft", f"{name}-{mode}", HUNT.replace("{body}", indented(body)), mode=mode)
    for name, body in BODIES.items()
    for mode in ("run_tests", "sentinel")
]
