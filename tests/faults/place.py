"""A folder for one trial, and the jobs that run in it. harness.py explains how rows use it."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import private

FAILED = re.compile(r"ddprun: failed: rank (?P<rank>\d+) \((?P<host>[^,]+), pid (?P<pid>\d+)\)"
                    r"( step (?P<step>\d+))?( phase (?P<phase>\w+))?( bucket (?P<bucket>\d+))?: (?P<cause>.*)")

# The temporary file of a part of a checkpoint, and its writer.
UNFINISHED = re.compile(r"(step-\d{8,}(\.state-rank\d+)?|best)\.safetensors\.tmp-(?P<pid>\d+)-[0-9a-f]+")

TRAINING = """
[strategy]
kind = "ddp"
[launch]
nproc = 3
threads = 1
[model]
name = "simplenet"
options = { hidden = 32 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 480, test_samples = 24 }
[train]
steps = 1000000
evaluate = false
[checkpoint]
every_epochs = 0
every_steps = 10
[log]
every = 1
"""


class Deadline(Exception):
    """Something did not happen in time."""


def wait_until(condition, seconds, what):
    """The first true value of condition(). Raises Deadline after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Deadline(f"{what}: not within {seconds:g} s")
        time.sleep(0.002)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def rank_of(pid, variable="DDPRUN_RANK"):
    """From the name of a process that the launcher has forked, or from a variable that a process was started with; None
    if it is no rank."""
    process, forked = pathlib.Path(f"/proc/{pid}"), "ddprun-rank"
    try:
        name = (process / "comm").read_text().strip()
        data = (process / "environ").read_bytes().decode(errors="replace")
    except OSError:
        return None
    if name.startswith(forked):
        return name[len(forked):]
    return dict(entry.partition("=")[::2] for entry in data.split("\0") if entry).get(variable)


class Job:
    """A running command in a process group of its own. Its lines are read, with their times, while it runs."""

    def __init__(self, place, argv, environment, **options):
        self.place = place
        self.lines = []  # (time.monotonic(), text) of stdout and stderr
        self.started = time.monotonic()
        self.process = subprocess.Popen(argv, env=environment, cwd=place.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                        **options)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.process.stdout as output:
            for line in output:
                self.lines.append((time.monotonic(), line.decode(errors="replace").rstrip("\n")))

    @property
    def pid(self):
        return self.process.pid

    def text(self):
        return "\n".join(text for _, text in self.lines)

    def line(self, pattern, seconds=60):
        """(time, match) of the first line in which `pattern` is found; waits for it."""
        def found():
            for when, text in list(self.lines):
                match = re.search(pattern, text)
                if match:
                    return when, match
            if not self._reader.is_alive() and self.process.poll() is not None:
                raise Deadline(f"the job ended without a line '{pattern}'; it printed:\n{self.text()}")
            return None
        return wait_until(found, seconds, f"a line '{pattern}'")

    def wait_for_step(self, step=3, seconds=60):
        """Waits until rank 0 has reported this step (log.every = 1 in the first epoch)."""
        return self.line(rf"epoch 1 \[{step}/", seconds)[0]

    def ranks(self, world, variable="DDPRUN_RANK", seconds=30):
        """{rank: pid}: the launcher's children that are ranks."""
        def found():
            ranks = {}
            for pid in self.place.processes():
                value = rank_of(pid, variable)
                if value is not None and pid != self.pid and is_rank(pid):
                    ranks[int(value)] = pid
            return ranks if len(ranks) == world else None
        def is_rank(pid):
            with contextlib.suppress(OSError, ValueError):
                return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == self.pid
            return False
        return wait_until(found, seconds, f"{world} ranks")

    def send(self, number):
        """Sends the launcher a signal; returns the time."""
        now = time.monotonic()
        self.process.send_signal(number)
        return now

    def wait(self, seconds=60):
        """The exit code. Raises Deadline, with what the job printed, if it does not end."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Deadline(f"the job did not end within {seconds:g} s; it printed:\n{self.text()}") from None
        self.ended = time.monotonic()
        self._reader.join(5)
        return code

    def last_line(self):
        lines = [text for _, text in self.lines if text.strip()]
        return lines[-1] if lines else ""


class Place:
    """A folder with a private TMPDIR, where jobs run. `with Place(program) as place:` ends what is left over."""

    def __init__(self, program):
        self.program = str(program)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ddprun-faults-"))
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir(mode=0o700)
        self.runs = self.folder / "runs"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        private.clear()

    def config(self, text=TRAINING, name="exp"):
        path, aside = self.folder / f"{name}.toml", self.folder / f"{name}.aside"
        aside.write_text(text)
        aside.replace(path)  # a rank that has been started may be reading it
        return str(path)

    def environment(self, **more):
        """This process's, without the variables of a launcher, and with the private folders."""
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        environment = {name: value for name, value in os.environ.items()
                       if name not in names and not name.startswith(("DDPRUN_", "SLURM_", "OMPI_", "PMI"))}
        environment.update(TMPDIR=str(self.tmp), XDG_RUNTIME_DIR=str(self.tmp),
                           XDG_DATA_HOME=str(self.folder / "data"), **more)
        return environment

    def argv(self, *settings, config=None):
        """`ddprun --config CONFIG --set ...`; a setting is "key=value"."""
        argv = [self.program, "--config", config or self.config(), "--set", f"experiment.output={self.runs}"]
        for setting in settings:
            argv += ["--set", setting]
        return argv

    def train(self, *settings, config=None, prefix=(), environment=None, **options):
        """Starts a training: Job. `prefix` is put before the command; `options` go to Popen."""
        argv = list(prefix) + self.argv(*settings, config=config)
        return Job(self, argv, self.environment(**(environment or {})), **options)

    def start(self, argv, environment=None, **options):
        """Starts any command as a Job."""
        return Job(self, [str(part) for part in argv], self.environment(**(environment or {})), **options)

    def processes(self):
        """The pids of all living processes that were started in this place, also those that lost their parent."""
        own = f"TMPDIR={self.tmp}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    if own in pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0") and is_alive(entry):
                        found.append(int(entry))
        return found

    def all_gone(self, seconds=10):
        """The time at which the last process of this place was gone. Raises Deadline."""
        wait_until(lambda: not self.processes(), seconds, "all processes are gone")
        return time.monotonic()

    def left(self, killed=()):
        """What is left of ended jobs, as texts: processes (and so ports), shared memory, temporary files. killed: the
        pids of processes that were killed at any time. Each may have been writing one file of a checkpoint, which
        stays until a run resumes from that folder."""
        left = [f"process {pid}" for pid in self.processes()] + private.left()
        writers = set()  # with their hosts
        for path in self.unfinished():
            found = UNFINISHED.fullmatch(path.name)
            writer = path.name.partition(".tmp-")[2]
            if found and int(found["pid"]) in killed and writer not in writers:
                writers.add(writer)
            else:
                left.append(str(path.relative_to(self.folder)))
        return left + [str(path.relative_to(self.folder)) for path in sorted(self.tmp.iterdir())]

    def unfinished(self):
        """The temporary files in the run folders."""
        return [path for runs in sorted(self.folder.glob("runs*")) for path in sorted(runs.rglob("*.tmp-*"))]

    def new_runs(self):
        """The run folders, oldest first."""
        return sorted(self.runs.iterdir(), key=lambda path: path.stat().st_mtime) if self.runs.exists() else []

    def commits(self):
        """The files of weights of all checkpoints, by step."""
        return sorted(self.runs.glob("*/checkpoints/step-????????.safetensors"), key=lambda path: path.name)

    def loads(self, what="latest", *settings, config=None):
        """Whether a run resumes from the newest checkpoint and does one more step: (ok, what it printed)."""
        steps = [int(re.search(r"step-(\d+)", path.name)[1]) for path in self.commits()]
        more = max(steps, default=0) + 2
        job = self.train(f"checkpoint.resume={what}", f"train.steps={more}", *settings, config=config)
        return job.wait(60) == 0 and "resuming from" in job.text(), job.text()
