"""Where the checks of a zygote run: a root of its own in namespaces, or a plain temporary folder."""

import contextlib
import os
import shutil
import sys
import tempfile
import time

from projected_grpo.sandbox import kernel

BOX = "/box"
BOX_OPTIONS = "size=16m,nr_inodes=1024,mode=0777"
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


def readable() -> list[str]:
    """Return what an interpreter needs to import and load libraries lazily."""
    found = [os.path.dirname(os.__file__), os.path.join(sys.base_prefix, "lib")]
    found += ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo"]
    return list(dict.fromkeys(path for path in found if os.path.isdir(path)))


def others_may_read() -> bool:
    """Whether any user can reach the standard library (a Python in root's home cannot be)."""
    path = os.path.dirname(os.__file__)
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
    kernel.mount("tmpfs", BOX, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC, BOX_OPTIONS)


def size(folder: str) -> int:
    """Bytes that the files of `folder` take; there are no folders in it (see landlock)."""
    total = 0
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            total += max(4096, entry.stat(follow_symlinks=False).st_blocks * 512)
    return total


def empty(folder: str) -> None:
    """Remove everything in `folder`, whatever its modes are."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, onerror=_unlock)
        else:
            os.unlink(entry.path)


def _unlock(function, path: str, _info) -> None:
    os.chmod(os.path.dirname(path), 0o700)
    os.chmod(path, 0o700) if not os.path.islink(path) else None
    function(path) if function is not os.scandir else shutil.rmtree(path, onerror=_unlock)


def make_folder(uid: int | None) -> str:
    """Return a new temporary folder that the checks' user may write to."""
    folder = tempfile.mkdtemp(prefix="projected-grpo-box-")
    if uid is not None:
        os.chown(folder, uid, uid)
    return folder


def remove_folder(folder: str) -> None:
    for _ in range(50):
        try:
            empty(folder)
            os.rmdir(folder)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return
