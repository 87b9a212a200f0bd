"""Disks that fail in one call, and a wrong bit in a tensor."""

import errno
import pathlib
import re
import struct

from harness import Outcome, Row, Skip, ended, now
from training import check_resuming


def build_of(place):
    """The build folder of the program."""
    return pathlib.Path(place.program).resolve().parent.parent


def built(path):
    if not path.exists():
        raise Skip(f"{path} is not built")
    return path


ERRORS = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}
DOES = {"write": r"write \d+ bytes to", "fsync": "sync", "rename": "rename"}


def faulty_disk(place, call, error, after, times=1 << 40):
    library = built(build_of(place) / "lib/libfaulty_disk.so")
    return {"LD_PRELOAD": str(library), "DDPRUN_DISK_CALL": call, "DDPRUN_DISK_ERRNO": str(getattr(errno, error)),
            "DDPRUN_DISK_AFTER": str(after), "DDPRUN_DISK_TIMES": str(times)}


def disk_error(place, backend, rng):
    """A call fails on all ranks, after some checkpoints were written."""
    call, error = rng.choice(list(DOES)), rng.choice(list(ERRORS))
    environment = faulty_disk(place, call, error, rng.randint(60, 90) if call == "write" else rng.randint(6, 16))
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
    Row("a wrong bit in a tensor of a checkpoint", "file and tensor named; exit 2", None, flipped_tensor, quick=1,
        full={"shm": 10, "other": 5}),
]
