"""What the benchmarks have in common: options, and exit codes."""

import argparse

from namespaces import is_rate

GATE = 6
SKIPPED = 77  # the exit code where this machine cannot run the benchmark
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text):
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    size = int(number) * unit if number.isdecimal() else 0
    if size < 4 or size % 4:
        raise argparse.ArgumentTypeError(f"{text}: expected a multiple of 4 bytes, such as 4, 64K, 1M or 2G")
    return size


def rate_of(text):
    if not is_rate(text):
        raise argparse.ArgumentTypeError(f"{text}: expected a rate of tc, such as 1gbit or 100mbit")
    return text


def text_of(size):
    unit = next((unit for unit in reversed(UNITS) if size % UNITS[unit] == 0), None)
    return f"{size // UNITS[unit]} {unit}iB" if unit else f"{size} B"


def list_of(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def parser_of(description, backends, peers, sizes, samples, warmup):
    """`backends` and `sizes` as a user writes them; `peers` is a list."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--backends", type=list_of(str), default=list_of(str)(backends), metavar="NAME[:ALGORITHM],...",
                        help=f"ddprun's plugins to measure ({backends})")
    parser.add_argument("--option", action="append", default=[], metavar="BACKEND.KEY=VALUE",
                        help="an option of a plugin, as --option of ddprun bench; may be repeated")
    parser.add_argument("--plugin-path", action="append", default=[], metavar="DIR",
                        help="a folder of plugins, as --plugin-path of ddprun bench; may be repeated")
    parser.add_argument("--peers", type=list_of(str), default=peers, metavar="NAME,...",
                        help=f"the other systems to measure ({','.join(peers)})")
    parser.add_argument("--mpi", nargs=3, action="append", default=[], metavar=("NAME", "COMPILER", "LAUNCHER"),
                        help="another MPI, such as: mpich mpicxx.mpich mpiexec.mpich")
    parser.add_argument("--sizes", type=list_of(bytes_of), default=list_of(bytes_of)(sizes), metavar="SIZE,...",
                        help=f"the sizes of the vectors ({sizes})")
    parser.add_argument("--rounds", type=int, default=5, metavar="N",
                        help="the number of rounds; each runs all systems once (5)")
    parser.add_argument("-n", "--samples", type=int, default=samples,
                        metavar="N",
                        help=f"the number of samples of each size in each round ({samples})")
    parser.add_argument("-w", "--warmup", type=int, default=warmup, metavar="N",
                        help=f"the number of warm-up calls before the samples ({warmup})")
    parser.add_argument("--quick", action="store_true", help="3 sizes, 2 rounds of 5 samples, to check that it runs")
    parser.add_argument("--gate", action="store_true", help=f"exit with {GATE} if a bound is missed")
    parser.add_argument("--json", metavar="FILE", help="write all samples and the environment to this file")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS",
                        help="the time limit of a system in a round (300)")
    return parser


def parse(parser, argv, peers, count, **quick):
    """`count`: the option with the numbers of ranks. `quick`: the defaults that --quick changes besides the common."""
    if "--quick" in argv:
        parser.set_defaults(sizes=[4, 1 << 16, 1 << 20], rounds=2, samples=5, warmup=2, **quick)
    args = parser.parse_args(argv)
    if unknown := set(args.peers) - set(peers):
        parser.error(f"--peers {','.join(sorted(unknown))}: expected some of {','.join(peers)}")
    if min(args.rounds, args.samples) < 1 or args.warmup < 0 or min(getattr(args, count)) < 2:
        parser.error(f"expected --rounds and -n from 1, -w from 0, --{count} from 2")
    args.sizes = sorted(set(args.sizes))
    return args
