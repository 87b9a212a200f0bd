"""Computes medians, ratios and bounds from samples. No input, no output."""

import dataclasses
import statistics

KIB = 1024
LIMITS = ("limit shared", "limit staged")


def ratio_of(above, below):
    """The median of the rounds' ratios: a slow minute of the machine affects both values of a round."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


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

    def __init__(self, own):
        """`own`: ddprun's columns. The others are peers or limits."""
        self.own = own
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
        peers = [column for column in self.columns(ranks) if column not in self.own and column not in LIMITS]
        measured = [column for column in peers if self.cell(ranks, column, size)]
        return min(measured, key=lambda column: self.cell(ranks, column, size).median(), default=None)

    def ratio(self, ranks, above, below, size):
        """The time of `above` divided by that of `below`; "best peer" is valid too. None if one was not measured."""
        cells = []
        for column in (above, below):
            column = self.best_peer(ranks, size) if column == "best peer" else column
            cells.append(self.cell(ranks, column, size))
        if None in cells:
            return None
        return ratio_of(*(cell.medians() for cell in cells))


@dataclasses.dataclass
class Bound:
    """`above`, as a multiple of `below` (without it: in seconds), is at most `most` at these sizes."""
    ranks: int
    above: str
    below: str | None
    most: float
    least_size: int = 0
    largest_size: float = float("inf")

    def text(self):
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
        return values, {size: value for size, value in values.items() if value is None or value > self.most}


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
