# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that reach for what no check may have: numbers and objects of the host, memory that nothing counts, or
what reports of their own process, by means that none of the other families has."""

from redteam import Case

# A body that returns True makes the submission right: so `gt_pass` tells that something was in reach.
TRY = "def attempt(nums, k):\n{}\nclass Solution:\n    def solve(self, nums, k):\n        try: won = attempt(nums, k)\n        except Exception: won = False\n        return sum(nums) + k if won else 12345\n"


def trying(body: str) -> str:
    return TRY.format("".join(f"    {line}\n" for line in body.strip("\n").split("\n")))


BODIES = {
    "statx": "import ctypes\nb=ctypes.create_string_buffer(256)\nreturn ctypes.CDLL(None).syscall(332, -100, b'.', 0, 0x1000, b) == 0",
    "statfs": "import os\nos.statvfs('.')\nreturn True",
    "name-to-handle": "import ctypes\nb=ctypes.create_string_buffer(128)\nb[0]=100\nm=ctypes.c_int()\nreturn ctypes.CDLL(None).syscall(303,-100,b'.',b,ctypes.byref(m),0)==0",
    "inotify": "import ctypes\nreturn ctypes.CDLL(None).syscall(294,0)>=0",
    "fanotify": "import ctypes\nreturn ctypes.CDLL(None).syscall(300,0,0)>=0",
    "timerfd": "import ctypes\nreturn ctypes.CDLL(None).syscall(283,1,0)>=0",
    "signalfd": "import ctypes\nreturn ctypes.CDLL(None).syscall(289,-1,ctypes.create_string_buffer(8),8,0)>=0",
    "pidfd": "import ctypes,os\nreturn ctypes.CDLL(None).syscall(434,os.getppid(),0)>=0",
    "futex-shared-private-zero": "import ctypes,mmap\nc=ctypes.CDLL(None)\na=ctypes.c_int(0)\nreturn c.syscall(202,ctypes.byref(a),3,1,0,ctypes.byref(a),0)>=0",
    "futex2": "import ctypes\nreturn ctypes.CDLL(None).syscall(449,ctypes.create_string_buffer(24),1,0,None,0)>=0",
    "futex-wake2": "import ctypes\na=ctypes.c_int(0)\nreturn ctypes.CDLL(None).syscall(454,ctypes.byref(a),1,1,2)>=0",
    "memfd-secret": "import ctypes\nreturn ctypes.CDLL(None).syscall(447,0)>=0",
    "landlock-create": "import ctypes\nreturn ctypes.CDLL(None).syscall(444,None,0,1)>=0",
    "seccomp-listener": "import ctypes\nreturn ctypes.CDLL(None).syscall(317,1,8,None)>=0",
    "mount-setattr": "import ctypes\nreturn ctypes.CDLL(None).syscall(442,-100,b'/',0,ctypes.create_string_buffer(32),32)==0",
    "open-tree": "import ctypes\nreturn ctypes.CDLL(None).syscall(428,-100,b'/',1)>=0",
    "openat2": "import ctypes\nreturn ctypes.CDLL(None).syscall(437,-100,b'/etc/passwd',ctypes.create_string_buffer(24),24)>=0",
    "listmount": "import ctypes\nreturn ctypes.CDLL(None).syscall(458,ctypes.create_string_buffer(32),ctypes.create_string_buffer(800),100,0)>=0",
    "statmount": "import ctypes\nreturn ctypes.CDLL(None).syscall(457,ctypes.create_string_buffer(32),ctypes.create_string_buffer(800),800,0)>=0",
    "cachestat": "import ctypes,os\nreturn ctypes.CDLL(None).syscall(451,os.open(os.__file__,0),ctypes.create_string_buffer(16),ctypes.create_string_buffer(40),0)==0",
    "map-shadow-stack": "import ctypes\nreturn ctypes.CDLL(None).syscall(453,0,4096,0)>=0",
    "kcmp": "import ctypes,os\nreturn ctypes.CDLL(None).syscall(312,os.getpid(),os.getpid(),0,0,0)>=0",
    "perf": "import ctypes\nreturn ctypes.CDLL(None).syscall(298,ctypes.create_string_buffer(112),0,-1,-1,0)>=0",
    "sysinfo": "import ctypes\nreturn ctypes.CDLL(None).syscall(99,ctypes.create_string_buffer(512))==0",
    "loadavg": "import os\nos.getloadavg()\nreturn True",
    "cpu-clock-of-parent": "import time,os\ntime.clock_gettime(~os.getppid()<<3|2)\nreturn os.getppid()>0",
    "set-pipe-size": "import fcntl\nfcntl.fcntl(3,1031,1<<20)\nreturn True",
    "get-pipe-size": "import fcntl\nreturn fcntl.fcntl(3,1032)>0",
    "read-report": "import os\nreturn bool(os.read(3,100))",
    "read-stdout-of-before": "import os\nreturn bool(os.pread(1,100,0))",
    "proc-self-mem": "return bool(open('/proc/self/mem','rb'))",
    "proc-self-maps": "return bool(open('/proc/self/maps').read())",
    "dev-shm": "import os\nreturn bool(os.listdir('/dev/shm'))",
    "random-pool": "import fcntl,os\nfcntl.ioctl(os.open('/dev/urandom',os.O_RDONLY),0x80045200,bytes(4))\nreturn True",
    "expected-in-gc": "import gc\ngc.unfreeze()\nwant=sum(nums)+k\nreturn any(type(x) is tuple and len(x)==2 and x[0]==10 and x[1]==want for x in gc.get_objects())",
    "canonical-in-gc": "import gc,types\ngc.unfreeze()\nreturn any(type(x) is types.CodeType and x.co_name=='solve' and x is not Solution.solve.__code__ for x in gc.get_objects())",
    "shm-open": "import _posixshmem\n_posixshmem.shm_open('/x',66,0o600)\nreturn True",
    "mq-open": "import ctypes\nreturn ctypes.CDLL(None).mq_open(b'/x',66,0o600,None)>=0",
    "sem-open": "import ctypes\nlibc=ctypes.CDLL(None); libc.sem_open.restype=ctypes.c_void_p\nreturn bool(libc.sem_open(b'/x',66,0o600,1))",
    "socketpair": "import _socket\nreturn bool(_socket.socketpair())",
    "real-pipe": "import ctypes\nb=(ctypes.c_int*2)()\nreturn ctypes.CDLL(None).pipe(b)==0",
    "pipe2": "import posix\nposix.pipe()\nreturn True",
    "vmsplice": "import ctypes\nreturn ctypes.CDLL(None).syscall(278,3,None,0,0)>=0",
    "tee": "import ctypes\nreturn ctypes.CDLL(None).syscall(276,3,3,1,0)>=0",
    "sendfile": "import os\nreturn os.sendfile(1,os.open(os.__file__,0),0,10)>0",
    "utime": "import os\nos.utime('.',(7,7))\nreturn True",
    "chmod": "import os\nopen('x','w'); os.chmod('x',0o777)\nreturn True",
    "setpriority": "import os\nos.setpriority(0,0,5)\nreturn True",
    "getpriority-others": "import os\nos.getpriority(1,0)\nreturn True",
    "personality": "import ctypes\nreturn ctypes.CDLL(None).personality(0x0040000)>=0",
    "prctl-name": "import ctypes\nreturn ctypes.CDLL(None).prctl(15,b'x',0,0,0)==0",
    "arch-prctl": "import ctypes\nreturn ctypes.CDLL(None).syscall(158,0x1003,ctypes.byref(ctypes.c_long()))==0",
    "modify-ldt": "import ctypes\nreturn ctypes.CDLL(None).syscall(154,0,ctypes.create_string_buffer(64),64)>=0",
    "membarrier": "import ctypes\nreturn ctypes.CDLL(None).syscall(324,1,0,0)==0",
    "process-vm-readv": "import ctypes,os\nreturn ctypes.CDLL(None).syscall(310,os.getppid(),None,0,None,0,0)>=0",
    "quotactl": "import ctypes\nreturn ctypes.CDLL(None).syscall(443,0,0,0,None)==0",
    "getcpu": "import ctypes\nreturn ctypes.CDLL(None).syscall(309,ctypes.byref(ctypes.c_uint()),None,None)==0",
    "mlock": "import ctypes\nb=ctypes.create_string_buffer(4096)\nreturn ctypes.CDLL(None).mlock(b,4096)==0",
    "setsid": "import os\nos.setsid()\nreturn True",
    "ruid": "import os\nos.setresuid(0,0,0)\nreturn True",
    "xattr": "import os\nos.setxattr('.','user.x',b'1')\nreturn True",
    "adjtime": "import ctypes\nreturn ctypes.CDLL(None).syscall(159,ctypes.create_string_buffer(256))>=0",
    "memory-shared-without-a-file": "import ctypes\nlibc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p\nreturn libc.mmap(None, ctypes.c_size_t(4096), 3, 0x21, -1, ctypes.c_long(0)) != (1 << 64) - 1",
    "memory-of-dev-zero": "import mmap, os\nmmap.mmap(os.open('/dev/zero', os.O_RDWR), 4096)\nreturn True",
    "memory-of-dev-zero-read": "import mmap, os\nmmap.mmap(os.open('/dev/zero', os.O_RDONLY), 4096, prot=mmap.PROT_READ)\nreturn True",
    "memory-kept-unmapped": "import mmap\nm = mmap.mmap(-1, 1 << 20); m[1 << 19] = 1; m.resize(4096); m.resize(1 << 20)\nreturn m[1 << 19] == 1",
    "memory-of-the-real-mmap": "import sys\ndel sys.modules['mmap']\nimport mmap\nmmap.mmap(-1, 1 << 20)\nreturn True",
}
FORGE = "import sys, os, gc, types, functools, itertools, operator\nMINE = globals()\n%s\nclass Solution:\n    def __init__(self): a()\n    def solve(self, nums, k): a(); return 12345\n    @property\n    def valid(self): a(); return False\n    def run_tests(self):\n        a(); raise ValueError\n"
FORGERIES = {
    "debug-saveall": "def a():\n    gc.set_debug(gc.DEBUG_SAVEALL); gc.collect()\n    for x in gc.garbage:\n        if type(x) is list: x.append(True)",
    "true-is-int": "class B(int): pass\ndef a():\n    import builtins\n    builtins.True_ = 1; builtins.bool = lambda x: True; builtins.all = lambda x: True",
    "namespace-key-lies": "class K(str):\n    def __hash__(s): return hash('Solution')\n    def __eq__(s, o):\n        f = sys._getframe()\n        while f:\n            for n, v in list(f.f_locals.items()):\n                if type(v) is list and f.f_globals is not MINE: v.append(True)\n            f = f.f_back\n        return False\nMINE[K('x')] = 1\ndef a(): pass",
    "context-of-exception": "def a():\n    try: raise ValueError\n    except ValueError as e:\n        t = e.__traceback__.tb_frame\n        while t:\n            if t.f_globals is not MINE:\n                for v in list(t.f_locals.values()):\n                    if type(v) is list: v[:] = [True] * 3\n            t = t.f_back",
    "frame-clear": "def a():\n    f = sys._getframe().f_back\n    while f:\n        try: f.clear()\n        except RuntimeError: pass\n        f = f.f_back",
    "f-lineno": "def a():\n    f = sys._getframe().f_back\n    while f:\n        try: f.f_lineno = 1\n        except Exception: pass\n        try: f.f_trace = lambda *x: None; f.f_trace_opcodes = True\n        except Exception: pass\n        f = f.f_back",
    "stage-code": "def a():\n    f = sys._getframe().f_back\n    while f:\n        for c in f.f_code.co_consts:\n            if type(c) is type(os._exit): c(0)\n        f = f.f_back",
    "exit-zero-in-thread-later": "import threading\ndef a():\n    threading.Thread(target=lambda: (__import__('time').sleep(0.001), os._exit(0)), daemon=True).start()",
    "atexit-forges": "import atexit\ndef a():\n    atexit.register(os._exit, 0); sys.exit(0)",
    "tracemalloc": "import tracemalloc\ntracemalloc.start(50)\ndef a():\n    for s in tracemalloc.take_snapshot().traces: tracemalloc.get_object_traceback(s)",
    "faulthandler": "import faulthandler\ndef a(): faulthandler.dump_traceback_later(0.0001, repeat=True)",
    "weakref-of-generators": "import weakref\ndef a():\n    for x in object.__subclasses__():\n        try: weakref.ref(x, lambda r: os._exit(0))\n        except TypeError: pass",
    "copyreg": "import copyreg, pickle, copy\ndef a():\n    f = sys._getframe()\n    while f:\n        for v in list(f.f_locals.values()):\n            try: copy.deepcopy(v)\n            except Exception: pass\n        f = f.f_back",
    "getrefcount": "def a(): sys.getrefcount(True); sys.intern('vtrue')",
    "is-patched": "def a():\n    operator.is_ = lambda a, b: True\n    operator.eq = lambda a, b: True\n    operator.call = lambda *a: True",
    "deque-patched": "import collections\ndef a():\n    collections.deque = lambda *x: None; itertools.compress = lambda *x: []; functools.partial = lambda *x: (lambda *y: True)",
    "switch-interval": "def a(): sys.setswitchinterval(1e-9); sys.setrecursionlimit(3000)",
    "unraisable": "class D:\n    def __del__(s): raise ValueError\ndef h(u):\n    f = sys._getframe()\n    while f:\n        for v in list(f.f_locals.values()):\n            if type(v) is list and f.f_globals is not MINE: v.append(True)\n        f = f.f_back\nsys.unraisablehook = h\ndef a(): D()",
    "displayhook": "def a(): sys.displayhook = sys.excepthook = sys.breakpointhook = lambda *x: os._exit(0)",
    "coroutine-origin": "def a():\n    sys.set_asyncgen_hooks(lambda g: None, lambda g: None); sys.set_coroutine_origin_tracking_depth(9)",
    "write-2-frames": "def a():\n    for p in (b'vtrue', b'd'): os.write(3, b'\\0' * 16 + len(p).to_bytes(4, 'little') + p)",
    "close-report": "def a(): os.close(3); os.open('/dev/null', 1)",
    "memory-error": "X = []\ndef a():\n    try:\n        while True: X.append(bytearray(1 << 20))\n    except MemoryError: pass",
    "stack-exhaust": "def a():\n    sys.setrecursionlimit(10**9)\n    def f(): f()\n    try: f()\n    except RecursionError: pass",
    "interned-hash": "class V(str): __eq__ = lambda s, o: True; __hash__ = str.__hash__\ndef a():\n    for n in ('Solution', 'run_tests', 'valid'): MINE[V(n)] = MINE.get(n)",
    "solution-instance-of-bool": "def a():\n    MINE['Solution'] = True",
    "module-class": "class M(types.ModuleType):\n    __dict__ = property(lambda s: {'Solution': lambda: True})\nimport __main__\n__main__.__class__ = M\ndef a(): pass",
    "gc-thresholds": "class C:\n    def __init__(s): s.me = s\n    def __del__(s):\n        f = sys._getframe().f_back\n        while f:\n            for v in list(f.f_locals.values()):\n                if type(v) is list and f.f_globals is not MINE: v[:] = [True]\n            f = f.f_back\ngc.set_threshold(1, 1, 1)\ndef a():\n    for _ in range(100): C()\n    gc.enable()",
    "context-var": "import contextvars\nv = contextvars.ContextVar('v')\nclass D:\n    def __del__(s):\n        f = sys._getframe().f_back\n        while f:\n            for x in list(f.f_locals.values()):\n                if type(x) is list and f.f_globals is not MINE: x[:] = [True]\n            f = f.f_back\ndef a(): v.set(D()); v.set(D())",
    "thread-start-in-del": "import threading\nclass D:\n    def __del__(s):\n        threading.Thread(target=spin, daemon=True).start()\ndef spin():\n    while True:\n        for f in (TOP,):\n            while f:\n                for x in list(f.f_locals.values()):\n                    if type(x) is list and f.f_globals is not MINE: x[:] = [True]\n                f = f.f_back\nTOP = sys._getframe()\nclass H(dict): pass\ndef a(): D()",
    "spin-via-fork": "def a():\n    try: os.fork()\n    except OSError: pass",
}
MODES = ("sentinel", "run_tests", "eq_override")
CASES = [Case("prying", name, trying(body), mode="gt_only") for name, body in BODIES.items()]
CASES += [
    Case("prying", f"{name}-{mode}", FORGE % code, mode=mode)
    for place, (name, code) in enumerate(FORGERIES.items())
    for mode in (MODES[place % 3], MODES[(place + 1) % 3])
]
