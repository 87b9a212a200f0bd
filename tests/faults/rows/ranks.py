"""Faults of ranks and of the launcher."""

import os
import signal

from harness import ALL, Row, ended, now


def kill(place, backend, rng):
    job = place.train(f"comm.backend={backend}")
    job.wait_for_step(rng.randint(1, 20))
    victim = rng.randrange(3)
    pid = job.ranks(3)[victim]
    place.look()
    fault = now()
    os.kill(pid, signal.SIGKILL)
    return ended(place, job, fault, rank=victim, cause=r"killed by signal 9 \(SIGKILL\)", code=5)


ROWS = [
    Row("SIGKILL of a rank", "exit 5; signal, rank, step and bucket named", 0.5, kill, quick=2, full=50, backends=ALL),
]
