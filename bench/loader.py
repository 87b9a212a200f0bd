#!/usr/bin/env python3
"""Measures how long a step waits for its data: ddprun's loader on CIFAR-10, resized to 224x224, for one rank.

    python3 bench/loader.py --program build/release/bin/ddprun [--data data/cifar10]

Without workers (0) a step waits while its batch is made, so the wait is the cost of a batch. With enough workers the
wait is almost zero. Needs only the standard library.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import running
from systems import run_folder

CONFIG = pathlib.Path(__file__).resolve().parent.parent / "configs" / "cifar10_resnet18_single.toml"


def measure(args, workers, output):
    """The step records of one run, without the first ones, while the workers start."""
    settings = [f"data.root={args.data}", f"data.batch_size={args.batch}", f"data.workers={workers}",
                f"train.steps={args.warm + args.steps}", "train.evaluate=false", f"experiment.output={output}"]
    argv = [args.program, "--config", args.config]
    for setting in settings + args.set:
        argv += ["--set", setting]
    try:
        folder = run_folder(running.run(argv, args.limit))
    except running.Failed as error:
        print(f"loader.py: {error}", file=sys.stderr)
        sys.exit(error.code)
    return [json.loads(line) for line in (folder / "steps-rank0.jsonl").read_text().splitlines()][args.warm:]


def figures(steps):
    """The median wait and step of one run in ms, and the percentage of its time that it waited."""
    waits, totals = [step["data"] for step in steps], [step["total"] for step in steps]
    return {"wait": 1e3 * statistics.median(waits), "step": 1e3 * statistics.median(totals),
            "share": 100 * sum(waits) / sum(totals)}


def cell(runs, key):
    values = sorted(run[key] for run in runs)
    return f"{statistics.median(values):.2f} ({values[0]:.2f} .. {values[-1]:.2f})"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--data", default="data/cifar10", help="the folder of CIFAR-10 (data/cifar10)")
    parser.add_argument("--config", default=CONFIG, help=f"the experiment ({CONFIG.name})")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="override a key, as in ddprun; repeatable")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2], help="numbers of workers to try (0 2)")
    parser.add_argument("--batch", type=int, default=8, help="samples in a batch (8)")
    parser.add_argument("--steps", type=int, default=12, help="measured steps of a run (12)")
    parser.add_argument("--warm", type=int, default=3, help="warm-up steps (3)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600, help="time limit of one run in seconds (600)")
    args = parser.parse_args()
    if min(args.steps, args.repetitions) < 1 or args.warm < 0:
        parser.error("--steps and --repetitions must be at least 1, --warm at least 0")
    return args


def main():
    args = arguments()
    runs = {workers: [] for workers in args.workers}
    with tempfile.TemporaryDirectory() as output:
        for turn in range(args.repetitions):
            for workers, measured in runs.items():
                measured.append(figures(measure(args, workers, output)))
                print(f"{turn + 1}/{args.repetitions} workers {workers}", file=sys.stderr)
    print(f"{pathlib.Path(args.config).name}, batches of {args.batch}, {args.steps} steps, {args.repetitions} rounds, "
          f"{os.cpu_count()} cores: median (minimum .. maximum)")
    columns = [("wait", "ms of waiting per step"), ("step", "ms per step"), ("share", "% of the time waiting")]
    print("workers" + "".join(f"{title:>32}" for _, title in columns))
    for workers, measured in runs.items():
        print(f"{workers:7}" + "".join(f"{cell(measured, key):>32}" for key, _ in columns))


main()
