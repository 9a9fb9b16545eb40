"""Where the checks of a zygote run: a root of its own in namespaces, or a plain temporary folder."""

import _thread
import contextlib
import itertools
import os
import random
import stat
import sys
import threading
import time

from projected_grpo.sandbox import kernel

BOX = "/box"
BOX_SIZE, BOX_FILES = 16 << 20, 1024
DISK, MOST_FILES = 64 << 20, 4096  # where no small file system bounds them, looked at from time to time
LONGEST_PATH = 2000  # folders in folders; beyond 4096 no name would reach them
DEVICES = ("/dev/null", "/dev/urandom")  # a map of /dev/zero would be shared memory without a file
# files that a check may be asked for
# Seconds of CPU; a check has 3 to count up what the host numbers: what it could tell is below 8 bits. One that counts
# up both has half of them for each, and what it could tell by the two adds up.
BLUR, BLUR_BOTH = 0.05, 0.4
FEW = 8  # ids given during a check that has started next to no thread
RESULTS = (
    *("result.txt", "status.txt", "grade.txt", "report.txt"),
    *("verdict.txt", "outcome.txt", "review.txt"),
)


def readable() -> list[str]:
    """Return what an interpreter needs to import and load libraries lazily."""
    found = [os.path.dirname(os.__file__), os.path.join(sys.base_prefix, "lib")]
    found += ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo"]
    return list(dict.fromkeys(path for path in found if os.path.isdir(path)))


def others_may_read(*paths: str) -> bool:
    """Whether any user can get at what lies there (not so a Python in root's home)."""
    for path in paths:
        path = os.path.dirname(path)
        while path != "/":
            if not os.stat(path).st_mode & 0o001:
                return False
            path = os.path.dirname(path)
    return True


def enter_namespaces() -> bool:
    """Leave the host's mount, network, IPC, host-name and, for children, pid namespaces; return whether users, too.

    Root needs no user namespace; everyone else, and root of a container without rights, gets the rest through one.
    """
    flags = (
        kernel.CLONE_NEWNS
        | kernel.CLONE_NEWNET
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWUTS
        | kernel.CLONE_NEWPID
    )
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        with contextlib.suppress(OSError):
            kernel.unshare(flags)
            return False
    kernel.unshare(flags | kernel.CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def build_root() -> None:
    """Make a small read-only root of what `readable` names, and move into it; the host's files are gone after that."""
    new = "/proc"  # a folder that always exists and holds nothing that we bind
    sources = readable()
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", new, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=0755")
    attributes = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID
    for path in sources:
        target = new + path
        if os.path.islink(path) and os.path.dirname(path) == "/":
            os.symlink(os.readlink(path), target)
            continue
        if os.path.realpath(target).startswith(new) and os.path.isdir(target):
            continue  # below one that is there already
        os.makedirs(target, exist_ok=True)
        kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)
        kernel.protect(target, attributes | kernel.MOUNT_ATTR_NODEV)
    os.makedirs(new + "/dev")
    for path in DEVICES:
        with open(new + path, "w"):
            pass
        kernel.mount(path, new + path, None, kernel.MS_BIND)
    os.mkdir(new + BOX)
    os.mkdir(new + "/old")
    kernel.pivot_root(new, new + "/old")
    os.chdir("/")
    kernel.unmount("/old")
    os.rmdir("/old")
    kernel.protect("/", attributes, recursive=False)


def mount_box() -> None:
    options = f"size={BOX_SIZE},nr_inodes={BOX_FILES},mode=0777"
    kernel.mount("tmpfs", BOX, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC, options)


def unmount_box() -> None:
    kernel.unmount(BOX)


def overfull(folder: str) -> bool:
    """Whether the files of `folder` are too many or take too much."""
    size = count = 0
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if len(path) > LONGEST_PATH:
            return True
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                count += 1
                with contextlib.suppress(OSError):
                    size += max(4096, entry.stat(follow_symlinks=False).st_blocks * 512)
                if size > DISK or count > MOST_FILES:
                    return True
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return False


def empty(folder: str) -> None:
    """Remove everything in `folder`, whatever its modes are and however deep it is. Follows no link.

    What a folder holds is moved up before the folder goes, so that no path gets long.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    prefix, names = os.urandom(8).hex(), itertools.count()
    try:
        while entries := list(os.scandir(top)):
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=top)
                    continue
                inside = _open(entry.name, os.O_RDONLY | os.O_DIRECTORY, top)
                try:
                    for inner in list(os.scandir(inside)):
                        if inner.is_dir(follow_symlinks=False):
                            os.close(
                                _open(inner.name, os.O_RDONLY | os.O_DIRECTORY, inside)
                            )  # it can be moved now
                            os.rename(
                                inner.name, f"{prefix}.{next(names)}", src_dir_fd=inside, dst_dir_fd=top
                            )
                        else:
                            os.unlink(inner.name, dir_fd=inside)
                finally:
                    os.close(inside)
                os.rmdir(entry.name, dir_fd=top)
    finally:
        os.close(top)


def _open(name: str, flags: int, folder: int) -> int:
    """Return a descriptor of `name` in a folder, no link, made readable for its owner. Raises OSError."""
    with contextlib.suppress(PermissionError):
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        if os.fstat(fd).st_mode & 0o700 == 0o700 or not flags & os.O_DIRECTORY:
            return fd
        os.fchmod(fd, 0o700)
        return fd
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        # Through /proc it is this file, whatever has its name by now; where there is none nobody is left to race.
        through = f"/proc/self/fd/{place}"
        seen = os.path.exists(through)
        os.chmod(through if seen else name, 0o700, dir_fd=None if seen else folder)
    finally:
        os.close(place)
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


def remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        empty(folder)
        os.rmdir(folder)


def open_file(folder: str, name: str) -> int | None:
    """Return a descriptor of the file `name` in `folder` if it is a regular file, no link."""
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode):
                return None
            fd = _open(name, os.O_RDONLY, place)
        finally:
            os.close(place)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def blur_numbers(folder: str, longest: float) -> None:
    """Use up a random number of this file system's file numbers, as many as `longest` seconds of CPU make."""
    path = os.path.join(folder, "blur")
    end = time.process_time() + random.SystemRandom().uniform(0, longest)
    while time.process_time() < end:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        os.unlink(path)


def blur_ids(longest: float) -> None:
    """Use up a random number of the host's process ids, as many as `longest` seconds of CPU make."""
    end = time.process_time() + random.SystemRandom().uniform(0, longest)
    while time.process_time() < end:
        next_id()


def next_id() -> int:
    """Return the process id that was given last: a thread's, which has ended when this returns."""
    found: list[int] = []
    _thread.start_new_thread(lambda: found.append(threading.get_native_id()), ())
    while not found or kernel.libc.unshare(kernel.CLONE_THREAD):
        time.sleep(0)
    return found[0]
