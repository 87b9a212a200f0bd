"""Ranks that do not do the same: collectives, configs and plugins."""

import os
import re
import shutil
import socket
import subprocess

from harness import TRAINING, Outcome, Row, ended
from rows.disks import build_of
from training import WORLD, backend_of, fault_in, last_step_before


def mismatch(kind, calls):
    def trial(place, backend, rng):
        job = place.train(backend_of(backend), "strategy.bucket_cap_mb=0.001",
                          "checkpoint.every_steps=1", *fault_in(kind))
        job.wait_for_step(5)
        outcome = ended(place, job, last_step_before(job, 6), rank=range(WORLD), cause="mismatch: .*" + calls)
        outcome.commit = "step-00000005" in place.commits()[-1].name
        return outcome
    return trial


def unequal(what):
    """Two ranks under env://, as another launcher would start them. Rank 1 gets something else: what() changes its
    settings or the program of the place, and returns what the last lines must show."""
    def trial(place, backend, rng):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        jobs = []
        for rank in (0, 1):
            settings = ["comm.backend=" + backend, "launch.nproc=2", "data.batch_size=24"]
            expected = what(settings, backend, place) if rank == 1 else None
            jobs.append(place.train(*settings, config=place.config(TRAINING.replace("nproc = 3", "nproc = 2")),
                                    environment={"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                                 "MASTER_PORT": str(port), "DDPRUN_SECRET": "ab" * 32}))
        codes = [job.wait() for job in jobs]
        gone = place.all_gone()
        met = max(job.started for job in jobs)
        texts = [job.last_line() for job in jobs]
        outcome = Outcome(end=gone - met, code=codes == [4, 4], cause=all(re.search(expected, t) for t in texts),
                          left=place.left(), commit=not place.commits())
        if outcome.problems():
            outcome.note = f"exit {codes}, last lines: {texts}"
        return outcome
    return trial


def other_key(settings, backend, place):
    settings.append("optimizer.lr=0.02")
    return r'\[optimizer\] "lr = 0\.01" and "lr = 0\.02"'


def other_program(settings, backend, place):
    """Rank 1 has a ddprun of another version."""
    built, copy = build_of(place), place.folder / "other"
    said = subprocess.run([place.program, "--version"], check=True, capture_output=True, text=True).stdout
    version = said.split()[1]
    other = version[:-1] + ("8" if version[-1] == "9" else "9")
    for part in ("bin/ddprun", "libexec/ddprun-engine", "lib/libddprun.so.1"):
        (copy / part).parent.mkdir(parents=True)
        changed = (built / part).read_bytes().replace(f"{version}\0".encode(), f"{other}\0".encode())
        (copy / part).write_bytes(changed)
        shutil.copymode(built / part, copy / part)
    os.symlink(built / "lib/ddprun", copy / "lib/ddprun")
    place.program = str(copy / "bin/ddprun")
    return re.escape(f'"ddprun = {version}" and "ddprun = {other}"')


def other_plugin(settings, backend, place):
    other = "shm" if backend != "shm" else "gloo"
    settings[0] = backend_of(other)
    return f'"comm plugin = {backend} .*" and "comm plugin = {other} '


TWO = "both fingerprints printed; exit 5; the optimizer does not run"
CALLED = "ranks? .* called .*, rank 1 called "

ROWS = [  # quick=0: a test in tests/e2e does the same
    Row("collectives that do not match: shape", TWO, 1, mismatch("shape", CALLED + "allreduce"), quick=0),
    Row("collectives that do not match: dtype", TWO, 1, mismatch("dtype", CALLED + r"allreduce \d+ \(int32"), quick=1),
    Row("collectives that do not match: operation", TWO, 1, mismatch("op", CALLED + r"allreduce .*max, bucket 0\)"),
        quick=0),
    Row("collectives that do not match: order", TWO, 1,
        mismatch("order", r"called (.*), bucket 0\), rank 1 called \1, bucket 1\)"), quick=1),
    Row("collectives that do not match: one skipped", TWO, 1, mismatch("drop", CALLED), quick=0),
    Row("another configuration on one rank", "the key named before step 1; exit 4", 1.5, unequal(other_key), quick=1,
        full=10),
    Row("another program on one rank", "the versions named before step 1; exit 4", 1.5, unequal(other_program), quick=1,
        full=10),
    Row("another plugin on one rank", "the key named before step 1; exit 4", 1.5, unequal(other_plugin), quick=1,
        full=10),
]
