"""Computes medians, ratios and bounds from samples. No input, no output."""

import dataclasses
import math
import statistics

KIB = 1024
MIB = KIB * KIB
LIMITS = ("limit shared", "limit staged", "limit iperf3", "limit ucx_perftest")
LEVEL = 0.95


def ratios_of(above, below):
    """Round by round: a slow minute of the machine affects both values of a round."""
    return [a / b for a, b in zip(above, below, strict=True)]


def ratio_of(above, below):
    """The median of the rounds' ratios."""
    return statistics.median(ratios_of(above, below))


def interval_of(values):
    """Two of the values, between which the median of their distribution lies with a probability of at least LEVEL,
    whatever the distribution. Fewer than 6 values cannot say that: then it is their range."""
    values, count = sorted(values), len(values)
    for low in range((count - 1) // 2, -1, -1):
        outside = 2 * sum(math.comb(count, below) for below in range(low + 1)) / 2 ** count
        if 1 - outside >= LEVEL:
            return values[low], values[-1 - low]
    return values[0], values[-1]


def bus_bytes(ranks, size):
    """What each rank sends at least in an allreduce of `size` bytes: divided by the time it is busbw."""
    return 2 * (ranks - 1) / ranks * size


@dataclasses.dataclass
class Measured:
    """One column at one size: the samples of each round, in seconds per call."""
    rounds: list  # of {"batch": int, "samples": [float]}
    wrong: int = 0

    def medians(self):
        return [statistics.median(each["samples"]) for each in self.rounds]

    def median(self):
        return statistics.median(self.medians())

    def spread(self):
        """The range of the rounds' medians, relative to the median."""
        medians = self.medians()
        return (max(medians) - min(medians)) / self.median()


class Table:
    """All measurements, by ranks, column and size."""

    def __init__(self, own=()):
        """`own`: ddprun's columns. The others are peers or limits."""
        self.own = set(own)
        self.cells = {}

    def add(self, ranks, column, size, samples, batch, wrong):
        cell = self.cells.setdefault((ranks, column, size), Measured([]))
        cell.rounds.append({"batch": batch, "samples": samples})
        cell.wrong += wrong

    def cell(self, ranks, column, size):
        return self.cells.get((ranks, column, size))

    def columns(self, ranks):
        return list(dict.fromkeys(column for of, column, _ in self.cells if of == ranks))

    def sizes(self, ranks):
        return sorted({size for of, _, size in self.cells if of == ranks})

    def wrong(self):
        """(ranks, column, size, elements) of each wrong result."""
        return [(*key, cell.wrong) for key, cell in self.cells.items() if cell.wrong]

    def best_peer(self, ranks, size):
        """The column of the fastest peer; None without peers."""
        return self.fastest(ranks, size, lambda column: column not in self.own and column not in LIMITS)

    def best_own(self, ranks, size):
        """The column of ddprun's fastest; None without any."""
        return self.fastest(ranks, size, lambda column: column in self.own)

    def fastest(self, ranks, size, is_meant):
        measured = [column for column in self.columns(ranks) if is_meant(column) and self.cell(ranks, column, size)]
        return min(measured, key=lambda column: self.cell(ranks, column, size).median(), default=None)

    def ratios(self, ranks, above, below, size):
        """The times of `above` divided by those of `below`, by round. Besides columns, "best peer", "best ddprun" and
        "best NAME" are valid: the fastest column whose first words are NAME. None if one was not measured."""
        cells = [self.cell(ranks, self.meant(ranks, column, size), size) for column in (above, below)]
        if None in cells:
            return None
        return ratios_of(*(cell.medians() for cell in cells))

    def meant(self, ranks, column, size):
        if column == "best peer":
            return self.best_peer(ranks, size)
        if column == "best ddprun":
            return self.best_own(ranks, size)
        if column.startswith("best "):
            name = column.removeprefix("best ")
            return self.fastest(ranks, size, lambda one: one == name or one.startswith(f"{name} "))
        return column

    def ratio(self, ranks, above, below, size):
        """The median of ratios()."""
        ratios = self.ratios(ranks, above, below, size)
        return statistics.median(ratios) if ratios else None


@dataclasses.dataclass
class Bound:
    """`above`, as a multiple of `below` (without it: in seconds), is at most `most` at these sizes, and at least
    `least`."""
    ranks: int
    above: str
    below: str | None
    most: float
    least_size: int = 0
    largest_size: float = math.inf
    least: float = 0

    def text(self):
        if self.most == math.inf:
            return f"{self.ranks} ranks: {self.above} / {self.below} >= {self.least:.3g}"
        if self.below:
            return f"{self.ranks} ranks: {self.above} / {self.below} <= {self.most:g}"
        return f"{self.ranks} ranks: {self.above} <= {self.most * 1e6:g} us"

    def value(self, table, size):
        if self.below:
            return table.ratio(self.ranks, self.above, self.below, size)
        cell = table.cell(self.ranks, self.above, size)
        return cell.median() if cell else None

    def judge(self, table):
        """{size: value} for the bound's sizes, and the part that misses it. None (not measured) counts as missed."""
        sizes = [size for size in table.sizes(self.ranks) if self.least_size <= size <= self.largest_size]
        values = {size: self.value(table, size) for size in sizes}
        return values, {size: value for size, value in values.items()
                        if value is None or not self.least <= value <= self.most}


SHARED_BOUNDS = [
    Bound(2, "shm plugin", "limit shared", 1.5, 64 * KIB),
    Bound(2, "shm plugin", "best peer", 0.5, 64 * KIB),
    Bound(2, "shm plugin", None, 1e-6, 0, KIB),
    Bound(2, "shm malloc", "limit staged", 1.3, 64 * KIB),
    Bound(2, "gloo ring", "raw gloo ring", 1.03),
    Bound(4, "shm plugin", "best peer", 1),
    Bound(4, "shm malloc", "best peer", 1),
]


def tcp_bounds(ranks):
    return [Bound(of, f"ucx {buffer}", "openmpi", 1) for of in ranks for buffer in ("plugin", "malloc")]


def bounds_for(tcp, ranks):
    return tcp_bounds(ranks) if tcp else [bound for bound in SHARED_BOUNDS if bound.ranks in ranks]


def network_bounds(ranks, share, backends, peers):
    """`share`: of iperf3's rate. `backends` and `peers`: those that are measured."""
    bounds = [Bound(ranks, "best ddprun", "best peer", 1),
              Bound(ranks, "limit iperf3", "best ddprun", math.inf, MIB, least=share)]
    if "ucx" in backends:
        bounds.append(Bound(ranks, "best ucx", "best peer", 1))
    if "gloo" in backends and "gloo" in peers:
        bounds.append(Bound(ranks, "best gloo", "best raw gloo", 1))
    return bounds
