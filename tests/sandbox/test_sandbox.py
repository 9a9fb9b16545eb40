"""The sandbox: layers, limits, restarts, and what is left when either side dies."""

import contextlib
import marshal
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from projected_grpo.errors import UserError
from projected_grpo.sandbox import seccomp
from projected_grpo.sandbox.levels import STRONG, WEAK, probe
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.values import equals
from projected_grpo.sandbox.worker import Zygote, ZygoteDied, check, job

BURN = """
import time
class Solution:
    def f(self, s):
        end = time.process_time() + s
        while time.process_time() < end: pass
        return s
"""
LOOK = """
import os, builtins
class Solution:
    def f(self, x):
        return [os.listdir('.'), hasattr(builtins, 'LEFT')]
"""
ADD = "class Solution:\n    def f(self, x):\n        return x + 1\n"


def calls(*arguments):
    tests = [marshal.dumps((args, {})) for args in arguments]
    return check("calls", {"method": "f", "tests": tests}, answers=len(tests))


def descendants(pid):
    """All processes below `pid`, from /proc."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                if stat[0] != "Z":
                    parents[int(entry)] = int(stat[1])
    found, wave = set(), {pid}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave}
        found |= wave
    return found


def alive(pids):
    left = set()
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                left.add(pid)
    return left


@pytest.fixture
def boxes(monkeypatch):
    """The folders of checks there are, in a temporary folder that no other test has."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield lambda: set(Path(folder).glob("projected-grpo-box-*"))


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def run_filter(program, architecture, number, args=(0, 0)):
    """A BPF machine of its own: what the kernel would answer."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *args, *[0] * (6 - len(args)))
    instructions = list(struct.iter_unpack("HBBI", program))
    place = accumulator = 0
    while True:
        code, yes, no, value = instructions[place]
        place += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif code == 0x15:
            place += yes if accumulator == value else no
        elif code == 0x35:
            place += yes if accumulator >= value else no
        elif code == 0x54:
            accumulator &= value
        elif code == 0x05:
            place += value
        elif code == 0x06:
            return value
        else:
            raise AssertionError(f"unknown instruction {code:#x}")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("kind", ["plain", "alone", "mute"])
@pytest.mark.parametrize("own", [True, False])
def test_filter_allows_the_list_and_nothing_else(machine, kind, own, monkeypatch):
    monkeypatch.setattr(seccomp.kernel, "machine", machine)
    column, architecture = seccomp.ARCHITECTURES[machine]
    program = seccomp.program(kind, own)
    refused = {"plain": (), "alone": seccomp.ALONE, "mute": seccomp.MUTE}[kind]
    allowed = {pair[column] for name, pair in seccomp.ALLOWED.items() if name not in refused} - {None}
    hidden = (
        () if own else {(seccomp.ALLOWED | seccomp.SPECIAL)[name][column] for name in seccomp.IDS} - {None}
    )
    special = {pair[column] for pair in seccomp.SPECIAL.values()} - {None}
    for number in range(600):
        if number in hidden:
            assert run_filter(program, architecture, number) == seccomp.ZERO, number
        elif number not in special:
            expected = seccomp.ALLOW if number in allowed else seccomp.EPERM
            assert run_filter(program, architecture, number) == expected, number
    assert run_filter(program, architecture ^ 1, 0) == seccomp.KILL
    if machine == "x86_64":
        assert run_filter(program, architecture, 0x40000000) == seccomp.KILL

    def answers(name, *args):
        """What the kernel answers to a call, an argument at a time."""
        number = seccomp.SPECIAL[name][column]
        return run_filter(program, architecture, number, args)

    yes, no, mute = seccomp.ALLOW, seccomp.EPERM, kind == "mute"
    assert answers("clone", seccomp.CLONE_THREAD | 0x100) == (no if mute else yes)
    assert answers("clone", 17) == no and answers("clone3", 0) == seccomp.ENOSYS
    for flags in (0, 1 << 17, 1 << 28, 1 << 29, seccomp.CLONE_THREAD | 1 << 28):
        assert answers("unshare", flags) == no
    assert answers("unshare", seccomp.CLONE_THREAD) == yes
    for request, expected in ((0x5401, yes), (0x5412, no), (0x5452, no)):  # TCGETS, TIOCSTI, FIOASYNC
        assert answers("ioctl", 0, request) == expected
    assert answers("prlimit", 0) == yes and answers("prlimit", 1) == no
    for command in range(1100):
        expected = yes if command in seccomp.FCNTLS or command == seccomp.F_SETFL else no
        assert answers("fcntl", 0, command) == expected, command
    assert answers("fcntl", 0, seccomp.F_SETFL, 0x800) == yes
    assert answers("fcntl", 0, seccomp.F_SETFL, seccomp.O_ASYNC) == no
    for name, place in (("open", 1), ("openat", 2)):
        for flags in range(0x1000) if seccomp.SPECIAL[name][column] is not None else ():
            truncates, access, creates = flags & seccomp.O_TRUNC, flags & 3, flags & seccomp.O_CREAT
            bad = access == 3 or (truncates and access == 0) or (mute and (access or truncates or creates))
            assert answers(name, *[0] * place, flags) == (no if bad else yes), hex(flags)
    for operation in range(16):
        assert answers("futex", 0, operation | 128) == answers("futex", 0, operation | 128 | 256) == yes
        shared = {0: seccomp.EAGAIN, 9: seccomp.EAGAIN, 1: seccomp.ZERO}.get(operation, no)
        assert answers("futex", 0, operation) == shared
    assert answers("mknodat", 0, 0, 0o010600) == (no if mute else yes)
    assert {answers("mknodat", 0, 0, kind | 0o600) for kind in (0o100000, 0o020000, 0o060000, 0o140000)} == {
        no
    }
    for name in ("mmap", "mprotect"):
        assert answers(name, 0, 0, 3) == yes and answers(name, 0, 0, 7) == (
            yes if kind == "plain" or own else no
        )
    assert (
        answers("madvise", 0, 0, 4) == yes and answers("madvise", 0, 0, 21) == seccomp.EINVAL
    )  # MADV_PAGEOUT
    for name in ("clock_gettime", "clock_getres", "clock_nanosleep"):
        assert answers(name, 2) == yes and answers(name, (~77 << 3 | 2) & 0xFFFFFFFF) == seccomp.EINVAL
    for name in ("sched_getparam", "sched_getscheduler", "sched_getaffinity"):
        assert answers(name, 0) == yes and answers(name, 77) == no
    for name in ("fsync", "fdatasync", "fadvise64"):
        assert answers(name, 3) == seccomp.ZERO


@pytest.mark.parametrize("level", [*STRONG, WEAK])
def test_layer_passes_its_probes_and_leaves_no_folder(level, boxes):
    if level == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    try:
        zygote = Zygote(level)
    except OSError as error:
        pytest.skip(str(error))
    with contextlib.closing(zygote):
        assert probe(zygote, level) is None
    assert not boxes()


def test_weak_layer_lets_an_escape_through_so_the_probe_can_fail():
    with contextlib.closing(Zygote(WEAK)) as zygote:
        assert "read a file" in probe(zygote, "namespaces")


def test_refuses_where_no_layer_works():
    with pytest.raises(UserError, match=r"sandbox: weak.*--allow-weak-sandbox"):
        _ = Pool(1, levels=()).level


def test_other_users_may_run_it_too(tmp_path):
    """As an ordinary user, with a Python that one can read."""
    python = "/usr/bin/python3"
    if os.geteuid() != 0 or not os.path.exists(python):
        pytest.skip("needs root and a system Python")
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True, text=True
    )
    if version.stdout.strip() != "True":
        pytest.skip("the system Python is too old")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        package = Path(folder) / "projected_grpo"
        shutil.copytree(
            Path(seccomp.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__")
        )
        for path in [package, *package.rglob("*")]:
            path.chmod(0o755)
        code = "import sys; from projected_grpo.sandbox.levels import Zygote, probe; "
        code += "z = Zygote(sys.argv[1]); print(probe(z, sys.argv[1])); z.close()"
        for level in ("namespaces", "landlock"):
            done = subprocess.run(
                [python, "-c", code, level],
                cwd=folder,
                user=12345,
                group=12345,
                extra_groups=[],
                capture_output=True,
                text=True,
            )
            if "OSError" in done.stderr:
                continue  # a kernel without it
            assert done.stdout.strip() == "None", done.stderr


def test_a_dead_zygote_is_replaced_and_its_job_repeated():
    with contextlib.closing(Pool(2)) as pool:
        jobs = ((index, job("", ADD, [calls((index,))])) for index in range(30))
        answers = {}
        for key, seen in pool.run(jobs):
            answers[key] = seen[0]["frames"][2]
            if key in (3, 4, 11):
                for zygote in pool._idle:
                    zygote.process.kill()
    assert answers == {index: b"v%d" % (index + 1) for index in range(30)}


def test_a_job_that_kills_every_zygote_is_a_crash_of_its_own(monkeypatch):
    """Where a good job goes well; where that fails, too, there is an error and no verdict."""
    start = Zygote.start

    def dying(self, job, check, *rest):
        if b"poison" in job["code"]:
            self.process.kill()
            raise ZygoteDied
        return start(self, job, check, *rest)

    monkeypatch.setattr(Zygote, "start", dying)
    with contextlib.closing(Pool(1)) as pool:
        jobs = [(index, job("", ADD + "# poison" * (index == 1), [calls((1,))])) for index in range(3)]
        answers = dict(pool.run(jobs))
        assert answers[1][0]["frames"] == [] and answers[1][0]["cause"] == "crash"
        assert answers[0][0]["frames"][2] == answers[2][0]["frames"][2] == b"v2"
        monkeypatch.setattr("projected_grpo.sandbox.pool.probe", lambda *_: "right code fails in it")
        with pytest.raises(RuntimeError, match="died 3 times over one job: right code fails"):
            list(pool.run(jobs))


def test_cpu_decides_and_counts_over_the_whole_check():
    with contextlib.closing(Pool(1)) as pool:
        [(_, seen)] = pool.run([(0, job("", BURN, [calls((0.5,), (0.5,), (0.5,), (0.5,))]))])
        assert seen[0]["cause"] is None and seen[0]["frames"][-1] == b"d"
        [(_, seen)] = pool.run([(0, job("", BURN, [calls((0.1,), *[(0.7,)] * 6)]))])
        assert seen[0]["cause"] == "timeout" and 2.9 < seen[0]["cpu"] < 3.3
        assert equals(seen[0]["frames"][2][1:], 0.1, 100)
        # A second check gets what the first has left.
        [(_, seen)] = pool.run([(0, job("", BURN, [calls(*[(0.5,)] * 4), calls(*[(0.5,)] * 4)]))])
        assert seen[0]["cause"] is None and seen[1]["cause"] == "timeout"
        assert 2.9 < seen[0]["cpu"] + seen[1]["cpu"] < 3.4


def test_checks_leave_nothing_for_the_next():
    leave = (
        "open('left.txt', 'w').write('x')\nimport os\nos.makedirs('a/b')\nimport builtins\nbuiltins.LEFT = 1\n"
        + ADD
    )
    for level in ("namespaces", "landlock"):
        with contextlib.closing(Pool(1, levels=(level,))) as pool:
            try:
                _ = pool.level
            except UserError as error:
                pytest.skip(str(error))
            list(pool.run([(0, job("", leave, [calls((1,))]))]))
            [(_, seen)] = pool.run([(0, job("", LOOK, [calls((1,))]))])
            assert equals(seen[0]["frames"][2][1:], [[], False], 200)


TRAINER = """
import sys, time
from projected_grpo.sandbox.pool import *
from projected_grpo.sandbox.worker import check, job
pool = Pool(2, levels=(sys.argv[1],))
wait = "import time; time.sleep(60)"
jobs = [(i, job("", wait, [check("nothing", {})])) for i in range(2)]
pool.level
print("ready", flush=True)
for _ in pool.run(jobs): pass
"""


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_trainer(level, number, boxes):
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, level], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        if trainer.stdout.readline().strip() != "ready":
            pytest.skip(f"no {level} here")
        expected = {"namespaces": 6, "landlock": 2}[
            level
        ]  # per worker: (outer), zygote, check; the other has its turn later
        assert wait_until(lambda: len(descendants(trainer.pid)) >= expected)
        started = descendants(trainer.pid)
        trainer.send_signal(number)
        trainer.wait(timeout=20)
        assert wait_until(lambda: not alive(started)), alive(started)
        assert wait_until(lambda: not boxes())
    finally:
        trainer.kill()
        trainer.wait()


def fullest(boxes, ended):
    """The most bytes that all boxes held at any look."""
    most = 0
    while not ended.wait(0.01):
        with contextlib.suppress(OSError):
            most = max(most, sum(file.stat().st_size for box in boxes() for file in box.iterdir()))
    return most


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_files_are_bounded(level, boxes):
    fill = "i = 0\nwhile True:\n    i += 1\n    open(f'f{i}', 'wb').write(b'x' * (1 << 20))\n"
    ended = threading.Event()
    with contextlib.closing(Pool(1, levels=(level,))) as pool, ThreadPoolExecutor(1) as looks:
        try:
            _ = pool.level
        except UserError as error:
            pytest.skip(str(error))
        held = looks.submit(fullest, boxes, ended)
        try:
            [(_, seen)] = pool.run([(0, job("", fill, [check("nothing", {})]))])
        finally:
            ended.set()
        assert seen[0]["cause"] in (None, "output")  # the disk is full in there, or it was ended
        assert wait_until(lambda: all(not any(box.iterdir()) for box in boxes()))
        assert held.result() < 1 << 30


def test_a_check_that_cannot_be_locked_in_is_no_verdict(monkeypatch):
    """Where giving up rights fails in the fork, there is an error and not a wrong answer."""
    from projected_grpo.sandbox import worker

    failing = "import projected_grpo.sandbox.kernel as k; exec('def f(*a): raise OSError(1)'); "
    failing += "k.drop_capabilities = k.close_all_but = f; main()()"
    with contextlib.closing(Pool(1, levels=("namespaces",))) as pool:
        assert pool.level == "namespaces"
        while pool._idle:
            pool._idle.pop().close()
        monkeypatch.setattr(worker, "BOOT", worker.BOOT.replace("main()()", failing))
        with pytest.raises(RuntimeError, match="died 3 times"):
            list(pool.run([(0, job("", ADD, [calls((1,))]))]))


def test_elsewhere_the_weak_layer_does_without_linux(monkeypatch):
    """As on another system: none of Linux's own calls is there."""
    from projected_grpo.sandbox import levels, worker

    absent = (
        "import os; del os.pidfd_open, os.memfd_create, os.pipe2; import projected_grpo.sandbox.kernel as k; "
    )
    absent += "k.LINUX = False; k.libc = None; "
    monkeypatch.setattr(worker, "BOOT", worker.BOOT.replace("from projected", absent + "from projected", 1))
    monkeypatch.setattr(levels.kernel, "LINUX", False)
    with pytest.raises(UserError, match="no layer works"):
        _ = Pool(1).level
    printing = job("", "print('all tests passed')\n" + ADD, [check("nothing", {}, stdout=True)])
    leaving = job("", ADD + "import os; os._exit(0)", [check("status", {"method": "f", "tests": []})])
    with contextlib.closing(Pool(1, levels=(*STRONG, WEAK))) as pool:
        assert pool.level == WEAK
        answers = dict(pool.run([(0, job("", ADD, [calls((1,), (2,))])), (1, printing), (2, leaving)]))
    assert answers[0][0]["frames"][2:] == [b"v2", b"v3", b"d"]
    assert answers[1][0]["stdout"] == b"all tests passed\n"
    assert answers[2][0]["status"] == 0
