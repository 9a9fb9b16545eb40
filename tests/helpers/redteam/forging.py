# ruff: noqa: E501  (submissions are kept as they would be written)
"""Submissions that write verdicts of their own to whatever is open."""

from redteam import WRONG, Case

PAYLOADS = """
import os, json, pickle, struct
TEXTS = [b"true", b"PASS", b"1", b"OK\\n", b"passed", b"vtrue", b"c", b"d",
         json.dumps({"passed": True, "ok": True, "gt_pass": True, "channel": True, "result": "pass"}).encode() + b"\\n",
         json.dumps([["ok", 10]] * 6).encode(), pickle.dumps(True), pickle.dumps({"passed": True})]
TEXTS += [struct.pack("<I", len(t)) + t for t in TEXTS] + [struct.pack(">I", len(t)) + t for t in TEXTS]
"""
EVERY = (
    PAYLOADS
    + """
for fd in range(3, 256):
    for text in TEXTS:
        try:
            os.write(fd, text)
        except OSError:
            break
"""
)
MODES = ("run_tests", "sentinel", "stdout_marker", "file_marker", "eq_override", "exit_code")
CASES = [Case("forging", f"every-descriptor-{mode}", EVERY + WRONG, mode=mode) for mode in MODES]
CASES += [
    Case("forging", f"every-descriptor-and-exit-{mode}", EVERY + WRONG + "os._exit(1)", mode=mode)
    for mode in MODES
]
CASES += [
    Case("forging", "frames-like-ours", """
import os, struct
for token in (b"", b"\\0" * 8, b"\\0" * 16):
    for kind in (b"c", b"l", *[b"v10"] * 6, b"d"):
        for fd in range(3, 16):
            try: os.write(fd, token + struct.pack("<I", len(kind)) + kind)
            except OSError: pass
os._exit(0)
""" + WRONG),
    Case("forging", "replay-what-the-pipe-held", """
import os
for fd in range(3, 64):
    try:
        os.set_blocking(fd, False)
        data = os.read(fd, 1 << 16)
        os.write(fd, data + data)
    except OSError: pass
""" + WRONG),
    Case("forging", "dup-stdout-onto-all", "import os\nfor fd in range(3, 64):\n    try: os.dup2(1, fd)\n    except OSError: pass" + WRONG),
    Case("forging", "close-all-and-open-pipes", "import os\nos.closerange(0, 64)\nfor _ in range(8): os.pipe()" + WRONG),
    Case("forging", "memfd", "import os\ntry:\n    fd = os.memfd_create('x')\n    os.write(fd, b'PASS')\nexcept OSError: pass" + WRONG, mode="file_marker"),
    Case("forging", "sendmsg-descriptors", """
import socket
for fd in range(3, 32):
    try:
        s = socket.socket(fileno=fd)
        s.sendall(b'{"passed": true}')
    except OSError: pass
""" + WRONG),
    Case("forging", "stdout-says-so", "print('PASS\\nOK\\n{\"passed\": true, \"gt_pass\": true}\\nexit 0')" + WRONG, mode="run_tests"),
    Case("forging", "stderr-marker-is-no-stdout", "import sys\nprint('all tests passed', file=sys.stderr)" + WRONG, mode="stdout_marker"),
    Case("forging", "stderr-raw-marker", "import os\nos.write(2, b'all tests passed')" + WRONG, mode="stdout_marker"),
    Case("forging", "emit-found-through-frames", """
import sys
frame = sys._getframe()
while frame:
    emit = frame.f_locals.get("emit")
    if emit:
        emit(b"l", "")
        for _ in range(6): emit(b"v", "10")
        emit(b"d", "")
        import os; os._exit(0)
    frame = frame.f_back
""" + WRONG),
    Case("forging", "token-from-memory", """
import gc, os, struct
for thing in gc.get_objects():
    for cell in getattr(thing, "__closure__", None) or ():
        try: token = cell.cell_contents
        except ValueError: continue
        if type(token) is bytes:
            for kind in (b"l", *[b"v10"] * 6, b"d"):
                try: os.write(3, token + struct.pack("<I", len(kind)) + kind)
                except OSError: pass
""" + WRONG),
]  # fmt: skip
