"""What rows of a training in three ranks have in common."""

import json
import shutil
import time

KILLED = r"killed by signal 9 \(SIGKILL\)"
WORLD = 3
ANY_PID = range(1 << 22)  # for Place.left(): where the pids of killed processes are not known here


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
    time.sleep(rng.uniform(0, 0.3))
    return job, ranks


def check_resuming(place, backend, outcome, *settings):
    """If the job has a checkpoint, a run must resume from it, and remove what killed processes were writing."""
    if not place.commits():
        return
    loaded, text = place.loads("latest", backend_of(backend), *settings)
    outcome.commit = outcome.commit and loaded
    outcome.left += [f"{path.name} after the next run" for path in place.unfinished()]
    if outcome.problems():
        outcome.note += text[-1500:]


def tensors_of(path):
    """The header without its metadata, and the bytes of all tensors."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length:]


def values_of(path):
    """{name: bytes} of the tensors, wherever they are in the file."""
    header, data = tensors_of(path)
    return {name: data[slice(*tensor["data_offsets"])] for name, tensor in header.items()}


_without_fault = {}  # by settings


def tensors_without_fault(place, *settings):
    """The tensors of the last checkpoint of a whole run. It is trained once, and its folder is removed."""
    if settings not in _without_fault:
        assert place.train(*settings).wait() == 0
        _without_fault[settings] = tensors_of(place.commits()[-1])
        shutil.rmtree(place.runs)
    return _without_fault[settings]
