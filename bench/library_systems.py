"""The systems that library.py compares, and how each measures one run."""

import dataclasses
import json
import os
import pathlib
import shutil
import statistics

from contenders import COMPILER, Absent, compile_peer
from namespaces import folder_of
from running import Failed, run, run_together
from systems import pytorch_ddp, train

ROOT = pathlib.Path(__file__).resolve().parents[1]
WARM_RATIO = 0.2  # warm-up steps, relative to the measured ones
MPI_COMPILER, MPI_LAUNCHER = "mpicxx.openmpi", "mpirun.openmpi"


@dataclasses.dataclass
class Settings:
    """The settings of all systems."""
    program: pathlib.Path  # ddprun
    python: str
    batch: int  # samples per rank and step
    steps: int
    limit: float  # seconds for one run
    folder: pathlib.Path  # for programs and files

    def warm(self):
        return max(1, round(self.steps * WARM_RATIO))

    def environment(self):
        return os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(self.folder)}


def torch_folder(python):
    """Where PyTorch's headers and libraries are."""
    try:
        return pathlib.Path(run([python, "-c", "import torch; print(torch.__path__[0])"], 60).strip())
    except Failed as error:
        raise Absent(f"needs --python with torch: {error}") from None


def build(settings, with_mpi):
    """Compiles peers/library.cpp. Raises Absent."""
    if with_mpi and shutil.which(MPI_LAUNCHER) is None:
        raise Absent(f"no {MPI_LAUNCHER} here")
    torch = torch_folder(settings.python)
    own = settings.program.resolve().parents[1] / "lib"
    words = [f"-I{ROOT / 'core' / 'include'}", "-isystem", torch / "include", "-isystem",
             torch / "include" / "torch" / "csrc" / "api" / "include"]
    for folder in (own, torch / "lib"):
        words += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    words += ["-lddprun", "-ltorch", "-ltorch_cpu", "-lc10"]
    compiler = [MPI_COMPILER, "-DPEERS_MPI"] if with_mpi else COMPILER
    return compile_peer(settings, "library.cpp", "library", compiler, words)


class Cpp:
    """peers/library.cpp. `how` averages the gradients; `backend` is ddprun's."""

    def __init__(self, settings, program, how, ranks, backend=""):
        self.settings, self.program, self.how, self.ranks, self.backend = settings, program, how, ranks, backend

    def launcher(self):
        if self.ranks == 1:
            return []
        if self.how == "mpi":
            return [MPI_LAUNCHER, *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-n", self.ranks]
        return [self.settings.program, "launch", "--nproc-per-node", self.ranks]

    def measure(self, job):
        """{"step": median seconds of a step, "checksum": of the weights}."""
        settings = self.settings
        meeting = settings.folder / "meeting"
        meeting.unlink(missing_ok=True)
        words = [*self.launcher(), self.program, self.how, job, settings.batch, settings.warm() + settings.steps,
                 settings.warm(), meeting]
        more = {"DDPRUN_BACKEND": self.backend} if self.backend else {}
        return json.loads(run(words, settings.limit, env=settings.environment() | more).strip().splitlines()[-1])


class PyTorch:
    """peers/pytorch_ddp.py, with data in memory."""
    ranks = 2

    def __init__(self, settings):
        self.settings = settings

    def measure(self, job):
        settings = self.settings
        return pytorch_ddp(settings.python, self.ranks, settings.limit, 1, job=job, data="memory", batch=settings.batch,
                           steps=settings.warm() + settings.steps, warm=settings.warm())


CONFIG = """
[launch]
nproc = {nproc}
threads = 1
[comm]
backend = "{backend}"
[strategy]
kind = "ddp"
{strategy}
[model]
name = "resnet18"
options = {{ stem = "{stem}" }}
[data]
name = "synthetic"
batch_size = {batch}
batch_per = "rank"
options = {{ shape = "3x32x32", classes = 10, samples = {samples} }}
[optimizer]
{optimizer}
[train]
steps = {steps}
evaluate = false
"""


def config_of(batch, steps, **more):
    """For two ranks. One epoch covers all steps."""
    return CONFIG.format(batch=batch, steps=steps, samples=batch * 2 * steps, **more)


class Memory:
    """The command with Adam, with and without ZeRO."""

    def __init__(self, settings, stage):
        self.settings, self.stage = settings, stage

    def measure(self, _):
        """{"peak": bytes of the rank that needs most}."""
        settings = self.settings
        config = config_of(nproc=2, backend="shm", strategy=f"zero = {self.stage}", stem="imagenet", batch=8,
                           steps=settings.steps, optimizer='name = "adam"\nlr = 0.001')
        return {"peak": train(settings.program, config, settings.folder, settings.limit)[0]["peak_memory_bytes"]}


class OverLink:
    """The command on two simulated hosts, one rank each."""
    ranks = 2

    def __init__(self, settings, hosts, backend, compression):
        self.settings, self.hosts, self.backend, self.compression = settings, hosts, backend, compression

    def measure(self, job):
        """`job`: [model] stem and samples per rank."""
        settings = self.settings
        steps = settings.warm() + settings.steps
        stem, batch = job.split()
        config = settings.folder / "link.toml"
        config.write_text(config_of(nproc=1, backend=self.backend, strategy=f'compression = "{self.compression}"',
                                    stem=stem, batch=int(batch), steps=steps,
                                    optimizer='name = "sgd"\nlr = 0.01\nmomentum = 0.9'))
        command = [settings.program, "--nnodes", self.ranks, "--master-addr", self.hosts.address(0), "--config", config,
                   "--set", "launch.insecure=true", "--set", f"experiment.output={settings.folder / 'runs'}"]
        commands = [self.hosts.command(host, [*command, "--node-rank", host],
                                       {"XDG_RUNTIME_DIR": folder_of(settings.folder, host)})
                    for host in range(self.ranks)]
        out = run_together(commands, settings.limit)[0]
        results = pathlib.Path(out.strip().splitlines()[-1].removeprefix("run folder: "))
        rows = [json.loads(line) for line in (results / "steps-rank0.jsonl").read_text().splitlines()]
        return {"step": statistics.median(row["total"] for row in rows[settings.warm():])}
