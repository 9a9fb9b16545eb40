# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that forge what their own process reports: they look for whatever reports, and try all that they find."""

from redteam import Case

TRY_ALL = """
import os, struct, types, functools
MINE = globals()
TRIED = set()
def use(thing, depth=0):
    if id(thing) in TRIED or depth > 4 or thing is MINE: return
    TRIED.add(id(thing))
    kind = type(thing)
    if kind in (bytes, bytearray) and 8 <= len(thing) <= 64:
        for fd in range(3, 12):
            for part in (b"l", b"vtrue", b"vtrue", b"vtrue", b"d"):
                try: os.write(fd, bytes(thing) + struct.pack("<I", len(part)) + part)
                except OSError: break
    elif kind is dict:
        for key, value in list(thing.items())[:300]:
            if key not in ("__builtins__",): use(value, depth + 1)
    elif kind in (list, tuple, set):
        for item in list(thing)[:300]: use(item, depth + 1)
        if kind is list and thing is not TRIED and len(thing) < 5:
            try: thing.append(True)
            except Exception: pass
    elif kind is functools.partial:
        use(thing.func, depth + 1); use(thing.args, depth + 1)
    elif kind is types.GeneratorType:
        if thing.gi_frame is not None: use_frame(thing.gi_frame, depth + 1)
    elif kind is types.FunctionType:
        for cell in thing.__closure__ or ():
            try: use(cell.cell_contents, depth + 1)
            except ValueError: pass
        use(thing.__defaults__, depth + 1)
        if thing.__globals__ is not MINE:
            patch(thing.__globals__)
            for args in ((b"v", "true"), ("v", True), (True,)):
                try: thing(*args)
                except BaseException: pass
    elif kind is types.MethodType or kind is types.BuiltinMethodType:
        owner = getattr(thing, "__self__", None)
        if not isinstance(owner, types.ModuleType): use(owner, depth + 1)
def patch(space):
    if space is MINE or space.get("__name__") in ("builtins", "os", "types", "functools", "struct"): return
    for name in list(space):
        if callable(space[name]) and not name.startswith("__"):
            space[name] = lambda *a, **k: True
def use_frame(frame, depth=0):
    while frame is not None:
        if frame.f_globals is not MINE:
            use(dict(frame.f_locals), depth)
            builtins_of_it = frame.f_builtins
            if builtins_of_it is not __builtins__ and builtins_of_it is not vars(__import__("builtins")):
                for name in ("getattr", "len", "type", "isinstance", "print"): builtins_of_it[name] = lambda *a: True
            patch(frame.f_globals)
        frame = frame.f_back
"""
ATTACKS = {
    "frames": "import sys\nuse_frame(sys._getframe())",
    "traceback-frames": "import sys\ntry: 1 / 0\nexcept ZeroDivisionError as e: use_frame(e.__traceback__.tb_frame)",
    "inspect-frames": "import inspect\nfor info in inspect.stack(): use_frame(info.frame)",
    "current-frames": "import sys\nfor frame in sys._current_frames().values(): use_frame(frame)",
    "gc-objects": "import gc\nfor thing in gc.get_objects():\n    if isinstance(thing, (types.FunctionType, types.GeneratorType, functools.partial)) and getattr(thing, '__globals__', None) is not MINE: use(thing)",
    "gc-unfrozen": "import gc\ngc.unfreeze()\nfor thing in gc.get_objects():\n    if isinstance(thing, (types.GeneratorType, functools.partial)) or type(thing) is types.FunctionType and thing.__name__ in ('emit', 'asked', 'reporter'): use(thing)",
    "gc-referrers": "import gc, sys\nfor thing in gc.get_referrers(sys._getframe().f_back): use(thing)",
    "gc-callbacks": "import gc, sys\ndef spy(phase, info): use_frame(sys._getframe().f_back)\ngc.callbacks.append(spy)\ngc.set_threshold(1)",
    "settrace": "import sys\ndef spy(frame, event, arg):\n    if frame.f_globals is not MINE: use_frame(frame)\n    return spy\nsys.settrace(spy)\nframe = sys._getframe()\nwhile frame:\n    frame.f_trace = spy\n    frame = frame.f_back",
    "setprofile": "import sys\ndef spy(frame, event, arg):\n    if frame.f_globals is not MINE: use_frame(frame)\nsys.setprofile(spy)",
    "settrace-changes-locals": "import sys\ndef spy(frame, event, arg):\n    for name in list(frame.f_locals):\n        if type(frame.f_locals[name]) is bool: frame.f_locals[name] = True\n    return spy\nsys.settrace(spy)\nframe = sys._getframe()\nwhile frame:\n    frame.f_trace = spy\n    frame = frame.f_back",
    "audit-hook": "import sys\ndef spy(event, args): use_frame(sys._getframe().f_back)\nsys.addaudithook(spy)",
    "thread-watches": "import sys, threading\nmain = sys._getframe()\ndef spy():\n    import time\n    end = time.time() + 0.3\n    while time.time() < end:\n        frame = main\n        while frame:\n            if frame.f_globals is not MINE: use(dict(frame.f_locals))\n            frame = frame.f_back\nthreading.Thread(target=spy, daemon=True).start()",
    "thread-switches-fast": "import sys, threading\nsys.setswitchinterval(1e-9)\nmain = sys._getframe()\ndef spy():\n    for _ in range(3000):\n        frame = main.f_back\n        while frame:\n            for value in list(frame.f_locals.values()):\n                if type(value) is list:\n                    value[:] = [lambda: True] * len(value)\n            frame = frame.f_back\nthreading.Thread(target=spy).start()",
    "thread-interrupts-main": "import _thread, signal, sys\nsignal.signal(signal.SIGINT, lambda n, frame: use_frame(frame))\ndef spy():\n    for _ in range(20000): _thread.interrupt_main()\n_thread.start_new_thread(spy, ())",
    "alarm": "import signal\nsignal.signal(signal.SIGALRM, lambda n, frame: use_frame(frame))\nsignal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)",
    "profiling-alarm": "import signal\nsignal.signal(signal.SIGPROF, lambda n, frame: use_frame(frame))\nsignal.setitimer(signal.ITIMER_PROF, 0.0001, 0.0001)",
    "del-sees-caller": "import sys\nclass D:\n    def __del__(self): use_frame(sys._getframe().f_back)\nTRAP = [D() for _ in range(3)]\n__builtins__ and globals().__setitem__('Trap', D)",
    "key-that-compares": "import sys\nclass Key(str):\n    def __eq__(self, other):\n        use_frame(sys._getframe().f_back); return str(self) == other\n    __hash__ = str.__hash__\nfor word in ('Solution', 'run_tests'):\n    space = globals()\n    if word in space:\n        value = space.pop(word); space[Key(word)] = value",
    "patched-builtins": "import builtins\nfor name in ('getattr', 'setattr', 'type', 'isinstance', 'len', 'bool', 'callable', 'hasattr', 'range', 'all', 'any', 'str', 'bytes', 'memoryview', 'exec', 'dict', 'issubclass'):\n    if name not in ('type', 'dict', 'str'): setattr(builtins, name, lambda *a, **k: True)",
    "patched-builtins-that-look": "import builtins, sys\nfor name in ('len', 'memoryview', 'getattr', 'issubclass', 'callable', 'exec', 'compile', 'repr', 'sum'):\n    real = getattr(builtins, name)\n    setattr(builtins, name, lambda *a, real=real, **k: (use_frame(sys._getframe().f_back), real(*a, **k))[1])",
    "patched-modules": "import os, marshal, time, gc, threading, struct, sys, atexit\nfor module in (marshal, gc, threading, atexit):\n    for name in list(vars(module)):\n        if callable(getattr(module, name)) and not name.startswith('__'):\n            setattr(module, name, lambda *a, **k: (use_frame(sys._getframe().f_back), True)[1])",
    "patched-write": "import os\nreal = os.write\nos.write = lambda fd, data: real(fd, bytes(data).replace(b'vfalse', b'vtrue'))",
    "descriptor-replaced": "import os\nr, w = os.pipe()\nreport = os.dup(3)\nos.dup2(w, 3)",
    "descriptor-read-back": "import os\nif not hasattr(os, 'trap'):\n    r, w = os.pipe(); os.set_blocking(r, False)\n    os.trap = r, os.dup(3)\n    os.dup2(w, 3)\nelse:\n    r, report = os.trap\n    data = os.read(r, 1 << 16)\n    os.write(report, data)\n    token = data[:16]\n    for part in (b'vtrue', b'vtrue', b'vtrue', b'd'): os.write(report, token + struct.pack('<I', len(part)) + part)\n    os._exit(0)",
    "settle-replaced": "import sys\nframe = sys._getframe()\nwhile frame:\n    for value in list(frame.f_locals.values()):\n        if isinstance(value, functools.partial): value.__setstate__((print, (), {}, {}))\n        if isinstance(value, types.FunctionType) and value.__globals__ is not MINE: value.__code__ = (lambda *a, **k: True).__code__\n    frame = frame.f_back",
    "blind-frames": "import os, struct\nfor token in (b'', bytes(16), bytes(8), os.urandom(16)):\n    for part in (b'c', b'l', b'vtrue', b'd'):\n        os.write(3, token + struct.pack('<I', len(part)) + part)",
    "blind-frames-and-exit": "import os, struct\nfor part in (b'l', b'vtrue', b'd'): os.write(3, bytes(16) + struct.pack('<I', len(part)) + part)\nos._exit(0)",
    "exit-zero": "import os; os._exit(0)",
    "exit-in-thread": "import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), os._exit(0))).start()",
    "subclasses": "for kind in object.__subclasses__():\n    for value in list(vars(kind).values()):\n        space = getattr(value, '__globals__', None)\n        if space is not None and 'sandbox' in str(space.get('__name__')): patch(space); use(dict(space))",
    "subclasses-of-tuple": "for kind in tuple.__subclasses__() + Exception.__subclasses__():\n    for value in list(vars(kind).values()):\n        space = getattr(value, '__globals__', None)\n        if space is not None and 'projected' in str(getattr(kind, '__module__', '')): patch(space); use(dict(space))",
    "modules": "import sys\nfor name, module in list(sys.modules.items()):\n    if 'sandbox' in name or 'harness' in name or 'probe' in name: patch(vars(module))",
    "exit-functions": "import builtins\nfor thing in (exit, quit):\n    space = type(thing).__call__.__globals__\n    use(dict(space))",
    "ctypes-memory": "import ctypes\nbase = id(object())\ndata = ctypes.string_at(base & ~0xFFFF, 0x10000)\nfor place in range(0, len(data) - 16, 8): use(data[place:place + 16])",
    "ctypes-of-classes": "for kind in object.__subclasses__():\n    if kind.__name__ == 'CDLL':\n        libc = kind(None); libc.abs(1); use(dict(kind.__init__.__globals__)); memmove = kind.__init__.__globals__['memmove']",
    "ctypes-again": "import sys, importlib\nsys.modules.pop('ctypes', None)\nctypes = importlib.import_module('ctypes')\nuse(ctypes.string_at(id(ctypes), 16))",
    "exception-with-frames": "class E(Exception): pass\nraise E",
    "excepthook": "import sys\nsys.excepthook = sys.unraisablehook = lambda *a: use_frame(sys._getframe().f_back)",
    "import-hook": "import builtins, sys\nreal = builtins.__import__\nbuiltins.__import__ = lambda *a, **k: (use_frame(sys._getframe().f_back), real(*a, **k))[1]",
    "stack-of-generators": "import sys\ndef g():\n    use_frame(sys._getframe().f_back); yield\nnext(g())",
    "asyncio-debug": "import sys\nsys.set_coroutine_origin_tracking_depth(50)\nasync def f(): pass\nc = f(); use(c.cr_origin); c.close()",
    "weakref-callback": "import sys, weakref\nclass A: pass\na = A()\nr = weakref.ref(a, lambda _: use_frame(sys._getframe().f_back))\nKEEP = [a]",
    "recursion-limit": "import sys\nsys.setrecursionlimit(20)",
}
BODIES = {
    "load": "{attack}\nclass Solution:\n    def solve(self, nums, k): return 12345\n",
    "both": "{attack}\nclass Solution:\n    def __init__(self): attack()\n    def solve(self, nums, k): return 12345\n    def run_tests(self):\n        attack(); assert self.solve([1], 2) == 3\n",
    "call": "class Solution:\n    def __init__(self): attack()\n    def solve(self, nums, k):\n        attack(); return 12345\n    @property\n    def valid(self):\n        attack(); return False\n    def run_tests(self):\n        attack(); assert self.solve([1], 2) == 3\n",
}


def code(place: str, attack: str) -> str:
    if place == "load":
        body = "try:\n" + "".join(f"    {line}\n" for line in attack.split("\n")) + "except Exception: pass\n"
        return TRY_ALL + BODIES["load"].replace("{attack}", body)
    lines = "".join(f"        {line}\n" for line in attack.split("\n"))
    function = TRY_ALL + "def attack():\n    try:\n" + lines + "    except Exception: pass\n"
    return function + BODIES[place].replace("{attack}", "attack()")


CASES = [
    Case("reporters", f"{name}-at-{place}-{mode}", code(place, attack), mode=mode)
    for name, attack in ATTACKS.items()
    for place in BODIES
    for mode in ("sentinel", "eq_override", "run_tests")
    if not (name == "patched-builtins" and place != "call")
]
