#!/usr/bin/env python3
"""Compares ddprun with PyTorch DDP over Gloo, on the same jobs in alternating runs: steps per second, and the time from
start to exit of a run of one step, including torchrun.

    python3 bench/training.py --program build/release/bin/ddprun --python PYTHON --json training.json

PYTHON is a Python with torch and torchvision. bench/README.md describes the jobs.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile
import time

from comparison import ratio_of
from running import Failed, turns
from systems import pytorch_ddp, train

GATE = 6
PEER = "PyTorch DDP"
WARM_RATIO = 0.2  # warm-up steps, relative to the measured ones


@dataclasses.dataclass
class Job:
    """A job for all systems. `least`: required ratio of ddprun's steps per second to those of PyTorch DDP."""
    name: str
    model: str
    batch: int  # per rank
    steps: int
    least: float
    data: str  # name and options in the [data] table
    optimizer: str
    extent: int = 224
    workers: int = 2  # ddprun's default

    def warm(self):
        return max(1, round(self.steps * WARM_RATIO))


def synthetic(shape):
    return f'name = "synthetic"\noptions = {{ shape = "{shape}", classes = 10, samples = {{samples}} }}'


LINE = 'name = "linear"\noptions = { samples = {samples} }'
SGD = 'name = "sgd"\nlr = 0.01'
MOMENTUM = SGD + "\nmomentum = 0.9"
JOBS = [
    Job("linear", "linear", 32, 1500, 10, LINE, SGD, workers=0),
    Job("simplenet", "simplenet", 64, 400, 4, synthetic("1x28x28"), 'name = "adam"\nlr = 1e-3'),
    Job("resnet18_32", "resnet18", 32, 20, 1.3, synthetic("3x32x32"), MOMENTUM, extent=32),
    Job("resnet18_224", "resnet18", 8, 6, 1.05, synthetic("3x224x224"), MOMENTUM),
]
START = Job("start to exit", "linear", 32, 1, 8, LINE, SGD, workers=0)

CONFIG = """
[launch]
nproc = {ranks}
threads = {threads}
[comm]
backend = "{backend}"
[strategy]
kind = "ddp"
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


def config_of(job, backend, args, steps):
    """One epoch covers all steps, as for PyTorch."""
    options = f'options = {{ memory_format = "{args.memory_format}" }}' if job.model == "resnet18" else ""
    data = job.data.replace("{samples}", str(job.batch * args.ranks * steps))
    return CONFIG.format(ranks=args.ranks, threads=args.threads, backend=backend, model=job.model,
                         model_options=options, data=data, batch=job.batch, workers=job.workers,
                         optimizer=job.optimizer, steps=steps)


def measure(job, system, args, folder):
    """Steps per second of one run, without the warm-up."""
    steps = job.warm() + job.steps
    if system == PEER:
        return pytorch_ddp(args.python, args.ranks, args.limit, args.threads, job=job.model, extent=job.extent,
                           batch=job.batch, steps=steps, warm=job.warm())["steps_per_second"]
    _, rows = train(args.program, config_of(job, system, args, steps), folder, args.limit)
    measured = rows[job.warm():]
    return len(measured) / sum(row["total"] for row in measured)


def measure_start(job, system, args, folder):
    """Runs of one step per second, from start to exit."""
    begin = time.perf_counter()
    if system == PEER:
        pytorch_ddp(args.python, args.ranks, args.limit, args.threads, job=job.model, batch=job.batch, steps=job.steps)
    else:
        train(args.program, config_of(job, system, args, job.steps), folder, args.limit)
    return 1 / (time.perf_counter() - begin)


def arguments(argv):
    names = [job.name for job in JOBS] + ["start"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--python", required=True, help="a Python with torch and torchvision")
    parser.add_argument("--jobs", default=",".join(names), help=",".join(names))
    parser.add_argument("--backends", default="gloo,ucx,shm", help="ddprun's plugins (gloo,ucx,shm)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="compute threads of a rank (1)")
    parser.add_argument("--rounds", type=int, help="5; 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, to check that it runs")
    parser.add_argument("--memory-format", choices=["contiguous", "channels_last"], default="contiguous",
                        help="for ddprun's ResNet-18; PyTorch's is contiguous")
    parser.add_argument("--gate", action="store_true", help=f"exit with {GATE} if the last backend misses a bound")
    parser.add_argument("--json", metavar="FILE", help="write the figures of all rounds")
    parser.add_argument("--limit", type=float, default=600, help="time limit of one run in seconds (600)")
    args = parser.parse_args(argv)
    args.jobs, args.backends = args.jobs.split(","), args.backends.split(",")
    if unknown := set(args.jobs) - set(names):
        parser.error(f"--jobs {','.join(sorted(unknown))}: expected some of {','.join(names)}")
    if args.rounds is None:
        args.rounds = 2 if args.quick else 5
    if min(args.rounds, args.ranks, args.threads) < 1:
        parser.error("--rounds, --ranks and --threads must be at least 1")
    return args


def run_rounds(args, folder):
    """{job: {system: figure of each round}}."""
    systems = [PEER, *args.backends]
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
                measure_job = measure_start if job is START else measure
                figures[job.name][system].append(measure_job(job, system, args, folder))
    return jobs, figures


def figure(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def cell(job, rates):
    values = [1 / rate for rate in rates] if job is START else rates
    return f"{figure(statistics.median(values))} ({figure(min(values))} .. {figure(max(values))})"


def print_table(jobs, figures, args):
    """Returns the jobs whose bound the last backend misses."""
    print(f"{args.ranks} ranks, compute threads of each: {args.threads}; {args.rounds} rounds; "
          "steps per second (start to exit: seconds), median (minimum .. maximum)")
    header = f"{'':14}{PEER:>34}{'':8}" + "".join(f"{backend:>34}{'ratio':>8}" for backend in args.backends)
    print(f"{header}{'required':>9}")
    missed = []
    for job in jobs:
        rounds = figures[job.name]
        line = f"{job.name:14}{cell(job, rounds[PEER]):>34}{'':8}"
        for backend in args.backends:
            line += f"{cell(job, rounds[backend]):>34}{ratio_of(rounds[backend], rounds[PEER]):8.2f}"
        print(line + f"{job.least:9.4g}")
        if ratio_of(rounds[args.backends[-1]], rounds[PEER]) < job.least:
            missed.append(job.name)
    if missed:
        print(f"{args.backends[-1]} misses the required ratio of: {', '.join(missed)}")
    return missed


def main(argv):
    args = arguments(argv)
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-") as folder:
        try:
            jobs, figures = run_rounds(args, pathlib.Path(folder))
        except Failed as error:
            print(f"training.py: {error}", file=sys.stderr)
            return error.code
    missed = print_table(jobs, figures, args)
    if args.json:
        document = {"ddprun_training": 1, "command": sys.argv, "settings": vars(args), "figures": figures,
                    "unit": "steps, or runs from start to exit, per second",
                    "wanted": {job.name: job.least for job in jobs}, "missed": missed}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")
    return GATE if args.gate and missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
