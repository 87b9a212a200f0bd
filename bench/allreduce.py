#!/usr/bin/env python3
"""Compares an allreduce on one host: ddprun's plugins, other systems, and its minimum cost, in alternating runs.

    python3 bench/allreduce.py --program build/release/bin/ddprun --python PYTHON --json allreduce.json

PYTHON is a Python with torch. Open MPI is searched on PATH, libgloo in the system. A peer that is not installed is
skipped, and a line reports it. bench/README.md explains the tables; docs/benchmarking.md how a call is timed.
"""

import argparse
import json
import pathlib
import shlex
import sys
import tempfile

import contenders
from comparison import Table, bounds_for
from running import Failed, turns

SIZES = "4,1K,16K,64K,256K,1M,4M,16M,45M"
BACKENDS = "shm,ucx,gloo:ring,gloo:halving_doubling"
PEERS = ["limits", "openmpi", "torch", "raw_gloo"]  # limits are skipped with --tcp
GATE = 6
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def say(text):
    print(f"allreduce.py: {text}", file=sys.stderr, flush=True)


def bytes_of(text):
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    size = int(number) * unit if number.isdecimal() else 0
    if size < 4 or size % 4:
        raise argparse.ArgumentTypeError(f"{text}: expected a multiple of 4 bytes, such as 4, 64K, 1M or 2G")
    return size


def text_of(size):
    unit = next((unit for unit in reversed(UNITS) if size % UNITS[unit] == 0), None)
    return f"{size // UNITS[unit]} {unit}iB" if unit else f"{size} B"


def list_of(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--python", help="a Python with torch, for the peer torch")
    parser.add_argument("--backends", type=list_of(str), default=list_of(str)(BACKENDS), metavar="NAME[:ALGORITHM],...",
                        help=f"ddprun's plugins ({BACKENDS})")
    parser.add_argument("--option", action="append", default=[], metavar="BACKEND.KEY=VALUE", help="as of ddprun bench")
    parser.add_argument("--plugin-path", action="append", default=[], metavar="DIR", help="as of ddprun bench")
    parser.add_argument("--peers", type=list_of(str), default=PEERS, metavar="NAME,...", help=",".join(PEERS))
    parser.add_argument("--mpi", nargs=3, action="append", default=[], metavar=("NAME", "COMPILER", "LAUNCHER"),
                        help="another MPI, such as: mpich mpicxx.mpich mpiexec.mpich")
    parser.add_argument("--ranks", type=list_of(int), default=[2, 4], metavar="N,...", help="2,4")
    parser.add_argument("--sizes", type=list_of(bytes_of), default=list_of(bytes_of)(SIZES), metavar="SIZE,...",
                        help=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-n", "--samples", type=int, default=50, help="samples of each size in each round (50)")
    parser.add_argument("-w", "--warmup", type=int, default=10, help="warm-up calls (10)")
    parser.add_argument("--quick", action="store_true", help="3 sizes, 2 rounds of 5 samples, to check that it runs")
    parser.add_argument("--tcp", action="store_true", help="ucx and Open MPI over TCP, without shm")
    parser.add_argument("--gate", action="store_true", help=f"exit with {GATE} if a bound is missed")
    parser.add_argument("--json", metavar="FILE", help="write all samples and the environment")
    parser.add_argument("--limit", type=float, default=300, help="time limit of a system in a round in seconds (300)")
    if "--quick" in argv:
        parser.set_defaults(ranks=[2], sizes=[4, 1 << 16, 1 << 20], rounds=2, samples=5, warmup=2)
    args = parser.parse_args(argv)
    if unknown := set(args.peers) - set(PEERS):
        parser.error(f"--peers {','.join(sorted(unknown))}: expected some of {','.join(PEERS)}")
    if min(args.rounds, args.samples) < 1 or args.warmup < 0 or min(args.ranks) < 2:
        parser.error("expected --rounds and -n from 1, -w from 0, --ranks from 2")
    args.sizes = sorted(set(args.sizes))
    return args


def own_of(args, settings):
    """The plugins of ddprun."""
    more = [word for path in args.plugin_path for word in ("--plugin-path", path)]
    for name in args.backends:
        backend, _, algorithm = name.partition(":")
        if args.tcp and backend == "shm":
            continue
        options = [option for option in args.option if option.startswith(f"{backend}.")]
        if args.tcp and backend == "ucx":
            options.append("ucx.tls=tcp")
        words = [word for option in options for word in ("--option", option)]
        yield contenders.Ddprun(settings, args.program, backend, algorithm or "auto", words + more)


def peers_of(args, settings):
    makers = {"limits": lambda: contenders.limits(settings),
              "openmpi": lambda: contenders.mpi(settings, "openmpi", ["mpicxx.openmpi"], ["mpirun.openmpi"]),
              "torch": lambda: contenders.torch_gloo(settings, args.python),
              "raw_gloo": lambda: contenders.raw_gloo(settings)}
    makers = {name: makers[name] for name in args.peers if not (args.tcp and name == "limits")}
    for name, compiler, launcher in args.mpi:
        makers[name] = lambda name=name, words=(shlex.split(compiler), shlex.split(launcher)): contenders.mpi(
            settings, name, *words)
    for name, make in makers.items():
        try:
            yield from make()
        except contenders.Absent as reason:
            say(f"skipped: {name}: {reason}")


def measure(args, own, peers):
    contestants, found, columns = own + peers, [], set()
    for ranks in args.ranks:
        able = [contender for contender in contestants if ranks <= contender.most_ranks]
        for contender in contestants:
            if contender not in able:
                say(f"skipped: {contender.name} with {ranks} ranks: more than cores")
        for number, order in enumerate(turns(able, args.rounds)):
            for contender in order:
                say(f"{ranks} ranks, round {number + 1} of {args.rounds}: {contender.name}")
                for column, *case in contender.measure(ranks):
                    found.append((contestants.index(contender), ranks, column, *case))
                    if contender in own:
                        columns.add(column)
    table = Table(columns)
    for _, *case in sorted(found, key=lambda each: each[0]):  # columns in the order of the contestants
        table.add(*case)
    return table


def figure(value):
    return "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def print_grid(title, header, rows):
    rows = [header, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    print(f"\n{title}")
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)))


def print_tables(table, ranks, args):
    columns, sizes = table.columns(ranks), table.sizes(ranks)

    def time(column, size):
        cell = table.cell(ranks, column, size)
        return f"{figure(cell.median() * 1e6)} ({cell.spread():.0%})"
    over = " over TCP" if args.tcp else ""
    print_grid(f"{ranks} ranks{over}: us per float32 sum allreduce, in place; median of {args.rounds} rounds "
               "(their range)", ["size", *columns],
               [[text_of(size), *(time(column, size) for column in columns)] for size in sizes])

    wanted = [("shm plugin", "limit shared"), ("shm malloc", "limit staged"), ("best peer", "shm plugin"),
              ("best peer", "shm malloc"), ("ucx malloc", "shm malloc"), ("gloo ring", "raw gloo ring"),
              ("gloo halving_doubling", "raw gloo hd")]
    available = {*columns, *(["best peer"] if table.best_peer(ranks, sizes[0]) else [])}
    wanted = [pair for pair in wanted if available.issuperset(pair)]
    print_grid(f"{ranks} ranks{over}: ratios of time, median of the rounds",
               ["size", *(f"{above} / {below}" for above, below in wanted), "best peer"],
               [[text_of(size), *(figure(table.ratio(ranks, *pair, size)) for pair in wanted),
                 table.best_peer(ranks, size) or "-"] for size in sizes])


def judge(table, args):
    """Prints which bounds hold; returns whether all do."""
    print("\nbounds")
    holds = True
    for bound in bounds_for(args.tcp, args.ranks):
        values, missed = bound.judge(table)
        scale = 1 if bound.below else 1e6
        shown = ", ".join(f"{text_of(size)}: {figure(value if value is None else value * scale)}"
                          for size, value in (missed or values).items())
        print(f"  {'MISSED' if missed else 'holds ' if values else 'no size'}  {bound.text()}   {shown}")
        holds = holds and bool(values) and not missed
    return holds


def environment_of(own):
    """The environment from `ddprun bench`, with all plugins; load and date are those of the first one."""
    return {key: value for each in reversed(own) for key, value in each.environment.items()}


def write_json(path, args, table, own, peers):
    document = {
        "ddprun_allreduce": 1, "command": sys.argv, "environment": environment_of(own),
        "libraries": {peer.name: peer.library for peer in peers},
        "settings": {"rounds": args.rounds, "samples": args.samples, "warmup": args.warmup, "tcp": args.tcp},
        "results": [{"ranks": ranks, "column": column, "size": size, "median": cell.median(), "spread": cell.spread(),
                     "wrong": cell.wrong, "rounds": cell.rounds}
                    for (ranks, column, size), cell in table.cells.items()],
        "bounds": [{"bound": bound.text(), "values": bound.judge(table)[0], "missed": list(bound.judge(table)[1])}
                   for bound in bounds_for(args.tcp, args.ranks)]}
    pathlib.Path(path).write_text(json.dumps(document, indent=1) + "\n")


def main(argv):
    args = arguments(argv)
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-") as folder:
        settings = contenders.Settings(args.sizes, args.samples, args.warmup, args.limit, args.tcp,
                                       pathlib.Path(folder))
        own, peers = list(own_of(args, settings)), list(peers_of(args, settings))
        try:
            table = measure(args, own, peers)
        except Failed as error:
            say(error)
            return error.code
    environment = environment_of(own)
    print("# {host}: {cpu_model}, {cores} cores, load {load}".format_map(environment))
    for peer in peers:
        if peer.library:
            print(f"# {peer.name}: {peer.library}")
    for ranks in args.ranks:
        print_tables(table, ranks, args)
    holds = judge(table, args)
    if args.json:
        write_json(args.json, args, table, own, peers)
    for ranks, column, size, elements in table.wrong():
        say(f"{column}, {ranks} ranks, {text_of(size)}: {elements} wrong elements")
    return GATE if table.wrong() or (args.gate and not holds) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
