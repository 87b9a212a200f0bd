"""Faults of files: configs, data sets, checkpoints, and disks that are full."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import time

from harness import ANY, TRAINING, Outcome, Row, Skip, ended, now
from training import backend_of, check_resuming, tensors_of

SHORT = ("train.steps=30", "log.every=20")


def starts_not(place, code, line, *settings, config=None):
    """The job ends with one line, which matches, before there is a rank: then it would make a run folder."""
    job = place.train("comm.backend=shm", *settings, config=config)
    outcome = ended(place, job, job.started, cause=line, code=code)
    outcome.cause = outcome.cause and not place.new_runs()
    return outcome


def bad_toml(place, backend, rng):
    """A character that ends the value too early, on a random line."""
    lines = TRAINING.splitlines()
    number = rng.choice([index for index, text in enumerate(lines) if '"' in text and "{" not in text])
    lines[number] = lines[number].replace('"', "", 1)
    config = place.config("\n".join(lines))
    return starts_not(place, 2, rf"^{re.escape(config)}:{number + 1}:\d+: ", config=config)


def unknown_key(place, backend, rng):
    config = place.config(TRAINING + "evry = 2\n")
    line = len(TRAINING.splitlines()) + 1
    return starts_not(place, 2, rf'^{re.escape(config)}:{line}:1: .*evry.*did you mean .*every', config=config)


def bad_data(place, backend, rng):
    """An IDX file of MNIST that ends too early."""
    root = place.folder / "mnist"
    root.mkdir()
    for split, count in (("train", 100), ("t10k", 20)):
        (root / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + bytes(784 * count))
        (root / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + bytes(count))
    images = root / "train-images-idx3-ubyte"
    size = rng.randrange(16, images.stat().st_size)
    os.truncate(images, size)
    head, data = TRAINING.split('name = "synthetic"')
    text = head + f'name = "mnist"\nroot = "{root}"' + re.sub(r"\noptions = .*", "", data, count=1)
    return starts_not(place, 2, rf"{re.escape(str(images))}: offset 16: 78400 bytes .* after {size - 16}$",
                      config=place.config(text))


_trained = {}  # by backend: a finished run of 30 steps with two checkpoints


def put_trained(place, backend):
    """Copies such a run into the place. It is made once."""
    if backend not in _trained:
        assert place.train(backend_of(backend), *SHORT).wait() == 0
        _trained[backend] = tempfile.TemporaryDirectory(prefix="ddprun-faults-trained-")
        shutil.copytree(place.runs, pathlib.Path(_trained[backend].name) / "runs")
    else:
        shutil.copytree(pathlib.Path(_trained[backend].name) / "runs", place.runs)


def damage(path, rng):
    """Cuts the file at a random byte, or changes one bit of it."""
    data = bytearray(path.read_bytes())
    place = rng.randrange(len(data))
    if rng.random() < 0.5:
        data = data[:place]
    else:
        data[place] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def files_of(commit):
    """The weights of a checkpoint, and the state of each rank."""
    return [commit] + sorted(commit.parent.glob(commit.name.replace(".safetensors", ".state-*")))


def damaged(place, backend, rng):
    """One file of the newest checkpoint is damaged: the run resumes from the checkpoint before it."""
    put_trained(place, backend)
    before, newest = place.commits()
    victim = rng.choice(files_of(newest))
    damage(victim, rng)
    start = now()
    job = place.train(backend_of(backend), "checkpoint.resume=latest", "train.steps=32")
    code = job.wait()
    outcome = Outcome(end=place.all_gone() - start, code=code == 0, left=place.left())
    outcome.cause = re.search(rf"warning: .*{re.escape(victim.name)}", job.text()) is not None
    outcome.commit = re.search(rf"resuming from .*{re.escape(before.name)}: step 20", job.text()) is not None
    if outcome.problems():
        outcome.note = f"exit {code}; {victim.name}; {job.text()[-1500:]}"
    return outcome


def all_damaged(place, backend, rng):
    put_trained(place, backend)
    for commit in place.commits():
        damage(rng.choice(files_of(commit)), rng)
    job = place.train(backend_of(backend), "checkpoint.resume=latest", "train.steps=32")
    return ended(place, job, job.started, cause=r"checkpoint\.resume = .*step-000000[23]0.*safetensors", code=2)


def file_limit(place, backend, rng):
    """From some step on, no file may become larger than 40 kB: the weights have 100 kB."""
    job = place.train(backend_of(backend), "log.every=1")
    job.wait_for_step(12)
    ranks = job.ranks(3)
    time.sleep(rng.uniform(0, 0.2))
    fault = now()
    for pid in ranks.values():
        with contextlib.suppress(ProcessLookupError):  # the first has ended the job already
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (40000, 40000))
    outcome = ended(place, job, fault, rank=range(3), code=1,
                    cause=r"cannot write \d+ bytes to .*: File too large")
    check_resuming(place, backend, outcome)
    return outcome


MOUNTED = """mount -t tmpfs -o size=1m none "$1" || exit 77
kept=$2; runs=$1; shift 2
"$@"; code=$?
cp -r "$runs/." "$kept"; exit $code"""


def disk_full(place, backend, rng):
    """The run folder is on a file system of 1 MiB, which only this job sees. It is copied when the job has ended."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        raise Skip("no file system can be mounted here")
    small = place.folder / "small"
    small.mkdir()
    place.runs.mkdir()
    job = place.train(backend_of(backend), f"experiment.output={small}", "log.every=20", "checkpoint.every_steps=1",
                      f"data.options.samples={24 * rng.randint(20, 60)}",
                      prefix=("unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(small), str(place.runs)))
    outcome = ended(place, job, job.started, rank=range(3), code=1, limit=120,
                    cause=r"cannot write \d+ bytes to .*: No space left on device")
    outcome.end = None  # it takes a while until the disk is full
    shutil.rmtree(small)
    newest = int(re.search(r"step-(\d+)", place.commits()[-1].name)[1])
    text = resumed(place, backend, job, newest)
    outcome.commit = f"step {newest}," in text or f"step {newest};" in text
    return outcome


def resumed(place, backend, first, newest):
    samples = re.search(r"data\.options\.samples=(\d+)", " ".join(first.process.args))[1]
    job = place.train(backend_of(backend), "checkpoint.resume=latest", f"train.steps={newest + 2}",
                      f"data.options.samples={samples}")
    return job.text() if job.wait() == 0 else ""


def resume_from_each_step(place, backend, rng):
    """No fault: weights, and the state of each rank (optimizer, random numbers, sampler), at the end of 50 steps."""
    settings = [f"comm.backend={backend}", "train.steps=50", "checkpoint.keep=100"]

    def trained(*more):
        """All checkpoints of one more run."""
        job = place.train(*settings, *more)
        assert job.wait() == 0, job.text()
        return sorted((place.new_runs()[-1] / "checkpoints").glob("step-????????.safetensors"))

    def contents(commit):
        return [tensors_of(path) for path in files_of(commit)]

    commits = trained("checkpoint.every_steps=1")
    whole = contents(commits[-1])
    other = [commit.name for commit in commits[:-1] if contents(trained(f"checkpoint.resume={commit}")[-1]) != whole]
    return Outcome(commit=len(commits) == 50 and not other, left=place.left(), note=f"other results after {other}")


BEFORE = "; no rank is started"

ROWS = [
    Row("bad TOML", "line and column; exit 2" + BEFORE, 1, bad_toml, backends=ANY),
    Row("a key that does not exist", "line and column, and the key that was meant; exit 2" + BEFORE, 1, unknown_key,
        backends=ANY, full=5),
    Row("bad data set", "file and offset; exit 2" + BEFORE, 1, bad_data, backends=ANY),
    Row("a checkpoint is truncated or has a wrong bit", "file named; the checkpoint before it is used; exit 0", None,
        damaged, full={"shm": 40, "other": 10}),
    Row("all checkpoints are damaged", "a file named; exit 2", None, all_damaged,
        full={"shm": 20, "other": 5}),
    Row("resume from each step of 50", "the same bits at the end", None, resume_from_each_step, quick=0, full=1),
    Row("disk full", "path, bytes and errno; exit 1; the old checkpoint loads", None, disk_full,
        full={"shm": 10, "other": 5}),
    Row("limit of the file size", "path, bytes and errno; exit 1; the old checkpoint loads", None, file_limit,
        full={"shm": 10, "other": 5}),
]
