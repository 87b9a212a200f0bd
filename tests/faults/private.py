"""A /dev/shm and System V segments that only this process and its children see, so that what is in them is theirs."""

import contextlib
import ctypes
import os
import pathlib

SHM = pathlib.Path("/dev/shm")
SEGMENTS = pathlib.Path("/proc/sysvipc/shm")  # those of the reader's namespace
NEW_MOUNTS, NEW_IPC = 0x20000, 0x8000000  # of unshare()
RECURSIVE, PRIVATE, NO_SUID, NO_DEVICES = 0x4000, 0x40000, 2, 4  # of mount()
REMOVE = 0  # of shmctl()
MARKED = 0o1000  # SHM_DEST: the kernel removes the segment with its last process, even some time after it has ended

why_not = "make_private() was not called"  # "" if the memory is private


def make_private():
    """Call it before the first thread. Returns why it was not possible; "" if it was."""
    global why_not
    libc = ctypes.CDLL(None, use_errno=True)
    space = os.statvfs(SHM)
    size = f"mode=1777,size={space.f_blocks * space.f_frsize}".encode()
    steps = (("unshare", lambda: libc.unshare(NEW_MOUNTS | NEW_IPC)),
             ("mount /", lambda: libc.mount(b"none", b"/", None, ctypes.c_ulong(RECURSIVE | PRIVATE), None)),
             ("mount /dev/shm", lambda: libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs",
                                                   ctypes.c_ulong(NO_SUID | NO_DEVICES), size)))
    why_not = ""
    for name, call in steps:
        if not why_not and call() != 0:
            why_not = f"{name}: {os.strerror(ctypes.get_errno())}"
    return why_not


def segments(table=None):
    """[(id, mode)] of the System V segments in this text of SEGMENTS; default: all that this process sees."""
    lines = [line.split() for line in (table or SEGMENTS.read_text()).splitlines()[1:]]
    return [(int(line[1]), int(line[2], 8)) for line in lines]


def left_segments(table=None):
    """Those that stay until somebody removes them, as texts."""
    return [f"System V segment {number}" for number, mode in segments(table) if not mode & MARKED]


def left():
    """All shared memory, as texts; none if it is not private."""
    if why_not:
        return []
    return [str(path) for path in sorted(SHM.iterdir())] + left_segments()


def clear():
    if why_not:
        return
    for path in SHM.iterdir():
        with contextlib.suppress(OSError):
            path.unlink()
    for number, _ in segments():
        ctypes.CDLL(None).shmctl(number, REMOVE, None)
