"""The systems that library.py compares, and how each measures one run."""

import dataclasses
import json
import os
import pathlib
import shutil

from contenders import COMPILER, OPEN_MPI, Absent, compile_peer
from running import Failed, run
from systems import pytorch_ddp, train

ROOT = pathlib.Path(__file__).resolve().parents[1]
WARM_RATIO = 0.2  # warm-up steps, relative to the measured ones
(MPI_COMPILER,), (MPI_LAUNCHER,) = OPEN_MPI


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
nproc = 2
threads = 1
[comm]
backend = "shm"
[strategy]
kind = "ddp"
zero = {stage}
[model]
name = "resnet18"
[data]
name = "synthetic"
batch_size = 8
batch_per = "rank"
options = {{ shape = "3x32x32", classes = 10, samples = {samples} }}
[optimizer]
name = "adam"
lr = 0.001
[train]
steps = {steps}
evaluate = false
"""


class Memory:
    """The command with Adam, with and without ZeRO. One epoch covers all steps."""

    def __init__(self, settings, stage):
        self.settings, self.stage = settings, stage

    def measure(self, _):
        """{"peak": bytes of the rank that needs most}."""
        settings = self.settings
        config = CONFIG.format(stage=self.stage, steps=settings.steps, samples=8 * 2 * settings.steps)
        return {"peak": train(settings.program, config, settings.folder, settings.limit)[0]["peak_memory_bytes"]}
