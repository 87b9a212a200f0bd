#!/usr/bin/env python3
"""Checks that virtual ranks give the same weights on any number of ranks, also if ranks die. Measures what virtual
ranks cost, in alternating order, and how long training stands still after a death.

    python3 bench/elastic.py --program build/release/bin/ddprun --json elastic.json
    python3 bench/elastic.py --program build/release/bin/ddprun --ranks 8 --rounds 0 --deaths 200
    python3 bench/elastic.py --program build/release/bin/ddprun --cifar10 FOLDER --mnist FOLDER
    python3 bench/elastic.py --program build/release/bin/ddprun --ranks 8 --backends gloo,ucx --link 1gbit
    python3 bench/elastic.py --program build/release/bin/ddprun --ranks 8 --jobs simplenet --python PYTHON

Without folders of data sets, the samples are synthetic. This script needs only the standard library, and PYTHON needs
torch. --link needs root.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from comparison import ratios_of
from namespaces import Hosts, why_not
from options import GATE, SKIPPED, rate_of
from running import Failed, turns
from systems import train
from tables import print_grid

PEER = pathlib.Path(__file__).with_name("peers") / "pytorch_restart.py"
VIRTUAL = 8
LIMIT = 3600  # seconds, of a run
WARM = 0.2  # of the steps, which are not measured

CONFIG = """
[launch]
nproc = {ranks}
threads = 1
[comm]
backend = "{backend}"
{options}
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
    parser.add_argument("--link", type=rate_of, metavar="RATE",
                        help="measure the cost between hosts with one rank each and such links, as tc writes it")
    parser.add_argument("--deaths", type=int, default=0, metavar="N",
                        help="N runs of each job and backend in which ranks and hosts die and return at random (0)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments of death (1)")
    parser.add_argument("--python", help="a Python with torch: kills a rank of ddprun and of torchrun by turns")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    return parser.parse_args(argv)


def config_of(args, job, ranks, backend="shm", virtual=VIRTUAL, kind="ddp", accumulate=1, options=""):
    data = SYNTHETIC.format("1x28x28" if job == "simplenet" else "3x32x32")
    if job == "simplenet" and args.mnist:
        data = f'name = "mnist"\nroot = "{args.mnist}"'
    if job == "resnet18" and args.cifar10:
        data = (f'name = "cifar10"\nroot = "{args.cifar10}"\n'
                'options = { image_size = 32, train = "data_batch_1.bin.gz", test = "test_batch_2000.bin.gz" }')
    return CONFIG.format(ranks=ranks, backend=backend, options=options, kind=kind, virtual=virtual, model=job, data=data,
                         batch=512 if job == "simplenet" else 64, steps=args.steps, accumulate=accumulate)


def hashes_of(args, folder):
    """{job: {"N ranks, BACKEND": hash}}"""
    found = {}
    for job in args.jobs.split(","):
        for backend in args.backends.split(","):
            for ranks in map(int, args.ranks.split(",")):
                summary, _ = train(args.program, config_of(args, job, ranks, backend), folder, LIMIT)
                name = f"{ranks} ranks, {backend}"
                found.setdefault(job, {})[name] = summary["weights.sha256"]
                print(f"{job}, {name}: {summary['weights.sha256'][:16]}, peak memory of a rank "
                      f"{summary['peak_memory_bytes'] / 2 ** 20:.0f} MiB", flush=True)
    return found


def systems_of(args, stack):
    """{system: (its Hosts or None, the settings of its config)}. Each second one is compared with the one before it."""
    systems = {} if args.link else {
        f"one process, {VIRTUAL} micro-batches": (None, {"ranks": 1, "kind": "single", "accumulate": VIRTUAL}),
        f"1 rank, {VIRTUAL} virtual": (None, {"ranks": 1}),
    }
    for ranks in (2, 4):  # two ranks call allreduce; four may exchange
        hosts = stack.enter_context(Hosts(ranks, args.link)) if args.link else None
        for backend in args.backends.split(","):
            settings = {"ranks": 1 if hosts else ranks, "backend": backend,
                        "options": 'options = { tls = "tcp" }' if hosts and backend == "ucx" else ""}
            name = f"{ranks} {'hosts' if hosts else 'ranks'}, {backend}"
            systems[name] = hosts, settings | {"virtual": 0}
            systems[f"{name}, {ranks} virtual"] = hosts, settings | {"virtual": ranks}
    return systems


def costs_of(args, folder):
    """{job: {system: [{"step": seconds, "peak": bytes} of each round]}}"""
    with contextlib.ExitStack() as stack:
        systems = systems_of(args, stack)
        figures = {job: {system: [] for system in systems} for job in args.jobs.split(",")}
        for order in turns(list(systems), args.rounds):
            for job, of_job in figures.items():
                for system in order:
                    hosts, settings = systems[system]
                    summary, steps = train(args.program, config_of(args, job, **settings), folder, LIMIT, hosts)
                    measured = [step["total"] for step in steps[int(len(steps) * WARM):]]
                    of_job[system].append({"step": statistics.median(measured), "peak": summary["peak_memory_bytes"]})
        return figures


class DyingRun:
    """A run whose ranks are killed and stopped at random. Over shm it has one host; otherwise one to three, with a
    launcher each, and hosts die, leave and come back too."""

    def __init__(self, args, job, backend, folder, choice, hosts=None):
        self.program, self.choice = args.program, choice
        self.runs = pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.temporary = self.runs / "tmp"
        self.temporary.mkdir(mode=0o700)
        self.in_shm = set(os.listdir("/dev/shm"))
        self.ranks = 4
        if hosts is None:
            hosts = 1 if backend == "shm" else choice.randint(1, 3)
            self.ranks = choice.randint(3, 5) if hosts == 1 else choice.randint(1, 2)
        self.restarts = choice.randint(0, 1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.lines = []  # (time, line)
        self.launchers, self.readers = [None] * hosts, []
        self.config = self.runs / "bench.toml"
        self.config.write_text(config_of(args, job, self.ranks, backend))
        for host in range(hosts):
            self.start(host)

    def start(self, host):
        argv = [self.program, "--config", self.config, "--nnodes", f"1:{len(self.launchers)}",
                "--max-restarts", str(self.restarts), "--set", "log.every=1",
                "--set", f"experiment.output={self.runs / f'host{host}'}"]
        if len(self.launchers) > 1:
            argv += ["--node-rank", str(host), "--master-addr", "127.0.0.1", "--master-port", str(self.port)]
        environment = dict(os.environ, XDG_RUNTIME_DIR=str(self.temporary), DDPRUN_SECRET="ab" * 32)
        launcher = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        self.launchers[host] = launcher
        self.readers.append(threading.Thread(target=self.read, args=[launcher]))
        self.readers[-1].start()

    def read(self, launcher):
        for line in launcher.stdout:
            self.lines.append((time.monotonic(), line))

    def time_of(self, pattern, after, limit=30):
        """When a line came that matches; None if training has ended."""
        end = time.monotonic() + limit
        while time.monotonic() < end and self.launchers[0].poll() is None:
            for when, line in self.lines[:]:
                if when > after and re.search(pattern, line):
                    return when
            time.sleep(0.002)
        return None

    def ranks_of(self, host):
        pid = self.launchers[host].pid
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return [int(pid) for pid in children
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("ddprun-rank")]
        except OSError:  # one has ended meanwhile
            return []

    def hit(self):
        """Disturbs ranks or a host, but never all ranks. Returns the kind, and the seconds until the others have
        finished the next step."""
        ranks = {host: self.ranks_of(host) for host in range(len(self.launchers))}
        others = [host for host in ranks if host > 0 and ranks[host]]
        kind = self.choice.choices(["kill", "stop", "host", "silent", "leave"], [6, 1, 2, 1, 1])[0]
        begin = time.monotonic()
        try:
            if kind in ("host", "silent", "leave"):
                if not others or len([host for host in ranks if ranks[host]]) < 2:
                    return None
                host = self.choice.choice(others)
                launcher = self.launchers[host]
                for pid in ranks[host] if kind == "silent" else []:
                    os.kill(pid, signal.SIGSTOP)
                launcher.send_signal({"host": signal.SIGKILL, "silent": signal.SIGSTOP, "leave": signal.SIGUSR1}[kind])
            else:
                every = [pid for pids in ranks.values() for pid in pids]
                if len(every) < 3:
                    return None
                for pid in self.choice.sample(every, self.choice.randint(1, 2)):
                    os.kill(pid, signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
        except ProcessLookupError:
            return None
        went_on = self.time_of("go(es)? on after step", begin)
        went_on = went_on and self.time_of(r"epoch \d+ \[", went_on)
        if kind in ("host", "silent", "leave"):
            for pid in ranks[host]:
                silence(pid)
            launcher.kill()
            launcher.wait()
            if self.choice.random() < 0.5:
                self.start(host)
        return kind, went_on - begin if went_on else None

    def end(self, limit):
        """Its exit code, the hash of its weights, and what it has left behind."""
        try:
            code = self.launchers[0].wait(limit)
        except subprocess.TimeoutExpired:
            code = "hangs"
        for launcher in self.launchers:  # a host may have come back too late
            try:
                launcher.wait(0 if code == "hangs" else 5)
            except subprocess.TimeoutExpired:
                launcher.kill()
        for reader in self.readers:
            reader.join()
        left = [*os.listdir(self.temporary), *(set(os.listdir("/dev/shm")) - self.in_shm), *processes_of(self.config)]
        summaries = list(self.runs.glob("*/*/summary.json"))
        digest = json.loads(summaries[0].read_text())["weights.sha256"] if code == 0 and summaries else None
        return code, digest, left


def silence(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def processes_of(config):
    """What still runs with this config, after a moment."""
    for attempt in range(20):
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(config) in entry.read_text().split("\0"):
                    found.append(f"process {entry.parent.name}")
            except OSError:
                pass
        if not found:
            break
        time.sleep(0.1)
    return found


def deaths_of(args, folder, hashes):
    """{job: {"runs": N, "all died": N, "wrong": [...], "pauses": {kind: [seconds]}}}. A right run has the exit code 0
    and the common hash, and leaves nothing."""
    found = {}
    choice = random.Random(args.seed)
    for job in args.jobs.split(","):
        of_job = found[job] = {"runs": 0, "all died": 0, "wrong": [], "pauses": {}}
        for number in range(args.deaths):
            for backend in args.backends.split(","):
                run = DyingRun(args, job, backend, folder, choice)
                run.time_of(r"epoch 1 \[", 0)
                hits = []
                for _ in range(choice.randint(1, 3)):
                    time.sleep(choice.random() * 0.3)
                    hits.append(run.hit())
                code, digest, left = run.end(LIMIT)
                all_died = any("all ranks that had the state" in line for _, line in run.lines)
                if all_died and code not in (0, "hangs") and not left:
                    of_job["all died"] += 1  # a rank that is started again has no state yet
                    continue
                of_job["runs"] += 1
                for kind, pause in filter(None, hits):
                    if pause is not None:
                        of_job["pauses"].setdefault(kind, []).append(pause)
                if code != 0 or digest not in hashes[job].values() or left:
                    of_job["wrong"].append({"backend": backend, "number": number, "code": code, "hash": digest,
                                            "left": left, "hits": hits, "hosts": len(run.launchers),
                                            "output": [line for _, line in run.lines if "ddprun: " in line][-30:]})
                    print(f"{job}, {backend}, run {number}: exit code {code}, {digest}, {left}", file=sys.stderr)
    return found


def pause_of_ddprun(args, folder):
    """Seconds from the death of a rank until the others have finished the next step, and the lost steps."""
    run = DyingRun(args, "simplenet", "gloo", folder, random.Random(args.seed), hosts=1)
    run.time_of(r"epoch 1 \[", 0)
    time.sleep(0.3)
    begin = time.monotonic()
    os.kill(run.ranks_of(0)[1], signal.SIGKILL)
    went_on = run.time_of("go on after step", begin)
    end = went_on and run.time_of(r"epoch \d+ \[", went_on)
    run.end(LIMIT)
    if not end:
        raise Failed("the training ended before the death: use more --steps")
    return end - begin, 0


def pause_of_torchrun(args, folder):
    checkpoint = folder / "torchrun.pt"
    checkpoint.unlink(missing_ok=True)
    argv = [args.python, "-m", "torch.distributed.run", "--nproc-per-node=4", "--max-restarts=1",
            "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", PEER, checkpoint]
    # Of torch 2.11: with the agent's store, ranks that are started again find the addresses of the dead ones, and fail.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                                "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as job:
        processes, killed, last, pause = [], 0, 0, None
        for line in job.stdout:
            kind, _, number = line.partition(" ")
            if kind == "pid":
                processes.append(int(number))
            elif killed == 0:
                last = int(number)
                if last == 150:
                    killed = time.monotonic()
                    os.kill(processes[1], signal.SIGKILL)
            elif len(processes) > 4:  # started again
                pause = time.monotonic() - killed
                break
            else:
                last = int(number)
        job.terminate()
    if pause is None:
        raise Failed("torchrun has not gone on after the death of a rank")
    return pause, last + 1 - int(number)


def print_pauses(pauses):
    for system, of_system in pauses.items():
        seconds, lost = zip(*of_system)
        print(f"{system}: {len(seconds)} deaths of a rank of four; seconds until the others have finished a step: "
              f"median {statistics.median(seconds):.3f}, longest {max(seconds):.3f}; "
              f"{statistics.median(lost):.0f} steps lost")


def print_deaths(found):
    for job, of_job in found.items():
        print(f"{job}: {of_job['runs']} runs with deaths, {len(of_job['wrong'])} of them wrong; "
              f"in {of_job['all died']} others, all ranks with a state died")
        for kind, pauses in of_job["pauses"].items():
            if len(pauses) > 1:
                cuts = statistics.quantiles(pauses, n=100, method="inclusive")
                print(f"  {kind}: {len(pauses)} times, seconds until the next finished step: median {cuts[49]:.3f}, "
                      f"p99 {cuts[98]:.3f}, longest {max(pauses):.3f}")


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
    if reason := args.link and why_not(args.link):
        print(f"elastic.py: skipped: {reason}", file=sys.stderr)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        try:
            hashes = hashes_of(args, folder)
            deaths = deaths_of(args, folder, hashes)
            costs = costs_of(args, folder) if args.rounds > 0 else {}
            systems = {"ddprun": pause_of_ddprun, "torchrun": pause_of_torchrun}
            pauses = {system: [] for system in systems}
            for order in turns(list(systems), max(args.rounds, 1)) if args.python else []:
                for system in order:
                    pauses[system].append(systems[system](args, folder))
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
    if args.python:
        print_pauses(pauses)
    if args.json:
        document = {"ddprun_elastic": 1, "command": sys.argv, "settings": vars(args), "hashes": hashes,
                    "deaths": deaths, "costs": costs, "pauses": pauses}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")
    return GATE if differ or any(of_job["wrong"] for of_job in deaths.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
