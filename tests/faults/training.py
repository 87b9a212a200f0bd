"""What rows of a training in three ranks have in common."""

import json
import shutil
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


def tensors_of(path):
    """The header without its metadata, and the bytes of all tensors."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length:]


_without_fault = {}  # by settings


def tensors_without_fault(place, *settings):
    """The tensors of the last checkpoint of a whole run. It is trained once, and its folder is removed."""
    if settings not in _without_fault:
        assert place.train(*settings).wait() == 0
        _without_fault[settings] = tensors_of(place.commits()[-1])
        shutil.rmtree(place.runs)
    return _without_fault[settings]
