#!/usr/bin/env python3
"""Compares a LibTorch program with ddprun's DistributedDataParallel with the same program without it, in alternating
runs: with an allreduce per parameter after backward over Open MPI and Gloo, with PyTorch DDP, and on one rank.

    python3 bench/library.py --program build/release/bin/ddprun --python PYTHON --gate
    python3 bench/library.py --program build/release/bin/ddprun --zero

PYTHON is a Python with torch. bench/README.md describes the jobs.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile

from comparison import ratio_of
from contenders import Absent, NotBuilt
from library_systems import Cpp, Memory, PyTorch, Settings, build
from options import GATE, SKIPPED
from running import Failed, turns

ROUNDS, QUICK_ROUNDS = 7, 2
MPI, GLOO = "per parameter, Open MPI", "per parameter, Gloo"
PEER, ALONE = "PyTorch DDP, Gloo", "1 rank, without ddprun"
SHM, VIEWS, OWN_GLOO, OWN_ALONE = "ddprun shm", "ddprun shm, bucket views", "ddprun gloo", "1 rank, ddprun"


@dataclasses.dataclass
class Bound:
    """The time of `above` divided by that of `below` is at least `least`."""
    job: str
    above: str
    below: str
    least: float

    def value(self, figures):
        """None if one of them was not measured."""
        rounds = figures[self.job]
        if not rounds.get(self.above) or not rounds.get(self.below):
            return None
        return ratio_of(rounds[self.above], rounds[self.below])


JOBS = ("simplenet", "mnist")
BOUNDS = [Bound("simplenet", PEER, SHM, 5.9)]
BOUNDS += [Bound(job, above, below, least) for job in JOBS
           for above, below, least in ((MPI, SHM, 1), (GLOO, OWN_GLOO, 1), (ALONE, OWN_ALONE, 1 / 1.02))]


def systems_of(settings):
    """{name: system}. Without Open MPI, its systems are skipped with a line. Raises Absent."""
    try:
        program = build(settings, with_mpi=True)
        made = {MPI: Cpp(settings, program, "mpi", 2)}
    except Absent as reason:
        print(f"library.py: {MPI} is skipped: {reason}", file=sys.stderr)
        program = build(settings, with_mpi=False)
        made = {}
    return made | {SHM: Cpp(settings, program, "ddprun", 2, "shm"),
                   VIEWS: Cpp(settings, program, "ddprun_views", 2, "shm"),
                   OWN_GLOO: Cpp(settings, program, "ddprun", 2, "gloo"),
                   GLOO: Cpp(settings, program, "gloo", 2), PEER: PyTorch(settings),
                   OWN_ALONE: Cpp(settings, program, "ddprun", 1), ALONE: Cpp(settings, program, "none", 1)}


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--python", help="a Python with torch, for PyTorch DDP")
    parser.add_argument("--jobs", default=",".join(JOBS), metavar="NAME,...",
                        help=f"the jobs to measure ({','.join(JOBS)})")
    parser.add_argument("--zero", action="store_true", help="compare only the memory of Adam with and without ZeRO")
    parser.add_argument("--batch", type=int, default=64, metavar="N", help="the samples per rank and step (64)")
    parser.add_argument("--steps", type=int, metavar="N", help="the measured steps of a run (1000; 10 with --zero)")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help=f"the number of rounds ({ROUNDS}; {QUICK_ROUNDS} with --quick)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, to check that it runs")
    parser.add_argument("--gate", action="store_true", help=f"exit with {GATE} if a bound is missed")
    parser.add_argument("--json", metavar="FILE", help="write the figures of all rounds to this file")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="the time limit of one run (600)")
    args = parser.parse_args(argv)
    if not args.zero and not args.python:
        parser.error("--python is required without --zero")
    args.jobs = ["resnet18"] if args.zero else args.jobs.split(",")
    if not args.zero and (unknown := set(args.jobs) - set(JOBS)):
        parser.error(f"--jobs {','.join(sorted(unknown))}: expected some of {','.join(JOBS)}")
    args.figure = "peak" if args.zero else "step"
    args.rounds = args.rounds or (QUICK_ROUNDS if args.quick else ROUNDS)
    args.steps = args.steps or (10 if args.zero else 1000)
    if args.quick:
        args.steps = max(2, args.steps // 10)
    if min(args.rounds, args.steps, args.batch) < 1:
        parser.error("--rounds, --steps and --batch must be at least 1")
    return args


def run_rounds(args, systems):
    """{job: {system: figure of each round}}. Raises Failed."""
    figures = {job: {name: [] for name in systems} for job in args.jobs}
    sums = {}
    for number, order in enumerate(turns(list(systems), args.rounds)):
        for job in args.jobs:
            for name in order:
                print(f"library.py: round {number + 1} of {args.rounds}: {job}, {name}", file=sys.stderr, flush=True)
                measured = systems[name].measure(job)
                figures[job][name].append(measured[args.figure])
                if "checksum" in measured:
                    check_weights(sums, (job, systems[name].ranks), name, measured["checksum"])
    return figures


def check_weights(sums, key, name, checksum):
    """All systems in C++ train on the same data, so they must end with the same weights."""
    first = sums.setdefault(key, checksum)
    if not abs(checksum - first) <= 1e-3 * abs(first):  # also NaN
        raise Failed(f"{name}: the weights of {key[0]} have the sum {checksum}, those of another system {first}")


def print_table(figures, figure):
    unit, scale = {"step": ("milliseconds per step", 1e3), "peak": ("peak MiB of a rank", 2**-20)}[figure]
    print(f"{unit}: median of the rounds (minimum .. maximum)")
    for job, systems in figures.items():
        for name, rounds in systems.items():
            values = [value * scale for value in rounds]
            print(f"{job:12} {name:26} {statistics.median(values):9.3f} ({min(values):.3f} .. {max(values):.3f})")


def check_bounds(figures):
    """Prints each bound; returns the text of those that are missed. One that was not measured counts as missed."""
    missed = []
    for bound in (each for each in BOUNDS if each.job in figures):
        value = bound.value(figures)
        text = f"{bound.job}: {bound.above} / {bound.below} >= {bound.least:.3g}"
        fails = value is None or value < bound.least
        print(f"{'MISSED ' if fails else 'ok     '}{text}: {'not measured' if value is None else f'{value:.3f}'}")
        missed += [text] if fails else []
    return missed


def measure(args, folder):
    settings = Settings(pathlib.Path(args.program), args.python, args.batch, args.steps, args.limit, folder)
    if args.zero:
        return run_rounds(args, {"without ZeRO": Memory(settings, 0), "ZeRO stage 1": Memory(settings, 1)})
    return run_rounds(args, systems_of(settings))


def main(argv):
    args = arguments(argv)
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-") as folder:
        try:
            figures = measure(args, pathlib.Path(folder))
        except NotBuilt as error:
            print(f"library.py: {error}", file=sys.stderr)
            return 1
        except Absent as reason:
            print(f"library.py: skipped: {reason}", file=sys.stderr)
            return SKIPPED
        except Failed as error:
            print(f"library.py: {error}", file=sys.stderr)
            return error.code
    print_table(figures, args.figure)
    missed = check_bounds(figures)
    if args.json:
        unit = "bytes" if args.zero else "seconds per step"
        document = {"ddprun_library": 1, "command": sys.argv, "settings": vars(args), "unit": unit, "figures": figures,
                    "missed": missed}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")
    return GATE if args.gate and missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
