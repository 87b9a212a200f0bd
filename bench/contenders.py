"""The systems that allreduce.py and network.py compare, and how each measures one round."""

import dataclasses
import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import time

from running import Failed, Program, run, turns, wait_for

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
END = 5  # seconds for a peer to end after its last result
CORES = len(os.sched_getaffinity(0))
COMPILER = ["g++"]
FLAGS = ["-std=c++20", "-O3", "-march=native", "-Wall", "-Wextra", "-Werror",
         "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]  # without MPI's old C++ interface
OPEN_MPI = ["mpicxx.openmpi"], ["mpirun.openmpi"]  # compiler, launcher


@dataclasses.dataclass
class Settings:
    """The settings of all systems."""
    sizes: list
    samples: int
    warmup: int
    limit: float  # seconds for one system in one round
    tcp: bool
    folder: pathlib.Path  # for programs and files

    def numbers(self):
        return [self.samples, self.warmup, *self.sizes]

    def environment(self):
        """One compute thread per rank, and temporary files in `folder`."""
        return os.environ | {"TMPDIR": str(self.folder), "OMP_NUM_THREADS": "1"}


class Absent(Exception):
    """The reason why a peer is skipped."""


class NotBuilt(Absent):
    """The compiler fails although everything seems to be installed."""


class Ddprun:
    """One algorithm of one plugin, in place, through `ddprun bench`."""

    most_ranks = math.inf

    def __init__(self, settings, program, backend, algorithm, options):
        self.settings, self.backend, self.algorithm = settings, backend, algorithm
        self.command = [program, "bench", "--backend", backend, "--algorithm", algorithm, "--rounds", 1, *options,
                        "--sizes", ",".join(map(str, settings.sizes)), "-n", settings.samples, "-w", settings.warmup]
        self.name = backend if algorithm == "auto" else f"{backend} {algorithm}"
        self.environment = {}

    def measure(self, ranks):
        """(column, size, samples, batch, wrong) of each case."""
        path = self.settings.folder / "bench.json"
        run([*self.command, "--ranks", ranks, "--json", path], self.settings.limit, env=self.settings.environment())
        yield from self.cases(path)

    def cases(self, path):
        """Those in the file that `ddprun bench --json` has written."""
        document = json.loads(path.read_text())
        self.environment = document["environment"]
        rows = [row for row in document["rows"] if row["in_place"]]
        both = len({row["buffer"] for row in rows}) > 1
        for row in rows:
            [only] = row["rounds"]
            column = f"{self.name} {row['buffer']}" if both else self.name
            yield column, row["size"], only["samples"], only["batch"], row["wrong"]


class Peer:
    """A program of bench/peers. `command` returns the argv for a number of ranks."""

    def __init__(self, settings, name, command, most_ranks=math.inf):
        self.settings, self.name, self.command, self.most_ranks = settings, name, command, most_ranks
        self.library = ""
        self.hung = 0  # runs that had to be ended after their last result

    def measure(self, ranks):
        out = self.output([*self.command(ranks), *self.settings.numbers()])
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        if [line["size"] for line in lines] != self.settings.sizes:
            raise Failed(f"{self.name}: did not measure every size:\n{out}")
        for line in lines:
            self.library = line["library"]
            yield self.name, line["size"], line["samples"], line["batch"], line["wrong"]

    def output(self, words):
        """Its stdout. MPICH over UCX sometimes waits in MPI_Finalize for ever, and has no other way to end."""
        limit = self.settings.limit
        with Program(words, env=self.settings.environment()) as program:
            deadline = time.monotonic() + limit
            while wait_for([program], 1):
                if time.monotonic() > deadline:
                    raise program.failed(f"took more than {limit:g} s")
                if program.output()[0].count("]}\n") == len(self.settings.sizes) and wait_for([program], END):
                    self.hung += 1
                    break
            return program.output()[0]


def compile_peer(settings, source, name, compiler=COMPILER, libraries=()):
    """Returns the program. Raises Absent."""
    if shutil.which(compiler[0]) is None:
        raise Absent(f"no {compiler[0]} here")
    program = settings.folder / name
    words = [*compiler, *FLAGS, PEERS / source, "-o", program, *libraries]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        raise NotBuilt(f"bench/peers/{source} cannot be built: {first}")
    return program


def limits(settings):
    program = compile_peer(settings, "limits.cpp", "limits")
    return [Peer(settings, f"limit {form}", lambda ranks, form=form: [program, form, ranks])
            for form in ("shared", "staged")]


def raw_gloo(settings, place=lambda ranks: ranks):
    """`place`: what the program gets as its second argument."""
    program = compile_peer(settings, "raw_gloo.cpp", "raw_gloo", libraries=["-lgloo", "-pthread"])

    def peer(name, word, of_settings=settings, most_ranks=math.inf):
        return Peer(of_settings, name, lambda ranks: [program, word, place(ranks)], most_ranks)
    peers = [peer("raw gloo ring", "ring"), peer("raw gloo bcube", "bcube"), peer("raw gloo hd", "halving_doubling")]
    # It reads nothing while it writes: both ranks wait for ever if a send buffer cannot hold the first message, half of
    # the vector. And it never yields, so it is slow with more ranks than cores.
    largest = int(pathlib.Path("/proc/sys/net/core/wmem_max").read_text())
    if sizes := [size for size in settings.sizes if size // 2 <= largest]:
        few = dataclasses.replace(settings, sizes=sizes)
        peers.append(peer("raw gloo hd poll", "halving_doubling_poll", few, CORES))
    return peers


def torch_gloo(settings, python):
    if not python:
        raise Absent("needs --python with torch")
    if shutil.which(python) is None:
        raise Absent(f"no {python} here")
    if subprocess.run([python, "-c", "import torch.distributed"], capture_output=True, check=False).returncode != 0:
        raise Absent(f"{python} has no torch")
    return [torch_allreduce(settings, python, "torch gloo", "gloo")]


def torch_allreduce(settings, python, name, backend):
    return Peer(settings, name, lambda ranks: [python, PEERS / "torch_allreduce.py", backend, ranks])


def build_mpi(settings, name, compiler, launcher):
    """The program for this MPI, and whether it is Open MPI. `compiler` and `launcher` are lists of words."""
    if shutil.which(launcher[0]) is None:
        raise Absent(f"no {launcher[0]} here")
    version = subprocess.run([*launcher, "--version"], capture_output=True, text=True, check=False).stdout
    return compile_peer(settings, "mpi.cpp", name, compiler), "Open MPI" in version or "OpenRTE" in version


def mpi(settings, name, compiler, launcher):
    """Any MPI, on this host."""
    program, is_open_mpi = build_mpi(settings, name, compiler, launcher)
    if settings.tcp and not is_open_mpi:
        raise Absent("--tcp is supported for Open MPI only")

    def command(ranks):
        words = [*launcher, "-n", ranks]
        if is_open_mpi:
            words += ["--allow-run-as-root"] if os.geteuid() == 0 else []
            words += ["--oversubscribe"] if ranks > CORES else []
        if settings.tcp:
            words += "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo".split()
        return [*words, program]

    return [Peer(settings, name, command)]


def plugins(args, settings, kind=Ddprun):
    """Those of --backends."""
    more = [word for path in args.plugin_path for word in ("--plugin-path", path)]
    for name in args.backends:
        backend, _, algorithm = name.partition(":")
        options = [option for option in args.option if option.startswith(f"{backend}.")]
        if settings.tcp and backend == "ucx":
            options.append("ucx.tls=tcp")
        words = [word for option in options for word in ("--option", option)]
        yield kind(settings, args.program, backend, algorithm or "auto", words + more)


def other_mpis(args, settings, make):
    """Makers of those of --mpi, by name."""
    return {name: lambda name=name, words=(shlex.split(compiler), shlex.split(launcher)): make(settings, name, *words)
            for name, compiler, launcher in args.mpi}


def available(makers, say):
    """All peers that `makers` make. Says why it skips the others."""
    for name, make in makers.items():
        try:
            yield from make()
        except Absent as reason:
            say(f"skipped: {name}: {reason}")


def collect(table, contestants, ranks, rounds, title, say, measure=None):
    """Measures all by turns, and adds their cases to the table in the order of the contestants. `measure`: of a
    contender, its cases; by default those on this host."""
    measure = measure or (lambda contender: contender.measure(ranks))
    able, found = [], []
    for contender in contestants:
        if ranks <= contender.most_ranks:
            able.append(contender)
        else:
            say(f"skipped: {contender.name} with {ranks} ranks: more than cores")
    for number, order in enumerate(turns(able, rounds)):
        for contender in order:
            say(f"{title}, round {number + 1} of {rounds}: {contender.name}")
            found += [(contestants.index(contender), case) for case in measure(contender)]
    for index, (column, *case) in sorted(found, key=lambda each: each[0]):
        if isinstance(contestants[index], Ddprun):
            table.own.add(column)
        table.add(ranks, column, *case)


def environment_of(own):
    """The environment from `ddprun bench`, with all plugins; load and date are those of the first one."""
    return {key: value for each in reversed(own) for key, value in each.environment.items()}
