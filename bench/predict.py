#!/usr/bin/env python3
"""Compares what `ddprun predict` says with real runs, between simulated hosts (network namespaces) with limited links.
As root:

    python3 bench/predict.py --program build/release/bin/ddprun --json predict.json

It measures the links on few hosts, records a run on two, predicts for all numbers of hosts, and then trains on them.
bench/README.md explains the table.
"""

import argparse
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

from namespaces import Hosts, bits_of, why_not
import prediction_chart
from options import GATE, SKIPPED, list_of, rate_of
from running import Failed, run
from systems import ddprun_on_each, run_folder
from tables import print_grid

BOUND = 0.10  # of the median error
CORES = len(os.sched_getaffinity(0))
TRACED = [5, 10, 15]
FIRST = 2  # steps that do not count, as in ddprun predict
# name: model, shape of a sample, samples per rank and step, classes
JOBS = {"simplenet": ('name = "simplenet"', "1x28x28", 64),
        "resnet18": ('name = "resnet18"\noptions = { stem = "small" }', "3x32x32", 4)}
CONFIG = """
[launch]
nproc = {nproc}
threads = 1
insecure = true
[comm]
{comm}
[strategy]
kind = "ddp"
{strategy}
[model]
{model}
[data]
name = "synthetic"
batch_size = {batch}
batch_per = "rank"
options = {{ shape = "{shape}", classes = 10, samples = {samples} }}
[optimizer]
name = "sgd"
lr = 0.01
[train]
steps = {steps}
evaluate = false
[log]
trace_steps = {traced}
"""


def say(text):
    print(f"predict.py: {text}", file=sys.stderr, flush=True)


def method_of(text):
    backend, _, algorithm = text.partition(":")
    if not algorithm:
        raise argparse.ArgumentTypeError(f"{text}: expected BACKEND:ALGORITHM")
    return backend, algorithm


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--methods", type=list_of(method_of), metavar="BACKEND:ALGORITHM,...",
                        default=list_of(method_of)("gloo:ring,gloo:tree,ucx:ring,ucx:tree"),
                        help="the methods to predict and to run (gloo:ring,gloo:tree,ucx:ring,ucx:tree)")
    parser.add_argument("--hosts", type=list_of(int), default=[2, 3, 4, 6, 8], metavar="N,...",
                        help="the numbers of hosts to predict and to run (2,3,4,6,8)")
    parser.add_argument("--measured", type=list_of(int), default=[2, 3], metavar="N,...",
                        help="the numbers of hosts on which the links are measured (2,3)")
    parser.add_argument("--ranks-per-host", type=int, default=1, metavar="N",
                        help="the ranks on each host in the runs; the links between hosts are measured with one (1)")
    parser.add_argument("--link", type=rate_of, default="100mbit", metavar="RATE",
                        help="what each host can send and receive (100mbit)")
    parser.add_argument("--job", choices=JOBS, default="simplenet", help="the model to train (simplenet)")
    parser.add_argument("--sizes", metavar="SIZE,...", default="256K,512K,1M,2M",
                        help="the sizes of the vectors on the links (256K,512K,1M,2M)")
    parser.add_argument("--strategy", default="", metavar="TOML",
                        help='more keys of [strategy], such as "bucket_cap_mb = 1"')
    parser.add_argument("--steps", type=int, default=30, metavar="N", help="the steps of each run (30)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="the rounds of ddprun bench (3)")
    parser.add_argument("-n", "--samples", type=int, default=3, metavar="N",
                        help="the samples of each size in each round of ddprun bench (3)")
    parser.add_argument("--gate", action="store_true",
                        help=f"exit with {GATE} if the median error is above {100 * BOUND:.0f} percent")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    parser.add_argument("--png", metavar="FILE", help="draw efficiency over hosts, predicted and measured, in this file")
    parser.add_argument("--keep", metavar="DIR", help="keep the files of the benchmarks and runs in this new folder")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="the time limit of a program (600)")
    args = parser.parse_args(argv)
    if args.png and (reason := prediction_chart.why_not()):
        parser.error(reason)
    if args.steps <= max(TRACED) or min(args.hosts + args.measured) < 2 or args.ranks_per_host < 1:
        parser.error(f"expected --steps above {max(TRACED)}, --hosts and --measured from 2, --ranks-per-host from 1")
    return args


def burst_of(rate):
    """What the link takes at once: what it sends in 1.3 ms. What a link saves up while it is idle makes it faster than
    its rate; but with less, it is slower, because its timer is late."""
    return f"{math.ceil(bits_of(rate) / 8 * 0.0013 / 1024)}kb"


class Jobs:
    """Starts one program on each host, and waits for all."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def together(self, hosts, argv):
        """Returns the stdout of host 0."""
        return ddprun_on_each(hosts, self.folder, self.args.limit, argv)

    def bench(self, hosts, backend):
        """The path of the results for all algorithms of the backend."""
        args = self.args
        path = self.folder / f"{backend}-{hosts.count}.json"
        algorithms = [algorithm for name, algorithm in args.methods if name == backend]
        if "hierarchical" in algorithms:  # between hosts it is one of these
            algorithms = ["ring", "tree" if backend == "ucx" else "doubling"]
        more = ["--option", "tls=tcp"] if backend == "ucx" else []
        self.together(hosts, [args.program, "bench", "--backend", backend, "--algorithm", ",".join(algorithms),
                              "--sizes", args.sizes, "--rounds", args.rounds, "-n", args.samples, "-w", 1, "-c", 0,
                              *more, "--json", path])
        return path

    def bench_host(self):
        """The path of the results for the ranks of one host, for the part of hierarchical there."""
        args = self.args
        path = self.folder / "host.json"
        run([args.program, "bench", "--backend", "shm", "--ranks", args.ranks_per_host, "--sizes", args.sizes,
             "--rounds", args.rounds, "-n", args.samples, "--json", path], args.limit)
        return path

    def train(self, hosts, backend, algorithm, traced):
        """The folder of the run, and the seconds of a step: the median over the steps of their mean over the ranks.
        A rank that has the sum early in one step waits longer in the next, so the slowest one would be too slow."""
        args = self.args
        model, shape, batch = JOBS[args.job]
        comm = f'backend = "{backend}"\nalgorithm = "{algorithm}"'
        comm += '\noptions = { tls = "tcp" }' if backend == "ucx" else ""
        config = self.folder / "run.toml"
        ranks = hosts.count * args.ranks_per_host
        config.write_text(CONFIG.format(nproc=args.ranks_per_host, comm=comm, strategy=args.strategy, model=model,
                                        batch=batch, shape=shape, samples=batch * ranks * args.steps, steps=args.steps,
                                        traced=traced))
        out = self.together(hosts, [args.program, "--config", config, "--set",
                                    f"experiment.output={self.folder / 'runs'}"])
        results = run_folder(out)
        totals = [[json.loads(line)["total"] for line in path.read_text().splitlines()]
                  for path in sorted(results.glob("steps-rank*.jsonl"))]
        means = [statistics.mean(step) for step in zip(*totals, strict=True)]
        return results, statistics.median(means[FIRST:])


def measure(args, jobs):
    """The recorded run, the results of the benchmarks, and {(backend, algorithm, hosts): seconds of a step}."""
    recorded, results, steps = None, [], {}
    if args.ranks_per_host > 1:
        results.append(jobs.bench_host())
    for count in sorted({*args.hosts, *args.measured, 2}):
        with Hosts(count, args.link, burst_of(args.link)) as hosts:
            if count in args.measured:
                for backend in dict.fromkeys(backend for backend, _ in args.methods):
                    say(f"{count} hosts: links of {backend}")
                    results.append(jobs.bench(hosts, backend))
            if count == 2:
                say("2 hosts: the recorded run")
                recorded, _ = jobs.train(hosts, *args.methods[0], TRACED)
            for backend, algorithm in args.methods if count in args.hosts else []:
                say(f"{count} hosts: {backend} {algorithm}")
                steps[backend, algorithm, count] = jobs.train(hosts, backend, algorithm, [])[1]
    return recorded, results, steps


def compute_of(args, hosts):
    """How many times as long a rank computes as in the recorded run: all hosts share the cores of this machine."""
    def ranks_per_core(hosts):
        return max(1, hosts * args.ranks_per_host / CORES)
    return ranks_per_core(hosts) / ranks_per_core(2)


def predict(args, folder, recorded, results):
    """The prediction for each number of hosts, {hosts: document}."""
    words = [word for file in results for word in ("--bench", file)]
    documents = {}
    for count in args.hosts:
        path = folder / f"prediction-{count}.json"
        run([args.program, "predict", recorded, *words, "--hosts", count, "--ranks-per-host", args.ranks_per_host,
             "--compute", compute_of(args, count), "--json", path], args.limit)
        documents[count] = json.loads(path.read_text())
    return documents


def rows_of(args, predictions, steps):
    """The efficiency is relative to one rank of the recorded run. That of a prediction is relative to one that computes as
    slowly as all ranks do there."""
    for (backend, algorithm, hosts), measured in sorted(steps.items()):
        [row] = [row for method in predictions[hosts]["methods"] for row in method["rows"]
                 if (method["backend"], method["algorithm"], row["hosts"]) == (backend, algorithm, hosts)]
        step = row["step"]
        yield {"backend": backend, "algorithm": algorithm, "hosts": hosts, "predicted": step, "measured": measured,
               "error": step / measured - 1, "efficiency": row["efficiency"] / compute_of(args, hosts)}


def show(args, rows):
    """Prints the table, and returns the median of the errors' magnitudes."""
    def milliseconds(seconds):
        return f"{seconds * 1e3:.1f}"
    print_grid(f"{args.job}, link {args.link}, ranks per host {args.ranks_per_host}: ms per step, of the median step",
               ["backend", "algorithm", "hosts", "predicted", "measured", "error"],
               [[row["backend"], row["algorithm"], str(row["hosts"]), milliseconds(row["predicted"]),
                 milliseconds(row["measured"]), f"{row['error']:+.1%}"] for row in rows])
    median = statistics.median(abs(row["error"]) for row in rows)
    print(f"median error {median:.1%} of {len(rows)} steps")
    return median


def main(argv):
    args = arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that everything is cleaned up
    if reason := "needs root" if os.geteuid() != 0 else why_not(args.link):
        say(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-", ignore_cleanup_errors=True) as made:
        folder = pathlib.Path(args.keep or made)
        try:
            if args.keep:
                folder.mkdir(mode=0o700)
            jobs = Jobs(args, folder.resolve())
            recorded, results, steps = measure(args, jobs)
            predictions = predict(args, jobs.folder, recorded, results)
        except Failed as error:
            say(str(error))
            return error.code
        except KeyboardInterrupt:
            say("interrupted")
            return 128 + signal.SIGINT
    rows = list(rows_of(args, predictions, steps))
    median = show(args, rows)
    if args.json:
        document = {"ddprun_predict_check": 1, "command": sys.argv, "median_error": median, "rows": rows,
                    "recorded": str(recorded), "predictions": predictions}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")
    if args.png:
        try:
            prediction_chart.draw(args.png, f"{args.job}, link {args.link}, ranks per host {args.ranks_per_host}", rows)
        except (OSError, subprocess.CalledProcessError) as error:
            say(f"{args.png} cannot be drawn: {error}")
            return 1
    return GATE if args.gate and median > BOUND else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
