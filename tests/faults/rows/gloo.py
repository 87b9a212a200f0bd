"""System calls of Gloo that fail. Gloo then throws, in the thread that called it or in a thread of its own."""

import errno
import re

from harness import Outcome, Row, ended
from rows.disks import build_of, built
from training import ANY_PID, backend_of, check_resuming, tensors_of, tensors_without_fault

# How often each call works at most before it fails: each rank makes it more often than that.
CALLS = {"socket": 3, "bind": 0, "listen": 0, "accept": 0, "connect": 0, "getsockname": 3, "getpeername": 0,
         "getsockopt": 0, "setsockopt": 3, "epoll_ctl": 3, "recv": 20, "writev": 20}


def failing(place, call, after, error):
    """The environment in which a call of Gloo fails once in rank 1, after it has worked `after` times."""
    library = built(build_of(place) / "lib/libfaulty_gloo.so")
    return {"LD_AUDIT": str(library), "DDPRUN_GLOO_RANK": "1", "DDPRUN_GLOO_CALL": call,
            "DDPRUN_GLOO_AFTER": str(after), "DDPRUN_GLOO_ERRNO": str(error)}


def system_call(place, backend, rng):
    """Gloo repeats some calls that fail. Then the training ends as without the fault."""
    settings = [backend_of(backend), "train.steps=40", "comm.timeout=4s"]
    whole = tensors_without_fault(place, *settings)
    call = rng.choice(list(CALLS))
    error = rng.choice((errno.EIO, errno.ENOBUFS, errno.EBADF))
    environment = failing(place, call, rng.randint(0, CALLS[call]), error)
    for _ in range(20):
        job = place.train(*settings, environment=environment)
        code = job.wait()
        has_failed = f"faulty_gloo: {call} fails" in job.text()
        # Which of two ranks connects and which accepts depends on their ports, so rank 1 may not make this call.
        if has_failed:
            break
    named = re.fullmatch(r"ddprun: failed: rank \d .*: .*", job.last_line()) and "signal" not in job.last_line()
    outcome = Outcome(code=code in (0, 1, 4, 5), cause=has_failed and (code == 0 or bool(named)),
                      left=place.left(ANY_PID if code else ()))
    outcome.commit = code != 0 or tensors_of(place.commits()[-1]) == whole
    if outcome.problems():
        outcome.note = f"{call}: exit {code}, last line: {job.last_line()}"
    return outcome


def exception_in_thread(place, backend, rng):
    """Gloo's thread waits for events, and throws when it cannot. Nothing catches that, so the rank ends at any time."""
    job = place.train(backend_of(backend), environment=failing(place, "epoll_wait", rng.randint(0, 100), errno.EBADF))
    outcome = ended(place, job, job.started, rank=1, code=1, killed=ANY_PID,
                    cause=r"an exception that no code catches, in libgloo\.so\S*: .*enforce fail")
    outcome.end = None
    check_resuming(place, backend, outcome)
    return outcome


ROWS = [
    Row("a system call of Gloo fails", "a rank and Gloo's text; exit 1, 4 or 5; or the same weights", None,
        system_call, quick=2, full=100, backends=("gloo",)),
    Row("an exception in a thread of Gloo", "the rank, the library and the text; exit 1", None, exception_in_thread,
        quick=1, full=20, backends=("gloo",)),
]
