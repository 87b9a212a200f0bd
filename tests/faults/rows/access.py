"""What others can reach while a job runs: ports, the job's folder, its shared memory, and the files of a run."""

import contextlib
import os
import pathlib
import stat
import subprocess
import time

import private
from cluster import HOSTS, SECRET, Cluster
from harness import Outcome, Row, Skip, wait_until
from training import backend_of


# A network that only the job has, with an interface besides the loopback device.
OWN_NETWORK = """set -e
ip link set lo up
ip link add eth0 type veth peer name far0
ip address add 10.83.1.1/24 dev eth0
ip link set far0 up
ip link set eth0 up
exec "$@\""""
LOOPBACK = "0100007F"  # 127.0.0.1, as the kernel prints it


def listening(pid):
    """The addresses at which a TCP port listens in the network of the process."""
    found = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                address, _, state = line.split()[1:4]
                found |= {address.partition(":")[0]} if state == "0A" else set()  # TCP_LISTEN
    return found


@contextlib.contextmanager
def first_on_a_core():
    """This thread need not wait for others, if it may have a real-time priority."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def ports(place, backend, rng):
    """Looks all the time, from the start until some steps are done. Gloo listens only while the ranks connect."""
    prefix = ("unshare", "--net", "sh", "-c", OWN_NETWORK, "sh")
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        raise Skip("no network can be made here")
    job = place.train(backend_of(backend), "train.steps=200", prefix=prefix)
    wait_until(lambda: os.readlink(f"/proc/{job.pid}/ns/net") != os.readlink("/proc/self/ns/net"), 10, "the network")
    seen = set()
    with first_on_a_core():
        while job.process.poll() is None and not any("epoch 1 [10/" in text for _, text in list(job.lines)):
            seen |= listening(job.pid)
            time.sleep(0.0002)
    code = job.wait()
    right = seen == {LOOPBACK} if backend == "gloo" else not seen
    return Outcome(code=code == 0, cause=right, left=place.left(), note=f"exit {code}, listens at {sorted(seen)}")


def mode_of(path):
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder):
    """What others can reach, in a folder that is for its user only."""
    entries = [path for path in folder.rglob("*") if not path.is_symlink()]
    wrong = [path for path in entries if mode_of(path) & 0o077]
    return [f"{oct(mode_of(path))} {path}" for path in wrong + ([folder] if mode_of(folder) != 0o700 else [])]


def files(place, backend, rng):
    """The job's folder and its shared memory while a job runs on one host, and what it has written at its end. UCX
    makes its System V segments for the user and the group."""
    job = place.train(backend_of(backend), "train.steps=400", "checkpoint.best=train.loss",
                      preexec_fn=lambda: os.umask(0o022))
    job.wait_for_step(12)
    folders = list(place.tmp.glob("ddprun-job-*"))
    wrong = [text for folder in folders for text in open_to_others(folder)]
    memory = [f"{oct(mode)} segment {number}" for number, mode in private.segments() if mode & 0o007]
    memory += [f"{oct(mode_of(path))} {path}" for path in private.SHM.iterdir() if mode_of(path) & 0o077]
    wrong += [] if private.why_not else memory
    code = job.wait()
    written = [path for path in place.runs.rglob("*") if not path.is_symlink()]
    wrong += [f"{oct(mode_of(path))} {path}" for path in written if mode_of(path) & 0o022]
    return Outcome(code=code == 0, cause=not wrong and len(folders) == 1 and len(written) > 5, left=place.left(),
                   note=f"exit {code}; open to others: {wrong}; folders: {folders}, {len(written)} files")


def files_on_hosts(place, backend, rng):
    """The job's folder is for its user only, and the secret is in no file there and in no command line."""
    with Cluster(place) as cluster:
        cluster.train(backend_of(backend), "train.steps=500")
        cluster.jobs[0].wait_for_step(3)
        folders = [path for host in range(HOSTS) for path in cluster.folder(host, "job").iterdir()]
        wrong = [text for folder in folders for text in open_to_others(folder)]
        wrong += [path for folder in folders for path in folder.rglob("*")
                  if path.is_file() and SECRET.encode() in path.read_bytes()]
        for pid in place.processes():
            with open(f"/proc/{pid}/cmdline") as argv:
                wrong += [f"the arguments of {pid}"] if SECRET in argv.read() else []
        codes = [job.wait() for job in cluster.jobs]
        place.all_gone()
        return Outcome(code=codes == [0] * HOSTS, cause=not wrong and len(folders) == HOSTS, left=cluster.left(),
                       note=f"open to others: {wrong}; folders: {folders}")


ROWS = [
    Row("ports of a job on one host", "none listens; with gloo, only at 127.0.0.1", None, ports, quick=1, full=5),
    Row("files of a job on one host", "0700 and 0600, UCX's segments 0660; others may not write what a run writes",
        None, files, quick=1, full=5),
    Row("files of a job on three hosts", "0700 and 0600; no secret in a file or a command line", None, files_on_hosts,
        backends=("gloo", "ucx"), full=10),
]
