#!/usr/bin/env python3
"""Compares PyTorch DDP over ddprun's backends of torch.distributed with the same program over Gloo, in alternating runs:
the time of a step, the bits of the weights, and the time of a single all_reduce.

    PYTHONPATH=build/release/lib/ddprun/python python3 bench/pytorch.py --python PYTHON --json pytorch.json
    python3 bench/pytorch.py --python PYTHON --backends gloo

PYTHON is a Python with torch and torchvision. bench/README.md describes the jobs and the tables.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import sys
import tempfile

import contenders
from comparison import KIB, LEVEL, MIB, Table, interval_of, ratios_of
from options import GATE, text_of
from running import Failed, run, turns
from systems import pytorch_ddp
from tables import figure, print_grid, print_times, results_of

GLOO = "gloo"  # what all are compared with
AGAIN = "gloo again"  # Gloo as one of --backends: how much two equal systems differ
BACKENDS = "gloo,ddprun_gloo,ddprun_ucx,ddprun_shm"
RANKS = 2
ALLREDUCE = "allreduce"
SIZES = [4, 4 * KIB, 256 * KIB, MIB, 16 * MIB]
SAMPLES, WARMUP = 50, 10  # of a size in a round
WARM_RATIO = 0.2  # warm-up steps, relative to the measured ones

# Prints what PYTHON lacks.
CHECK = """
import sys, importlib.util
import torch.distributed as dist
modules, backends = (words.split(",") for words in sys.argv[1:])
lacks = [f"module {name}" for name in modules if importlib.util.find_spec(name) is None]
lacks += [f"backend {name}" for name in backends if not dist.is_backend_available(name)]
print(", ".join(lacks))
"""


@dataclasses.dataclass
class Job:
    name: str
    network: str  # of peers/pytorch_ddp.py
    batch: int  # per rank
    steps: int

    def warm(self):
        return max(1, round(self.steps * WARM_RATIO))


JOBS = [Job("linear", "linear", 32, 1000), Job("simplenet", "simplenet", 64, 400), Job("resnet18_32", "resnet18", 32, 20)]


def say(text):
    print(f"pytorch.py: {text}", file=sys.stderr, flush=True)


def arguments(argv):
    names = [job.name for job in JOBS] + [ALLREDUCE]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="a Python with torch and torchvision")
    parser.add_argument("--backends", default=BACKENDS, metavar="NAME,...",
                        help=f"the backends to compare with Gloo; gloo compares it with itself ({BACKENDS})")
    parser.add_argument("--jobs", default=",".join(names), metavar="NAME,...",
                        help=f"what to measure ({','.join(names)})")
    parser.add_argument("--rounds", type=int, metavar="N", help="the number of rounds (9; 2 with --quick)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps and samples, to check that it runs")
    parser.add_argument("--json", metavar="FILE", help="write the figures of all rounds to this file")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="the time limit of one run (300)")
    args = parser.parse_args(argv)
    args.jobs, args.backends = args.jobs.split(","), list(dict.fromkeys(args.backends.split(",")))
    if unknown := set(args.jobs) - set(names):
        parser.error(f"--jobs {','.join(sorted(unknown))}: expected some of {','.join(names)}")
    if args.rounds is None:
        args.rounds = 2 if args.quick else 9
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    return args


def check_python(args, jobs):
    """Raises Failed if the Python lacks torch, torchvision or a backend."""
    modules = ["torch", *(["torchvision"] if any(job.network == "resnet18" for job in jobs) else [])]
    try:
        lacks = run([args.python, "-c", CHECK, ",".join(modules), ",".join(args.backends)], args.limit).strip()
    except Failed as error:
        reason = str(error).strip().splitlines()[-1].removeprefix(f"{args.python}: ")
        raise Failed(f"{args.python}: {reason}", error.code) from None
    if lacks:
        raise Failed(f"{args.python} has no {lacks}; ddprun's backends need PYTHONPATH=DIR/lib/ddprun/python")


class Training:
    """The steps of all jobs: {job: {column: seconds of the slowest rank's median step, by round}}, and the weights."""

    def __init__(self, args, jobs, columns):
        self.args, self.jobs, self.columns = args, jobs, columns
        self.steps = {job.name: {column: [] for column in columns} for job in jobs}
        self.weights = {job.name: {column: set() for column in columns} for job in jobs}
        self.torch = ""

    def measure(self):
        for number, order in enumerate(turns(list(self.columns), self.args.rounds)):
            for job in self.jobs:
                for column in order:
                    say(f"{job.name}, round {number + 1} of {self.args.rounds}: {column}")
                    self.add(job, column)

    def add(self, job, column):
        found = pytorch_ddp(self.args.python, RANKS, self.args.limit, 1, backend=self.columns[column], job=job.network,
                            data="memory", batch=job.batch, extent=32, steps=job.warm() + job.steps, warm=job.warm())
        self.torch = found["torch"]
        self.steps[job.name][column].append(found["slowest_step"])
        self.weights[job.name][column].update(found["weights"])

    def equal(self, job, column):
        """Whether all ranks in all rounds have the weights that Gloo's have, bit for bit."""
        return len(self.weights[job.name][GLOO] | self.weights[job.name][column]) == 1

    def print(self):
        rows = []
        for job in self.jobs:
            for column, steps in self.steps[job.name].items():
                rows.append([job.name, column, figure(statistics.median(steps) * 1e3),
                             f"{figure(min(steps) * 1e3)} .. {figure(max(steps) * 1e3)}",
                             *compared(column, ratios_of(self.steps[job.name][GLOO], steps)),
                             "bit-equal" if self.equal(job, column) else "DIFFER"])
        print_grid(f"PyTorch DDP: ms per step of the slowest rank, median of {self.args.rounds} rounds; the ratio is "
                   f"Gloo's time by this one {INTERVAL}", ["job", "backend", "ms", "range", "ratio", "", "weights"], rows)

    def differing(self):
        return [f"{job.name}, {column}: the weights differ from Gloo's, or between ranks or rounds"
                for job in self.jobs for column in self.columns if not self.equal(job, column)]

    def document(self):
        """For JSON."""
        return {job.name: {column: {"steps": steps, "bit_equal": self.equal(job, column)}
                           for column, steps in self.steps[job.name].items()} for job in self.jobs}


INTERVAL = f"[interval of {LEVEL:.0%}, with fewer than 6 rounds their range]"


def compared(column, ratios):
    """The cells of a ratio to Gloo."""
    if column == GLOO:
        return ["1", ""]
    low, high = interval_of(ratios)
    return [f"{statistics.median(ratios):.3f}", f"[{low:.3f} .. {high:.3f}]"]


def measure_allreduce(args, columns, folder):
    """Raises Failed."""
    samples, warmup = (SAMPLES // 10, 2) if args.quick else (SAMPLES, WARMUP)
    settings = contenders.Settings(SIZES, samples, warmup, args.limit, False, folder)
    peers = [contenders.torch_allreduce(settings, args.python, column, backend) for column, backend in columns.items()]
    table = Table()
    contenders.collect(table, peers, RANKS, args.rounds, ALLREDUCE, say)
    return table


def print_allreduce(args, table):
    columns = table.columns(RANKS)
    print_times(f"us per dist.all_reduce, float32 sum; median of {args.rounds} rounds (their range)", table, RANKS,
                columns)
    others = [column for column in columns if column != GLOO]
    print_grid(f"all_reduce: Gloo's time by that of the backend, median of the rounds {INTERVAL}", ["size", *others],
               [[text_of(size), *(" ".join(compared(column, table.ratios(RANKS, GLOO, column, size)))
                                  for column in others)] for size in table.sizes(RANKS)])


def main(argv):
    args = arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that everything is cleaned up
    jobs = [job for job in JOBS if job.name in args.jobs]
    if args.quick:
        jobs = [dataclasses.replace(job, steps=max(2, job.steps // 10)) for job in jobs]
    columns = {GLOO: GLOO} | {AGAIN if backend == GLOO else backend: backend for backend in args.backends}
    # A core for each rank, also on a larger machine. The ranks inherit it.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:RANKS])
    training, table = Training(args, jobs, columns), Table()
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-", ignore_cleanup_errors=True) as folder:
        try:
            check_python(args, jobs)
            training.measure()
            if ALLREDUCE in args.jobs:
                table = measure_allreduce(args, columns, pathlib.Path(folder))
        except Failed as error:
            say(error)
            return error.code
    if jobs:
        training.print()
    if ALLREDUCE in args.jobs:
        print_allreduce(args, table)
    wrong = training.differing() + [f"{column}, {text_of(size)}: {elements} wrong elements"
                                    for _, column, size, elements in table.wrong()]
    for line in wrong:
        say(line)
    if args.json:
        document = {"ddprun_pytorch": 1, "command": sys.argv, "torch": training.torch, "settings": vars(args),
                    "steps": training.document(), "allreduce": results_of(table), "wrong": wrong}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")
    return GATE if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
