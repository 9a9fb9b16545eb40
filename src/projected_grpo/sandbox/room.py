"""Where the checks of a zygote run: a root of its own in namespaces, or a plain temporary folder."""

import contextlib
import itertools
import os
import stat
import sys

from projected_grpo.sandbox import kernel

BOX = "/box"
BOX_SIZE, BOX_FILES = 16 << 20, 1024
DISK, MOST_FILES = 64 << 20, 4096  # where no small file system bounds them, looked at from time to time
LONGEST_PATH = 2000  # folders in folders; beyond 4096 no name would reach them
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
# files that a check may be asked for
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
    """Remove everything in `folder`, whatever its modes are and however deep it is.

    What a folder holds is moved up before the folder goes, so that no path gets long.
    """
    prefix, names = os.urandom(8).hex(), itertools.count()
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            for inner in list(os.scandir(entry.path)):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, 0o700)
                    os.rename(inner.path, os.path.join(folder, f"{prefix}.{next(names)}"))
                else:
                    os.unlink(inner.path)
            os.rmdir(entry.path)


def remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        empty(folder)
        os.rmdir(folder)


def open_file(folder: str, name: str) -> int | None:
    """Return a descriptor of the file `name` in `folder` if it is a regular file, no link; whoever wrote it is gone."""
    path = os.path.join(folder, name)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        os.chmod(path, 0o600)
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
