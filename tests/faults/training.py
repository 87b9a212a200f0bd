"""What rows of a training in three ranks have in common."""

import time

KILLED = r"killed by signal 9 \(SIGKILL\)"
WORLD = 3


def backend_of(backend):
    return f"comm.backend={backend}"


def fault_in(kind, rank=1, step=6, **more):
    return [f"faults.kind={kind}", f"faults.rank={rank}", f"faults.step={step}"] + [f"{k}={v}" for k, v in more.items()]


def last_step_before(job, step):
    """When rank 0 reported the step before `step`: just before a fault of [faults] in that step."""
    return job.line(rf"epoch 1 \[{step - 1}/", 1)[0]


def running(place, backend, rng, *settings):
    """A training in some step: (job, {rank: pid})."""
    job = place.train(backend_of(backend), *settings)
    job.wait_for_step(3)
    ranks = job.ranks(WORLD)
    place.look()
    time.sleep(rng.uniform(0, 0.3))
    return job, ranks
