"""Ranks and machines that are slow. Nothing ends."""

import os
import re
import signal

from harness import Outcome, Row, Skip
from training import backend_of, fault_in, last_step_before

WIDE = "model.options.hidden=1024"  # a step takes 20 ms, or longer on a busy machine
LOOKS = 0.1  # seconds, in which the launcher looks twice


def normal_step(place, backend):
    """Seconds, of a run without a fault."""
    job = place.train(backend_of(backend), WIDE, "train.steps=20")
    assert job.wait() == 0, job.text()
    normal = (last_step_before(job, 20) - last_step_before(job, 6)) / 14
    if normal > 0.25:
        raise Skip(f"a step takes {normal:.1f} s on this busy machine, which may look like a slow rank")
    return normal


def slow(place, backend, rng):
    """From step 6 on, a step of rank 1 takes ten times as long. What counts is the shortest of a rank's last three
    steps, so it can be named after three slow ones, while the fourth goes on. While other work runs, the other ranks are
    slow as well, and it is named later."""
    most = 4 if os.getloadavg()[0] <= os.cpu_count() else 7
    normal = normal_step(place, backend)
    more = max(9 * normal, LOOKS)
    job = place.train(backend_of(backend), WIDE, "train.steps=12",
                      *fault_in("slow", step=6, **{"faults.seconds": f"{more:.3f}"}))
    code = job.wait()
    fault = last_step_before(job, 6)
    named = [when for when, text in job.lines if re.search(r"rank 1 .* is slow", text)]
    outcome = Outcome(code=code == 0, rank=bool(named), detect=named[0] - fault if named else None, left=place.left())
    done = [text for when, text in job.lines if named and fault < when < named[0] and "epoch 1 [" in text]
    outcome.cause = bool(named) and len(done) + 1 <= most
    outcome.rank = outcome.rank and not any(re.search(r"rank [02] .* is slow", text) for _, text in job.lines)
    if outcome.problems():
        outcome.note = (f"exit {code}; a step takes {normal:.3f} s, then {more:.3f} s more; named in slow step "
                        f"{len(done) + 1}; {job.text()[-1200:]}")
    return outcome


def busy_machine(place, backend, rng):
    """Four processes compute for ever while 2,000 steps are trained."""
    hogs = [place.start(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    job = place.train(backend_of(backend), "train.steps=2000", "log.every=1000")
    code = job.wait(300)
    for hog in hogs:
        hog.send(signal.SIGKILL)
        hog.wait()
    alarms = re.findall("is slow|has been in|failed", job.text())
    return Outcome(code=code == 0, cause=not alarms, left=place.left(), note=f"exit {code}; {job.text()[-800:]}")


ROWS = [
    Row("a rank ten times slower", "named in its fourth slow step at the latest, on a quiet machine; exit 0", None, slow,
        detect=4, quick=1, full=5),
    Row("a machine with four other busy processes", "no rank is ended or named; exit 0", None, busy_machine, quick=0,
        full=3),
]
