"""Limits of memory."""

import contextlib
import os
import pathlib
import resource
import signal
import time

from harness import Deadline, Row, Skip, ended, wait_until
from training import KILLED, WORLD, backend_of


def too_large(place, backend, rng):
    """The address space of each process is limited; one weight needs 3 GB."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    job = place.train(backend_of(backend), "model.options.hidden=1000000", preexec_fn=limit)
    return ended(place, job, job.started, cause="out of memory.*3136000000|3136000000 bytes", code=1)


def memory_group():
    """A new memory cgroup: its folder and the file with its limit."""
    name = f"ddprun-faults-{os.getpid()}-{time.monotonic_ns()}"
    for mount, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        folder = pathlib.Path(mount) / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / limit).exists():
            return folder, folder / limit
        folder.rmdir()
    raise Skip("no memory cgroup can be made here")


def cgroup_kill(place, backend, rng):
    folder, limit = memory_group()
    try:
        limit.write_text(str(600 << 20))
        def enter():
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        job = place.train(backend_of(backend), "model.options.hidden=50000", preexec_fn=enter)
        # A backend refuses an allocation that the limit leaves no memory for; what comes later, the kernel ends.
        return ended(place, job, job.started, rank=range(WORLD), code=(5, 1),
                     cause=KILLED + r", memory limit reached|allocating \d+ bytes: out of memory: ")
    finally:
        for pid in place.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(Deadline):
            wait_until(lambda: not (folder / "cgroup.procs").read_text(), 10, "the cgroup is empty")
        with contextlib.suppress(OSError):
            folder.rmdir()


ROWS = [
    Row("out of memory: limit of the address space", "the size of the tensor; exit 1", None, too_large, quick=1,
        full=3),
    Row("out of memory: limit of the cgroup",
        "SIGKILL, memory limit reached, and exit 5; or the size that was refused, and exit 1", None, cgroup_kill,
        quick=1, full=3),
]
