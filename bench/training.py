#!/usr/bin/env python3
"""Compares ddprun with PyTorch DDP over Gloo, on the same jobs in alternating runs: steps per second, and the time from
start to exit of a run of one step, including torchrun. Over a link: the time of a step.

    python3 bench/training.py --program build/release/bin/ddprun --python PYTHON --json training.json
    python3 bench/training.py --program build/release/bin/ddprun --python PYTHON --link 1gbit

PYTHON is a Python with torch and torchvision. bench/README.md describes the jobs. --link needs root.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

from comparison import ratio_of
from namespaces import Hosts, bits_of, why_not
from options import GATE, SKIPPED, rate_of
from running import Failed, turns
from systems import pytorch_ddp, train
from tables import figure, print_grid

PEER = "PyTorch DDP"
ONE = "one rank"  # does not communicate
BACKENDS = "gloo,ucx,shm"
LINK_JOB, LINKED = "resnet18_32", "gloo,ucx,ucx:bf16"
# With --link and LINK_JOB, {bytes per parameter: (required times PyTorch DDP, at most so many times the limit)}
OVER_LINK = {4: (1.3, 1.1), 2: (2, math.inf)}
WARM_RATIO = 0.2  # warm-up steps, relative to the measured ones


@dataclasses.dataclass
class Job:
    """A job for all systems. `least`: by backend, the required ratio of its steps per second to those of PyTorch DDP."""
    name: str
    model: str
    batch: int  # per rank
    steps: int
    least: dict
    data: str  # name and options in the [data] table
    optimizer: str
    extent: int = 224
    workers: int = 2  # ddprun's default
    parameters: int = 2

    def warm(self):
        return max(1, round(self.steps * WARM_RATIO))


def synthetic(shape):
    return f'name = "synthetic"\noptions = {{ shape = "{shape}", classes = 10, samples = {{samples}} }}'


LINE = 'name = "linear"\noptions = { samples = {samples} }'
SGD = 'name = "sgd"\nlr = 0.01'
MOMENTUM = SGD + "\nmomentum = 0.9"
JOBS = [
    Job("linear", "linear", 32, 1500, {"shm": 10}, LINE, SGD, workers=0),
    Job("simplenet", "simplenet", 64, 400, {"shm": 4, "gloo": 2.5}, synthetic("1x28x28"), 'name = "adam"\nlr = 1e-3',
        parameters=203_530),
    Job("resnet18_32", "resnet18", 32, 20, {"shm": 1.45, "gloo": 1.45}, synthetic("3x32x32"), MOMENTUM, extent=32,
        parameters=11_181_642),
    Job("resnet18_224", "resnet18", 8, 6, {"shm": 1.05}, synthetic("3x224x224"), MOMENTUM,
        parameters=11_181_642),
]
START = Job("start to exit", "linear", 32, 1, {"shm": 12}, LINE, SGD, workers=0)

CONFIG = """
[launch]
nproc = {ranks}
threads = {threads}
[comm]
backend = "{backend}"
options = {{ {options} }}
[strategy]
kind = "ddp"
compression = "{compression}"
{strategy}
[model]
name = "{model}"
{model_options}
[data]
{data}
batch_size = {batch}
batch_per = "rank"
workers = {workers}
[optimizer]
{optimizer}
[train]
steps = {steps}
evaluate = false
"""


def config_of(job, system, args, steps):
    """One epoch covers all steps, as for PyTorch. `system`: BACKEND[:COMPRESSION], or ONE."""
    backend, _, compression = ("shm" if system == ONE else system).partition(":")
    ranks = 1 if system == ONE else args.ranks
    options = f'options = {{ memory_format = "{args.memory_format}" }}' if job.model == "resnet18" else ""
    data = job.data.replace("{samples}", str(job.batch * ranks * steps))
    return CONFIG.format(ranks=1 if args.link else ranks, threads=args.threads, backend=backend,
                         options='tls = "tcp"' if args.link and backend == "ucx" else "",
                         compression=compression or "none", strategy=args.strategy, model=job.model,
                         model_options=options, data=data, batch=job.batch, workers=job.workers,
                         optimizer=job.optimizer, steps=steps)


@dataclasses.dataclass
class Measuring:
    """Where the runs are: `hosts` with one rank each, or None for this host."""
    args: argparse.Namespace
    folder: pathlib.Path
    hosts: Hosts | None

    def rate(self, job, system):
        """Steps per second of one run, without the warm-up; of START, runs of one step per second."""
        if job is START:
            return 1 / self.seconds(job, system)
        args, steps = self.args, job.warm() + job.steps
        if system == PEER:
            return self.pytorch(job, extent=job.extent, steps=steps, warm=job.warm())["steps_per_second"]
        _, rows = self.train(job, system, steps)
        measured = rows[job.warm():]
        return len(measured) / sum(row["total"] for row in measured)

    def seconds(self, job, system):
        begin = time.perf_counter()
        if system == PEER:
            self.pytorch(job, steps=job.steps)
        else:
            self.train(job, system, job.steps)
        return time.perf_counter() - begin

    def train(self, job, system, steps):
        args = self.args
        return train(args.program, config_of(job, system, args, steps), self.folder, args.limit,
                     None if system == ONE else self.hosts)

    def pytorch(self, job, **more):
        args = self.args
        return pytorch_ddp(args.python, 1 if self.hosts else args.ranks, args.limit, args.threads, self.hosts,
                           self.folder, job=job.model, batch=job.batch, **more)


def arguments(argv):
    names = [job.name for job in JOBS] + ["start"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--python", required=True, help="a Python with torch and torchvision")
    parser.add_argument("--jobs", metavar="NAME,...",
                        help=f"the jobs to measure (default: {','.join(names)}; with --link: {LINK_JOB})")
    parser.add_argument("--backends", metavar="NAME[:COMPRESSION],...",
                        help=f"ddprun's plugins, each with an optional compression (default: {BACKENDS}; with --link: {LINKED})")
    parser.add_argument("--link", type=rate_of, metavar="RATE",
                        help="put each rank on a simulated host, which sends and receives at most at this rate; needs root")
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="the number of ranks (2)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="the compute threads of a rank (1)")
    parser.add_argument("--rounds", type=int, metavar="N", help="the number of rounds (5; 2 with --quick)")
    parser.add_argument("--strategy", default="", metavar="TOML",
                        help='more keys of [strategy] for ddprun, such as "bucket_cap_mb = 12"')
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, to check that it runs")
    parser.add_argument("--memory-format", choices=["contiguous", "channels_last"], default="contiguous",
                        help="the memory format of ddprun's ResNet-18; that of PyTorch is contiguous (contiguous)")
    parser.add_argument("--gate", action="store_true", help=f"exit with {GATE} if a bound is missed")
    parser.add_argument("--json", metavar="FILE", help="write the figures of all rounds to this file")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="the time limit of one run (600)")
    args = parser.parse_args(argv)
    args.jobs = (args.jobs or (LINK_JOB if args.link else ",".join(names))).split(",")
    args.backends = (args.backends or (LINKED if args.link else BACKENDS)).split(",")
    if unknown := set(args.jobs) - set(names):
        parser.error(f"--jobs {','.join(sorted(unknown))}: expected some of {','.join(names)}")
    if args.rounds is None:
        args.rounds = 2 if args.quick else 5
    if min(args.rounds, args.ranks, args.threads) < 1:
        parser.error("--rounds, --ranks and --threads must be at least 1")
    return args


def run_rounds(args, measuring):
    """{job: {system: figure of each round}}."""
    systems = [PEER, *([ONE] if args.link else []), *args.backends]
    jobs = [job for job in JOBS if job.name in args.jobs]
    if args.quick:
        jobs = [dataclasses.replace(job, steps=max(2, job.steps // 10)) for job in jobs]
    jobs += [START] if "start" in args.jobs else []
    figures = {job.name: {system: [] for system in systems} for job in jobs}
    for number, order in enumerate(turns(systems, args.rounds)):
        for job in jobs:
            for system in order:
                turn = f"round {number + 1} of {args.rounds}: {job.name}, {system}"
                print(f"training.py: {turn}", file=sys.stderr, flush=True)
                figures[job.name][system].append(measuring.rate(job, system))
    return jobs, figures


def cell(job, rates):
    values = [1 / rate for rate in rates] if job is START else rates
    return f"{figure(statistics.median(values))} ({figure(min(values))} .. {figure(max(values))})"


def print_table(jobs, figures, args):
    """Returns the bounds that are missed, or that there is none."""
    print(f"{args.ranks} ranks, compute threads of each: {args.threads}; {args.rounds} rounds; "
          "steps per second (start to exit: seconds), median (minimum .. maximum)")
    print(f"{'':14}{PEER:>34}" + "".join(f"{backend:>34}{'ratio':>8}{'required':>9}" for backend in args.backends))
    missed = []
    for job in jobs:
        rounds = figures[job.name]
        line = f"{job.name:14}{cell(job, rounds[PEER]):>34}"
        for backend in args.backends:
            ratio, least = ratio_of(rounds[backend], rounds[PEER]), job.least.get(backend)
            line += f"{cell(job, rounds[backend]):>34}{ratio:8.2f}{figure(least):>9}"
            if least is not None and ratio < least:
                missed.append(f"{job.name}, {backend}: {least:g} times {PEER}")
        print(line)
    if not any(backend in job.least for job in jobs for backend in args.backends):
        missed.append("no bound for these jobs and backends")
    for bound in missed:
        print(f"MISSED {bound}")
    return missed


def bytes_per_parameter(system):
    return 2 if system.endswith(("fp16", "bf16")) else 4


def print_link_table(jobs, figures, args):
    """The same over a link. The limit: no step is shorter than the computation of one rank, and none is shorter than
    the time in which the link carries a ring's share of the gradients. Returns the bounds that are missed."""
    print(f"{args.ranks} hosts with one rank each, link {args.link}, {args.rounds} rounds")
    missed, lines = [], []
    for job in (job for job in jobs if job is not START):
        rounds = figures[job.name]
        for system, rates in rounds.items():
            step = statistics.median(1 / rate for rate in rates)
            size = bytes_per_parameter(system)
            wire = job.parameters * size * 2 * (args.ranks - 1) / args.ranks * 8 / bits_of(args.link)
            limit = statistics.median(max(1 / rate, wire) for rate in rounds[ONE])
            times, excess = ratio_of(rates, rounds[PEER]), step / limit
            lines.append([job.name, system, f"{step * 1e3:.1f}", f"{1e3 / max(rates):.1f} .. {1e3 / min(rates):.1f}",
                          f"{times:.2f}", "" if system == ONE else f"{limit * 1e3:.1f}",
                          "" if system == ONE else f"{excess:.2f}"])
            least, most = OVER_LINK[size] if job.name == LINK_JOB and system in args.backends else (0, math.inf)
            if times < least:
                missed.append(f"{job.name}, {system}: {least:g} times {PEER}")
            if excess > most:
                missed.append(f"{job.name}, {system}: at most {most:g} times the limit")
    print_grid("milliseconds per step", ["job", "system", "median", "range", f"times {PEER}", "limit", "of the limit"],
               lines)
    for bound in missed:
        print(f"MISSED {bound}")
    return missed


def main(argv):
    args = arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that everything is cleaned up
    if reason := args.link and ("needs root" if os.geteuid() != 0 else why_not(args.link)):
        print(f"training.py: skipped: {reason}", file=sys.stderr)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-", ignore_cleanup_errors=True) as folder:
        try:
            with Hosts(args.ranks, args.link) if args.link else contextlib.nullcontext() as hosts:
                jobs, figures = run_rounds(args, Measuring(args, pathlib.Path(folder), hosts))
        except Failed as error:
            print(f"training.py: {error}", file=sys.stderr)
            return error.code
    missed = (print_link_table if args.link else print_table)(jobs, figures, args)
    if args.json:
        document = {"ddprun_training": 1, "command": sys.argv, "settings": vars(args), "figures": figures,
                    "unit": "steps, or runs from start to exit, per second",
                    "wanted": {job.name: job.least for job in jobs}, "missed": missed}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")
    return GATE if args.gate and missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
