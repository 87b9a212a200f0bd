#!/usr/bin/env python3
"""Compares an allreduce on one host: ddprun's plugins, other systems, and its minimum cost, in alternating runs.

    python3 bench/allreduce.py --program build/release/bin/ddprun --python PYTHON --json allreduce.json

PYTHON is a Python with torch. Open MPI is searched on PATH, libgloo in the system. A peer that is not installed is
skipped, and a line reports it. bench/README.md explains the tables; docs/benchmarking.md how a call is timed.
"""

import json
import pathlib
import sys
import tempfile

import contenders
from comparison import Table, bounds_for
from options import GATE, list_of, parse, parser_of, text_of
from running import Failed
from tables import figure, judge, judged, print_environment, print_grid, print_times, results_of

SIZES = "4,1K,16K,64K,256K,1M,4M,16M,45M"
BACKENDS = "shm,ucx,gloo:ring,gloo:halving_doubling"
PEERS = ["limits", "openmpi", "torch", "raw_gloo"]  # limits are skipped with --tcp


def say(text):
    print(f"allreduce.py: {text}", file=sys.stderr, flush=True)


def arguments(argv):
    parser = parser_of(__doc__, BACKENDS, PEERS, SIZES, samples=50, warmup=10)
    parser.add_argument("--python", help="a Python with torch, for the peer torch")
    parser.add_argument("--ranks", type=list_of(int), default=[2, 4], metavar="N,...",
                        help="the numbers of ranks (2,4)")
    parser.add_argument("--tcp", action="store_true", help="measure ucx and Open MPI over TCP, without shm")
    return parse(parser, argv, PEERS, "ranks", ranks=[2])


def peers_of(args, settings):
    makers = {"limits": lambda: contenders.limits(settings),
              "openmpi": lambda: contenders.mpi(settings, "openmpi", *contenders.OPEN_MPI),
              "torch": lambda: contenders.torch_gloo(settings, args.python),
              "raw_gloo": lambda: contenders.raw_gloo(settings)}
    makers = {name: makers[name] for name in args.peers if not (args.tcp and name == "limits")}
    return contenders.available(makers | contenders.other_mpis(args, settings, contenders.mpi), say)


def print_tables(table, ranks, args):
    columns, sizes = table.columns(ranks), table.sizes(ranks)
    over = " over TCP" if args.tcp else ""
    print_times(f"{ranks} ranks{over}: us per float32 sum allreduce, in place; median of {args.rounds} rounds "
                "(their range)", table, ranks, columns)
    wanted = [("shm plugin", "limit shared"), ("shm malloc", "limit staged"), ("best peer", "shm plugin"),
              ("best peer", "shm malloc"), ("ucx malloc", "shm malloc"), ("gloo ring", "raw gloo ring"),
              ("gloo halving_doubling", "raw gloo hd")]
    available = {*columns, *(["best peer"] if table.best_peer(ranks, sizes[0]) else [])}
    wanted = [pair for pair in wanted if available.issuperset(pair)]
    print_grid(f"{ranks} ranks{over}: ratios of time, median of the rounds",
               ["size", *(f"{above} / {below}" for above, below in wanted), "best peer"],
               [[text_of(size), *(figure(table.ratio(ranks, *pair, size)) for pair in wanted),
                 table.best_peer(ranks, size) or "-"] for size in sizes])


def write_json(path, args, table, own, peers):
    document = {
        "ddprun_allreduce": 1, "command": sys.argv, "environment": contenders.environment_of(own),
        "libraries": {peer.name: peer.library for peer in peers},
        "settings": {"rounds": args.rounds, "samples": args.samples, "warmup": args.warmup, "tcp": args.tcp},
        "results": results_of(table), "bounds": judged(table, bounds_for(args.tcp, args.ranks))}
    pathlib.Path(path).write_text(json.dumps(document, indent=1) + "\n")


def main(argv):
    args = arguments(argv)
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-") as folder:
        settings = contenders.Settings(args.sizes, args.samples, args.warmup, args.limit, args.tcp,
                                       pathlib.Path(folder))
        own = [each for each in contenders.plugins(args, settings) if not (args.tcp and each.backend == "shm")]
        if not own:
            say("--tcp leaves out shm; give another one with --backends")
            return 2
        peers = list(peers_of(args, settings))
        table = Table()
        try:
            for ranks in args.ranks:
                contenders.collect(table, own + peers, ranks, args.rounds, f"{ranks} ranks", say)
        except Failed as error:
            say(error)
            return error.code
    print_environment(contenders.environment_of(own), peers)
    for ranks in args.ranks:
        print_tables(table, ranks, args)
    holds = judge("bounds", table, bounds_for(args.tcp, args.ranks))
    if args.json:
        write_json(args.json, args, table, own, peers)
    for ranks, column, size, elements in table.wrong():
        say(f"{column}, {ranks} ranks, {text_of(size)}: {elements} wrong elements")
    return GATE if table.wrong() or (args.gate and not holds) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
