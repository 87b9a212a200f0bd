"""Disks that fail in one call, and a wrong bit in a tensor."""

import pathlib
import re
import struct

from harness import Outcome, Row, Skip, ended, now
from training import ANY_PID, KILLED, backend_of, check_resuming, tensors_of, tensors_without_fault


def build_of(place):
    """The build folder of the program."""
    return pathlib.Path(place.program).resolve().parent.parent


def built(path):
    if not path.exists():
        raise Skip(f"{path} is not built")
    return path


ERRORS = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}
DOES = {"write": r"write \d+ bytes to", "fsync": "sync", "rename": "rename"}


def faulty_disk(place, call, fault, after, times=1 << 40):
    library = built(build_of(place) / "lib/libfaulty_disk.so")
    return {"LD_PRELOAD": str(library), "DDPRUN_DISK_CALL": call, "DDPRUN_DISK_FAULT": fault,
            "DDPRUN_DISK_AFTER": str(after), "DDPRUN_DISK_TIMES": str(times)}


def in_some_call(place, fault, rng):
    """(a call, environment): on all ranks, after some checkpoints were written."""
    call = rng.choice(list(DOES))
    return call, faulty_disk(place, call, fault, rng.randint(60, 90) if call == "write" else rng.randint(6, 16))


def disk_error(place, backend, rng):
    error = rng.choice(list(ERRORS))
    call, environment = in_some_call(place, error, rng)
    job = place.train(f"comm.backend={backend}", "checkpoint.every_steps=2", environment=environment)
    job.wait_for_step(2)
    outcome = ended(place, job, now(), rank=range(3), code=1,
                    cause=rf"cannot {DOES[call]} /.*/checkpoints/step-\d+.*: {ERRORS[error]}")
    outcome.end = None
    check_resuming(place, backend, outcome)
    return outcome


def disk_error_warned(place, backend, rng):
    """The same for a moment, with checkpoint.on_error = "warn"."""
    call = rng.choice(["fsync", "rename"])
    job = place.train(f"comm.backend={backend}", "checkpoint.every_steps=2", "checkpoint.on_error=warn",
                      "train.steps=40", environment=faulty_disk(place, call, "EIO", rng.randint(6, 16), 1))
    code = job.wait()
    warned = re.search(rf"warning: cannot {DOES[call]} /.*/checkpoints/step-\d+.*: Input/output error; the run "
                       "continues without this checkpoint", job.text())
    outcome = Outcome(code=code == 0, cause=bool(warned), left=place.left(), note="" if warned else job.text()[-800:])
    check_resuming(place, backend, outcome)
    return outcome


def kill_in_call(place, backend, rng):
    _, environment = in_some_call(place, "SIGKILL", rng)
    job = place.train(f"comm.backend={backend}", "checkpoint.every_steps=2", environment=environment)
    job.wait_for_step(2)
    outcome = ended(place, job, now(), rank=range(3), cause=KILLED, killed=ANY_PID)
    outcome.end = None
    check_resuming(place, backend, outcome)
    return outcome


def short_writes(place, backend, rng):
    """From some write on, each writes only half of its bytes."""
    settings = backend_of(backend), "train.steps=20", "checkpoint.every_steps=2"
    whole = tensors_without_fault(place, *settings)
    job = place.train(*settings, environment=faulty_disk(place, "write", "short", rng.randint(0, 90)))
    code = job.wait()
    outcome = Outcome(code=code == 0, left=place.left(), note="" if code == 0 else job.text()[-800:])
    try:
        outcome.commit = tensors_of(place.commits()[-1]) == whole
    except ValueError:  # a damaged header
        outcome.commit = False
    check_resuming(place, backend, outcome)
    return outcome


def trained(place, backend):
    """A run of 8 steps with checkpoints after steps 4 and 8: its checkpoint folder."""
    job = place.train(f"comm.backend={backend}", "train.steps=8", "checkpoint.every_steps=4")
    assert job.wait() == 0, job.text()
    return place.new_runs()[-1] / "checkpoints"


def flipped_tensor(place, backend, rng):
    """A bit in the data of a known tensor."""
    path = trained(place, backend) / "step-00000008.safetensors"
    data = bytearray(path.read_bytes())
    header = struct.unpack("<Q", data[:8])[0]
    name = "fc1.weight"
    found = re.search(rb'"fc1\.weight":\{[^}]*"data_offsets":\[(\d+),(\d+)\]', data[8:8 + header])
    begin, end = map(int, found.groups())
    data[8 + header + rng.randrange(begin, end)] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    fault = now()
    job = place.train(f"comm.backend={backend}", "train.steps=10", f"checkpoint.resume={path}")
    return ended(place, job, fault, code=2, cause=rf"{re.escape(str(path))}: .*{re.escape(name)}")


ROWS = [
    Row("EIO or ENOSPC in write, fsync or rename", "path, bytes and error; exit 1; the old checkpoint loads", None,
        disk_error, quick=1, full=20),
    Row('EIO, with checkpoint.on_error = "warn"', "a warning; the run goes on without this checkpoint; exit 0", None,
        disk_error_warned, quick=1, full=10),
    Row("SIGKILL in write, fsync or rename", "signal and rank named; exit 5; the old checkpoint loads", None,
        kill_in_call, quick=1, full=20),
    Row("short writes", "the same weights; exit 0", None, short_writes, quick=1, full=10),
    Row("a wrong bit in a tensor of a checkpoint", "file and tensor named; exit 2", None, flipped_tensor, quick=1,
        full={"shm": 10, "other": 5}),
]
