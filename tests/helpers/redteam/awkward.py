# ruff: noqa: E501  (submissions are kept as they would be written)
"""Right submissions that are odd, slow, loud or need what LeetCode provides without an import."""

import sys

from redteam import RIGHT, Case, method

BODIES = {
    "mutates-arguments": "nums.append(k)\nreturn sum(nums)",
    "clears-arguments": "total = sum(nums) + k\nnums.clear()\nreturn total",
    "prints": "print('debug', nums)\nreturn sum(nums) + k",
    "prints-much": "print('x' * 10**7)\nreturn sum(nums) + k",
    "prints-to-stderr": "import sys\nprint('x' * 10**6, file=sys.stderr)\nreturn sum(nums) + k",
    "prints-surrogates": "print('\\ud800')\nreturn sum(nums) + k",
    "recursion-limit": "import sys\nsys.setrecursionlimit(10**6)\ndef f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nreturn sum(nums) + k + f(20000) - 20000",
    "float-result": "return float(sum(nums) + k)",
    "bool-arithmetic": "return sum(nums) + k + False",
    "a-tenth-of-a-second": "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass\nreturn sum(nums) + k",
    "seconds-in-all": "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\nreturn sum(nums) + k",
    "sleeps": "import time\ntime.sleep(0.3)\nreturn sum(nums) + k",
    "big-memory": "x = bytearray(200 << 20)\nreturn sum(nums) + k",
    "thread": "import threading\nout = []\nt = threading.Thread(target=lambda: out.append(sum(nums) + k))\nt.start(); t.join()\nreturn out[0]",
    "thread-with-stack": "import sys, threading\nthreading.stack_size(1 << 27)\nsys.setrecursionlimit(10**6)\nout = []\nt = threading.Thread(target=lambda: out.append(sum(nums) + k))\nt.start(); t.join()\nreturn out[0]",
    "executor": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n    return sum(pool.map(lambda x: x, nums)) + k",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return sum(nums) + k\nreturn asyncio.run(f())",
    "deque": "queue = deque(nums)\ntotal = k\nwhile queue: total += queue.popleft()\nreturn total",
    "defaultdict-counter": "c = Counter(nums); d = defaultdict(int)\nfor x, n in c.items(): d[0] += x * n\nreturn d[0] + k",
    "heap": "heapify(nums)\ntotal = k\nwhile nums: total += heappop(nums)\nreturn total",
    "functools": "return reduce(lambda a, b: a + b, nums, k)",
    "itertools": "return list(accumulate(chain([k], nums)))[-1]",
    "math": "return sum(nums) + k + gcd(4, 6) - 2 + int(inf > 1) - 1",
    "bisect": "return sum(nums) + k + bisect_left([1, 2, 3], 1)",
    "modules-by-name": "return sum(nums) + k + math.floor(0.5) + len(collections.deque()) + heapq.heappop([0]) + functools.reduce(max, [0])",
    "random": "random.seed(1)\nrandom.random()\nreturn sum(nums) + k",
    "regex": "import re\nreturn sum(map(int, re.findall(r'-?\\d+', str(nums)))) + k",
    "decimal": "from decimal import Decimal\nreturn int(sum(map(Decimal, nums)) + k)",
    "nested-function-nonlocal": "total = k\ndef add(x):\n    nonlocal total\n    total += x\nfor x in nums: add(x)\nreturn total",
    "changes-recursion-and-gc": "import gc\ngc.disable(); gc.collect()\nreturn sum(nums) + k",
    "raises-stack-limit": "import resource\ntry:\n    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)\nexcept (ValueError, OSError): pass\nreturn sum(nums) + k",
    "tempfile": "import tempfile\nwith tempfile.TemporaryFile(dir='.') as f:\n    f.write(b'x')\nreturn sum(nums) + k",
    "catches-own-errors": "try:\n    [][0]\nexcept IndexError:\n    pass\nreturn sum(nums) + k",
    "exec": "scope = {'nums': nums, 'k': k}\nexec('r = sum(nums) + k', scope)\nreturn scope['r']",
}
# From 3.12 on Python itself ends recursion through C code, such as a cached function.
if sys.version_info < (3, 12):
    BODIES["deep-cached-recursion"] = (
        "import sys\nsys.setrecursionlimit(10**6)\n@lru_cache(None)\ndef f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nreturn sum(nums) + k + f(20000) - 20000"
    )
CASES = [Case("awkward", name, method(body), gt_pass=True) for name, body in BODIES.items()]
CASES += [
    Case("awkward", "typing-names", "class Solution:\n    def solve(self, nums: List[int], k: Optional[int]) -> Union[int, Dict[str, Tuple[int, ...]]]:\n        return sum(nums) + k", gt_pass=True),
    Case("awkward", "dataclass", "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: 'int'\n    y: int = 0\n" + method("return sum(P(x).x for x in nums) + k"), gt_pass=True),
    Case("awkward", "dataclass-future", "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n" + method("return sum(P(x).x for x in nums) + k"), gt_pass=True),
    Case("awkward", "namedtuple-enum", "from collections import namedtuple\nfrom enum import Enum\nP = namedtuple('P', 'x')\nclass E(Enum):\n    A = 0\n" + method("return sum(P(x).x for x in nums) + k + E.A.value"), gt_pass=True),
    Case("awkward", "pickles-own-class", "import pickle\nclass P:\n    pass\n" + method("pickle.loads(pickle.dumps(P()))\nreturn sum(nums) + k"), gt_pass=True),
    Case("awkward", "state-in-class", "class Solution:\n    calls = []\n    def solve(self, nums, k):\n        self.calls.append(nums)\n        return sum(nums) + k", gt_pass=True),
    Case("awkward", "inherits", "class Base:\n    def solve(self, nums, k):\n        return sum(nums) + k\nclass Solution(Base):\n    pass", gt_pass=True),
    Case("awkward", "static-method", "class Solution:\n    @staticmethod\n    def solve(nums, k):\n        return sum(nums) + k", gt_pass=True),
    Case("awkward", "defined-by-type", "Solution = type('Solution', (), {'solve': lambda self, nums, k: sum(nums) + k})", gt_pass=True),
    Case("awkward", "slots", "class Solution:\n    __slots__ = ()\n    def solve(self, nums, k):\n        return sum(nums) + k", gt_pass=True),
    Case("awkward", "prints-at-load", "print('loading')" + RIGHT, gt_pass=True),
    Case("awkward", "main-guard-prints", RIGHT + "if __name__ == '__main__':\n    print(Solution().solve([1], 2))", gt_pass=True),
    Case("awkward", "main-guard-unittest", RIGHT + "if __name__ == '__main__':\n    import unittest\n    unittest.main()", gt_pass=True),
    Case("awkward", "main-guard-input", RIGHT + "if __name__ == '__main__':\n    input()", gt_pass=True),
    Case("awkward", "slow-load", "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass" + RIGHT, gt_pass=True),
    Case("awkward", "redefines-builtins-locally", "def sorted(x): return x\ndef print(*a): pass\n" + RIGHT, gt_pass=True),
    Case("awkward", "defines-twice", "class Solution:\n    pass\n" + RIGHT, gt_pass=True),
    Case("awkward", "own-exception-classes", "class E(Exception):\n    pass\n" + method("try:\n    raise E\nexcept E:\n    return sum(nums) + k"), gt_pass=True),
    Case("awkward", "warns", "import warnings\nwarnings.warn('x')" + RIGHT, gt_pass=True),
    Case("awkward", "logs", "import logging\nlogging.basicConfig(level=0)\nlogging.info('x')" + RIGHT, gt_pass=True),
    Case("awkward", "honest-tests", RIGHT + "    def run_tests(self):\n        assert self.solve([1, 2], 3) == 6\n", gt_pass=True),
]  # fmt: skip
