#!/usr/bin/env python3
"""Checks that virtual ranks give the same weights on any number of ranks, also if ranks die. Measures what virtual
ranks cost, in alternating order, and how long training stands still after a death.

    python3 bench/elastic.py --program build/release/bin/ddprun --json elastic.json
    python3 bench/elastic.py --program build/release/bin/ddprun --ranks 8 --rounds 0 --deaths 200
    python3 bench/elastic.py --program build/release/bin/ddprun --cifar10 FOLDER --mnist FOLDER

Without folders of data sets, the samples are synthetic. This script needs only the standard library.
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from comparison import ratios_of
from options import GATE
from running import Failed, turns
from systems import train
from tables import print_grid

VIRTUAL = 8
WARM = 0.2  # of the steps, which are not measured

CONFIG = """
[launch]
nproc = {ranks}
threads = 1
[comm]
backend = "{backend}"
[strategy]
kind = "{kind}"
virtual_ranks = {virtual}
[model]
name = "{model}"
[data]
{data}
batch_size = {batch}
[optimizer]
name = "sgd"
lr = 0.05
momentum = 0.9
[train]
steps = {steps}
accumulate = {accumulate}
evaluate = false
[checkpoint]
every_epochs = 0
"""
SYNTHETIC = 'name = "synthetic"\noptions = {{ shape = "{}", classes = 10, samples = 10000 }}'


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--mnist", metavar="FOLDER", help="MNIST for simplenet")
    parser.add_argument("--cifar10", metavar="FOLDER", help="CIFAR-10 for ResNet-18, its first training file")
    parser.add_argument("--ranks", default="1,2,3,4,5,8", metavar="N,...", help="numbers of ranks (1,2,3,4,5,8)")
    parser.add_argument("--backends", default="shm,gloo,ucx", metavar="NAME,...", help="(shm,gloo,ucx)")
    parser.add_argument("--jobs", default="simplenet,resnet18", metavar="NAME,...", help="(simplenet,resnet18)")
    parser.add_argument("--steps", type=int, default=300, metavar="N", help="steps of a run (300)")
    parser.add_argument("--rounds", type=int, default=6, metavar="N", help="rounds of the cost (6); 0: none")
    parser.add_argument("--deaths", type=int, default=0, metavar="N",
                        help="N runs of each job and backend in which ranks die and return at random (0)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments of death (1)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="the time limit of a run (3600)")
    return parser.parse_args(argv)


def config_of(args, job, ranks, backend="shm", virtual=VIRTUAL, kind="ddp", accumulate=1):
    data = SYNTHETIC.format("1x28x28" if job == "simplenet" else "3x32x32")
    if job == "simplenet" and args.mnist:
        data = f'name = "mnist"\nroot = "{args.mnist}"'
    if job == "resnet18" and args.cifar10:
        data = (f'name = "cifar10"\nroot = "{args.cifar10}"\n'
                'options = { image_size = 32, train = "data_batch_1.bin.gz", test = "test_batch_2000.bin.gz" }')
    return CONFIG.format(ranks=ranks, backend=backend, kind=kind, virtual=virtual, model=job, data=data,
                         batch=512 if job == "simplenet" else 64, steps=args.steps, accumulate=accumulate)


def hashes_of(args, folder):
    """{job: {"N ranks, BACKEND": hash}}"""
    found = {}
    for job in args.jobs.split(","):
        for backend in args.backends.split(","):
            for ranks in map(int, args.ranks.split(",")):
                summary, _ = train(args.program, config_of(args, job, ranks, backend), folder, args.limit)
                name = f"{ranks} ranks, {backend}"
                found.setdefault(job, {})[name] = summary["weights.sha256"]
                print(f"{job}, {name}: {summary['weights.sha256'][:16]}", flush=True)
    return found


def costs_of(args, folder):
    """{job: {system: [{"step": seconds, "peak": bytes} of each round]}}"""
    systems = {
        "2 ranks": {"ranks": 2, "virtual": 0},
        "2 ranks, 2 virtual": {"ranks": 2, "virtual": 2},
        f"one process, {VIRTUAL} micro-batches": {"ranks": 1, "kind": "single", "accumulate": VIRTUAL},
        f"1 rank, {VIRTUAL} virtual": {"ranks": 1},
    }
    figures = {job: {system: [] for system in systems} for job in args.jobs.split(",")}
    for order in turns(list(systems), args.rounds):
        for job, of_job in figures.items():
            for system in order:
                summary, steps = train(args.program, config_of(args, job, **systems[system]), folder, args.limit)
                measured = [step["total"] for step in steps[int(len(steps) * WARM):]]
                of_job[system].append({"step": statistics.median(measured), "peak": summary["peak_memory_bytes"]})
    return figures


class DyingRun:
    """A run whose ranks are killed and stopped at random."""

    def __init__(self, args, job, backend, folder, choice):
        self.ranks = choice.randint(3, 5)
        self.runs = pathlib.Path(tempfile.mkdtemp(dir=folder))
        config = self.runs / "bench.toml"
        config.write_text(config_of(args, job, self.ranks, backend))
        argv = [args.program, "--config", config, "--nnodes", "1:1", "--max-restarts", str(choice.randint(0, 1)),
                "--set", "log.every=1", "--set", f"experiment.output={self.runs}"]
        self.lines = []  # (time, line)
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line))

    def time_of(self, pattern, after, limit=30):
        """When a line came that matches; None if training has ended."""
        end = time.monotonic() + limit
        while time.monotonic() < end and self.process.poll() is None:
            for when, line in self.lines[:]:
                if when > after and re.search(pattern, line):
                    return when
            time.sleep(0.002)
        return None

    def hit(self, choice):
        """Kills or stops a rank, and sometimes one more. Returns the seconds until the others go on, or None."""
        try:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            ranks = [pid for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("ddprun-rank")]
        except OSError:  # one has ended meanwhile
            return None
        if len(ranks) < 3:
            return None
        begin = time.monotonic()
        number = signal.SIGSTOP if choice.random() < 0.1 else signal.SIGKILL
        for pid in choice.sample(ranks, choice.randint(1, 2)):
            os.kill(int(pid), number)
        went_on = self.time_of("go(es)? on after step", begin)
        return went_on - begin if went_on and number == signal.SIGKILL else None

    def end(self, limit):
        """Its exit code, and the hash of its weights."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = "hangs"
        self.reader.join()
        summaries = list(self.runs.glob("*/summary.json"))
        return code, json.loads(summaries[0].read_text())["weights.sha256"] if code == 0 else None


def deaths_of(args, folder, hashes):
    """{job: {"runs": N, "wrong": [...], "pauses": [seconds]}}. A right run has the exit code 0 and the common hash."""
    found = {}
    choice = random.Random(args.seed)
    for job in args.jobs.split(","):
        of_job = found[job] = {"runs": 0, "wrong": [], "pauses": []}
        for number in range(args.deaths):
            for backend in args.backends.split(","):
                run = DyingRun(args, job, backend, folder, choice)
                run.time_of(r"^epoch 1 \[", 0)
                pauses = []
                for _ in range(choice.randint(1, 3)):
                    time.sleep(choice.random() * 0.3)
                    pauses.append(run.hit(choice))
                code, digest = run.end(args.limit)
                of_job["runs"] += 1
                of_job["pauses"] += [pause for pause in pauses if pause is not None]
                if code != 0 or digest not in hashes[job].values():
                    of_job["wrong"].append({"backend": backend, "number": number, "code": code, "hash": digest,
                                            "output": [line for _, line in run.lines[-20:]]})
                    print(f"{job}, {backend}, run {number}: exit code {code}, {digest}", file=sys.stderr)
    return found


def print_deaths(found):
    for job, of_job in found.items():
        print(f"{job}: {of_job['runs']} runs with deaths, {len(of_job['wrong'])} of them wrong")
        if len(of_job["pauses"]) > 1:
            cuts = statistics.quantiles(of_job["pauses"], n=100, method="inclusive")
            print(f"  {len(of_job['pauses'])} kills, seconds until the others go on: median {cuts[49]:.3f}, "
                  f"p99 {cuts[98]:.3f}, longest {max(of_job['pauses']):.3f}")


def print_costs(figures):
    rows = []
    for job, of_job in figures.items():
        names = list(of_job)
        for plain, virtual in zip(names[::2], names[1::2]):
            steps = [[each["step"] for each in of_job[name]] for name in (virtual, plain)]
            ratios = ratios_of(*steps)
            peaks = [statistics.median(each["peak"] for each in of_job[name]) / 2 ** 20 for name in (virtual, plain)]
            rows.append([job, virtual, plain, *(f"{statistics.median(values) * 1e3:.3f}" for values in steps),
                         f"{statistics.median(ratios):.3f} ({min(ratios):.3f} .. {max(ratios):.3f})",
                         *(f"{peak:.0f}" for peak in peaks)])
    print_grid("median step in milliseconds, ratio of the rounds, and peak memory of a rank in MiB",
               ["job", "system", "compared with", "step", "step", "ratio", "MiB", "MiB"], rows)


def main(argv):
    args = arguments(argv)
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        try:
            hashes = hashes_of(args, folder)
            deaths = deaths_of(args, folder, hashes)
            costs = costs_of(args, folder) if args.rounds > 0 else {}
        except Failed as error:
            print(f"elastic.py: {error}", file=sys.stderr)
            return error.code
    differ = [job for job, of_job in hashes.items() if len(set(of_job.values())) > 1]
    for job, of_job in hashes.items():
        print(f"{job}: {len(of_job)} runs of {args.steps} steps, {len(set(of_job.values()))} different weights")
    if args.deaths > 0:
        print_deaths(deaths)
    if costs:
        print_costs(costs)
    if args.json:
        document = {"ddprun_elastic": 1, "command": sys.argv, "settings": vars(args), "hashes": hashes,
                    "deaths": deaths, "costs": costs}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")
    return GATE if differ or any(of_job["wrong"] for of_job in deaths.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
