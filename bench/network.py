#!/usr/bin/env python3
"""Compares an allreduce between hosts over TCP: ddprun's plugins and other systems, in alternating runs. Each host is a
network namespace of this machine. As root:

    python3 bench/network.py --program build/release/bin/ddprun --json network.json

Open MPI, MPICH and iperf3 are searched on PATH, libgloo in the system, ucx_perftest in DDPRUN_UCX_DIR/bin, or on PATH
without this variable. A peer that is not installed is skipped, and a line reports it. bench/README.md explains the
tables; docs/benchmarking.md how a call is timed.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import contenders
import network_contenders
from comparison import LEVEL, Table, bus_bytes, interval_of, network_bounds
from namespaces import Hosts, is_rate, why_not
from network_contenders import Iperf3, Limit
from options import GATE, SKIPPED, list_of, parse, parser_of, text_of
from running import Failed
from tables import figure, judge, judged, print_environment, print_grid, print_times, results_of

SIZES = "4,64,1K,4K,16K,64K,256K,1M,4M,16M,64M"
BACKENDS = "ucx:auto,ucx:ring,ucx:tree,gloo:auto"
PEERS = ["openmpi", "mpich", "gloo", "iperf3", "ucx_perftest"]
LINKS = "unlimited,10gbit,1gbit"


def say(text):
    print(f"network.py: {text}", file=sys.stderr, flush=True)


def link_of(text):
    if text != "unlimited" and not is_rate(text):
        raise argparse.ArgumentTypeError(f"{text}: expected unlimited, or a rate of tc, such as 10gbit or 100mbit")
    return text


def arguments(argv):
    parser = parser_of(__doc__, BACKENDS, PEERS, SIZES, samples=20, warmup=5)
    parser.add_argument("--hosts", type=list_of(int), default=[2, 3], metavar="N,...",
                        help="the numbers of hosts (2,3)")
    parser.add_argument("--ranks-per-host", type=int, default=1, metavar="K",
                        help="the number of ranks on each host (1); with several, `hierarchical` can be measured")
    parser.add_argument("--link", type=list_of(link_of), default=list_of(link_of)(LINKS), metavar="RATE,...",
                        help=f"what each host can send and receive ({LINKS})")
    parser.add_argument("--limit-time", type=int, default=3, metavar="SECONDS",
                        help="the time of each measurement of iperf3 (two in a round) and ucx_perftest (3)")
    args = parse(parser, argv, PEERS, "hosts", hosts=[2], link=["unlimited"], limit_time=1)
    if args.ranks_per_host < 1:
        parser.error("expected --ranks-per-host from 1")
    return args


def peers_of(args, settings):
    of = network_contenders
    makers = {"openmpi": lambda: of.mpi(settings, "openmpi", *contenders.OPEN_MPI),
              "mpich": lambda: of.mpi(settings, "mpich", *of.MPICH),
              "gloo": lambda: of.raw_gloo(settings),
              "iperf3": lambda: of.iperf3(settings, args.limit_time),
              "ucx_perftest": lambda: of.ucx_perftest(settings, args.limit_time)}
    makers = {name: makers[name] for name in args.peers}
    return contenders.available(makers | contenders.other_mpis(args, settings, of.mpi), say)


def over_link(contender, hosts):
    """Its cases, if what they sent has passed the link."""
    before = hosts.received(0)
    cases = list(contender.measure(hosts))
    received = hosts.received(0) - before
    hosts.end_all()  # MPI's launchers end before what they have started on the hosts
    # A rank that knows the sum has received at least as many bytes as it has.
    least = sum(size * batch * len(samples) for _, size, samples, batch, _ in cases)
    if not isinstance(contender, Limit) and received < least:
        raise Failed(f"{contender.name}: host 0 has received {received} bytes over its link instead of at least "
                     f"{least}: this is not TCP between the hosts")
    return cases


class Place:
    """What was measured between so many hosts over such a link."""

    def __init__(self, hosts, link, ranks_per_host, backends=(), peers=()):
        """`backends` and `peers`: the names of those that are measured."""
        self.hosts, self.link, self.ranks_per_host = hosts, link, ranks_per_host
        self.ranks = hosts * ranks_per_host
        several = f" with {ranks_per_host} ranks each" if ranks_per_host > 1 else ""
        self.title = f"{hosts} hosts{several}, link {link}"
        self.table = Table()
        self.bounds = network_bounds(self.ranks, 0.93 if ranks_per_host == 1 else 1 / 1.15, backends, peers)
        self.both_ways = []  # iperf3's rate in each round, in both directions at once

    def measure(self, contestants, rounds):
        rate = None if self.link == "unlimited" else self.link
        with Hosts(self.hosts, rate, ranks_per_host=self.ranks_per_host) as hosts:
            contenders.collect(self.table, contestants, self.ranks, rounds, self.title, say,
                               lambda contender: over_link(contender, hosts))
        for contender in contestants:
            if isinstance(contender, Iperf3):
                self.both_ways, contender.both = contender.both, []

    def rate(self, column, size):
        """What each host sends at least, in bytes per second: busbw, if each has one rank."""
        cell = self.table.cell(self.ranks, column, size)
        return bus_bytes(self.hosts, size) / cell.median() if cell else None

    def summary(self, size):
        """Ours against the others at this size; None for what was not measured."""
        ours, peer = self.table.best_own(self.ranks, size), self.table.best_peer(self.ranks, size)
        ratios = self.table.ratios(self.ranks, "best ddprun", "best peer", size)
        return {"size": size, "ours": ours, "host_rate": self.rate(ours, size), "peer": peer,
                "peer_host_rate": self.rate(peer, size), "ratio": statistics.median(ratios) if ratios else None,
                "interval": interval_of(ratios) if ratios else None,
                "share": self.table.ratio(self.ranks, Iperf3.column, "best ddprun", size)}

    def print(self, rounds):
        columns = [column for column in self.table.columns(self.ranks) if column != Iperf3.column]
        print_times(f"{self.title}: us per float32 sum allreduce, in place; median of {rounds} rounds (their range)",
                    self.table, self.ranks, columns)
        print_grid(f"{self.title}: the fastest of ddprun and of the others; GB/s is what each host sends at least; the "
                   f"ratio is that of the times, median of the rounds [interval of {LEVEL:.0%}, with fewer than 6 rounds "
                   "their range]",
                   ["size", "ddprun", "GB/s", "of iperf3", "peer", "GB/s", "ddprun / peer", ""],
                   [self.row(self.summary(size)) for size in self.table.sizes(self.ranks)])
        if self.both_ways:
            size = self.table.sizes(self.ranks)[0]
            spread = self.table.cell(self.ranks, Iperf3.column, size).spread()
            print(f"iperf3: {figure(self.rate(Iperf3.column, size) / 1e9)} GB/s one way (range {spread:.0%}), "
                  f"{figure(statistics.median(self.both_ways) / 1e9)} GB/s each way at once")

    @staticmethod
    def row(found):
        def gigabytes(rate):
            return figure(rate and rate / 1e9)
        interval = "[{:.3f} .. {:.3f}]".format(*found["interval"]) if found["interval"] else "-"
        return [text_of(found["size"]), found["ours"] or "-", gigabytes(found["host_rate"]), figure(found["share"]),
                found["peer"] or "-", gigabytes(found["peer_host_rate"]), figure(found["ratio"]), interval]

    def document(self):
        """For JSON."""
        results = [each | {"host_rate": self.rate(each["column"], each["size"])} for each in results_of(self.table)]
        return {"hosts": self.hosts, "ranks_per_host": self.ranks_per_host, "link": self.link, "results": results,
                "summary": [self.summary(size) for size in self.table.sizes(self.ranks)],
                "iperf3_both_ways": self.both_ways, "bounds": judged(self.table, self.bounds)}


def write_json(path, args, places, own, peers):
    document = {"ddprun_network": 1, "command": sys.argv, "environment": contenders.environment_of(own),
                "libraries": {peer.name: peer.library for peer in peers},
                "settings": {"rounds": args.rounds, "samples": args.samples, "warmup": args.warmup},
                "places": [place.document() for place in places]}
    pathlib.Path(path).write_text(json.dumps(document, indent=1) + "\n")


def measure(args, settings):
    """All places, with ddprun's plugins and the peers. Raises Failed."""
    own = list(contenders.plugins(args, settings, network_contenders.Ddprun))
    peers = list(peers_of(args, settings))
    backends = [name.split(":")[0] for name in args.backends]
    places = [Place(hosts, link, args.ranks_per_host, backends, args.peers)
              for link in args.link for hosts in args.hosts]
    for place in places:
        try:
            place.measure(own + peers, args.rounds)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise Failed(f"{place.title}: {error}") from None
    return places, own, peers


def report(args, places, own, peers):
    print_environment(contenders.environment_of(own), peers)
    for place in places:
        place.print(args.rounds)
    holds = [judge(f"bounds, {place.title}", place.table, place.bounds) for place in places]
    if args.json:
        write_json(args.json, args, places, own, peers)
    wrong = [(place, *each) for place in places for each in place.table.wrong()]
    for place, _, column, size, elements in wrong:
        say(f"{column}, {place.title}, {text_of(size)}: {elements} wrong elements")
    return GATE if wrong or (args.gate and not all(holds)) else 0


def main(argv):
    args = arguments(argv)
    rates = [link for link in args.link if link != "unlimited"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that everything is cleaned up
    if reason := "needs root" if os.geteuid() != 0 else why_not(rates[0] if rates else None):
        say(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="ddprun-bench-", ignore_cleanup_errors=True) as folder:
        settings = contenders.Settings(args.sizes, args.samples, args.warmup, args.limit, True, pathlib.Path(folder))
        try:
            return report(args, *measure(args, settings))
        except Failed as error:
            say(error)
            return error.code
        except KeyboardInterrupt:
            say("interrupted")
            return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
