"""The fault matrix: rows, trials and the table. tests/faults/run runs it; docs/reliability.md shows its table.

A row is one fault. Each file in rows/ has a list ROWS of them:

    def trial(place, backend, rng):             # one fault in a new Place; rng is random.Random
        job = place.train(f"comm.backend={backend}")        # place.TRAINING, with --set; see place.py
        job.wait_for_step(3)
        victim = job.ranks(3)[1]
        fault = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        return ended(place, job, fault, rank=1, cause="killed by signal 9", code=5)

    ROWS = [Row("SIGKILL of a rank", "exit 5; rank and signal named", 0.5, trial, quick=1, full=50)]

ended() waits for the end of the job, and compares its last line and its exit code with what the row expects. A trial
may also make its Outcome itself: all times are seconds from the fault. A trial that cannot run here raises
Skip("reason"). Whatever else it raises is a failed trial. The harness makes and removes the Place, and ends the
processes that are left in it. A row keeps its bounds if the 99th percentiles do.
"""

import dataclasses
import datetime
import math
import os
import random
import re
import time
import typing
import zlib

import private
from place import FAILED, TRAINING, Deadline, Job, Place, is_alive, rank_of, wait_until  # noqa: F401, for rows

ALL = ("gloo", "shm", "ucx")
ANY = ("any",)  # for a row that no backend takes part in: its trial gets "any"


class Skip(Exception):
    """This row cannot run here; the text says why."""


@dataclasses.dataclass
class Outcome:
    end: float | None = None  # seconds from the fault until no process of the job is left; None: not measured
    detect: float | None = None  # seconds from the fault until the first line that names it; None: not measured
    rank: bool = True  # the right rank is named, or the row has none
    cause: bool = True  # the right cause is named
    code: bool = True  # the exit code is right
    commit: bool = True  # the checkpoints load, or the row has none
    left: list = dataclasses.field(default_factory=list)  # what is left behind
    note: str = ""  # what is wrong, for the reader

    @property
    def named(self):
        return self.rank and self.cause and self.code

    def problems(self):
        checks = {"rank": self.rank, "cause": self.cause, "exit code": self.code, "checkpoint": self.commit}
        return [f"wrong {name}" for name, good in checks.items() if not good] + [f"left: {x}" for x in self.left]


@dataclasses.dataclass
class Row:
    name: str  # the fault, in words of the first column of the table
    expected: str  # what the user sees
    bound: float | None  # seconds for Outcome.end
    trial: typing.Callable
    detect: float | None = None  # seconds for Outcome.detect
    backends: tuple = ALL
    quick: int = 1  # trials for each backend with --quick; 0: not with --quick
    full: int | dict = 20  # without --quick; or {backend: trials}, where "other" stands for the backends it lacks

    def trials(self, backend, share=1.0):
        """Of a full run, or of a share of one."""
        full = self.full if isinstance(self.full, int) else self.full.get(backend, self.full.get("other"))
        return max(1, round(full * share))


def ended(place, job, fault, *, rank=None, cause="", code=5, limit=60, detect=None, killed=()):
    """Waits for the end of a job that must fail. rank: the culprit's number, or several right ones; None: the last
    line names no rank. cause: a regular expression for the cause in the last line. detect: one for the first line
    that names the fault; without one, the last line counts. code: the right exit code, or several. killed: pids whose
    unfinished checkpoints may stay (Place.left)."""
    left_code = job.wait(limit)
    gone = place.all_gone()
    last = job.last_line()
    failed = FAILED.fullmatch(last)
    right = (rank,) if isinstance(rank, int) else rank
    first = [when for when, text in job.lines if re.search(detect or re.escape(last), text) and when >= fault]
    outcome = Outcome(end=gone - fault, detect=first[0] - fault if first else None, left=place.left(killed),
                      rank=right is None or bool(failed) and int(failed["rank"]) in right,
                      cause=bool(re.search(cause, failed["cause"] if failed and right is not None else last)),
                      code=left_code in ((code,) if isinstance(code, int) else code))
    if right is not None and job.text().count("ddprun: failed:") != 1:
        outcome.cause = False
    if outcome.problems():
        outcome.note = f"exit {left_code}, last line: {last}"
    return outcome


def percentile(values, share):
    """The smallest value that `share` of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclasses.dataclass
class Result:
    row: Row
    backend: str
    outcomes: list
    skipped: str = ""

    def times(self, which):
        return [getattr(o, which) for o in self.outcomes if getattr(o, which) is not None]

    def share(self):
        return sum(o.named for o in self.outcomes) / len(self.outcomes)

    def left(self):
        return sum(len(o.left) for o in self.outcomes)

    def failures(self, factor):
        """What is wrong, as texts; none if the row kept its bounds."""
        found = []
        if self.share() < 0.99:
            found.append(f"rank, cause or exit code right in {self.share():.0%} only")
        if self.left():
            found.append(f"{self.left()} things left")
        if not all(o.commit for o in self.outcomes):
            found.append("a checkpoint does not load")
        for which, bound in (("end", self.row.bound), ("detect", self.row.detect)):
            times = self.times(which)
            if bound is not None and (not times or percentile(times, 0.99) > bound * factor):
                shown = f"{percentile(times, 0.99):.2f} s" if times else "never"
                found.append(f"{which}: p99 {shown}, bound {bound:g} s" + (f" x {factor:g}" if factor != 1 else ""))
        return found


def run_row(row, backend, program, trials, seed, report):
    """All trials of a row with one backend."""
    plugin = program.parent.parent / f"lib/ddprun/v1/libddprun_comm_{backend}.so"
    if backend != "any" and not plugin.exists():
        return Result(row, backend, [], "this build has no such backend")
    outcomes = []
    for number in range(trials):
        rng = random.Random(zlib.crc32(f"{seed} {row.name} {backend} {number}".encode()))
        with Place(program) as place:
            try:
                outcome = row.trial(place, backend, rng)
            except Skip as skip:
                return Result(row, backend, [], str(skip))
            except Exception as error:  # whatever it is, the other rows go on
                text = str(error) if len(str(error)) < 1700 else f"{str(error)[:200]} ... {str(error)[-1500:]}"
                outcome = Outcome(rank=False, cause=False, code=False, note=f"{type(error).__name__}: {text}")
        if outcome.problems():
            report(f"    {row.name} ({backend}), trial {number}: {', '.join(outcome.problems())}; {outcome.note}")
        outcomes.append(outcome)
    return Result(row, backend, outcomes)


def cells(result):
    """One line of the table."""
    row = result.row
    if result.skipped:
        return [row.name, result.backend, "skipped: " + result.skipped] + [""] * 5
    ends, detects = result.times("end"), result.times("detect") if row.detect is not None else []
    def shown_at(share):
        times = [f"{percentile(ends, share):.2f}"] if ends else []
        return " ".join(times + ([f"({percentile(detects, share):.2f})"] if detects else []))
    shown = [shown_at(share) for share in (0.5, 0.99, 1)]
    bounds = [f"{row.bound:g} s"] if row.bound is not None else []
    bounds += [f"first line {row.detect:g} s"] if row.detect is not None else []
    return [row.name, result.backend, str(len(result.outcomes)), ", ".join(bounds) or "none", *shown,
            f"{result.share():.0%}", ("nothing" if not result.left() else str(result.left())) +
            ("; shared memory not checked" if private.why_not else "")]


def markdown(results):
    """The table, with who made it and when."""
    head = ["fault", "backend", "trials", "bound", "p50", "p99", "max", "named", "left"]
    rows = [head, ["---"] * len(head)]
    for result in results:
        line = cells(result)
        rows.append(line + [""] * (len(head) - len(line)))
    made = (f"Measured on {datetime.date.today()} with {os.cpu_count()} cores; the load average of the last 15 minutes "
            f"was {os.getloadavg()[2]:.1f}. A job on a machine with other work takes longer.")
    return made + "\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in rows) + "\n"


def write_markdown(path, results):
    """Puts the table into a page, between its markers; a new file gets the table only."""
    begin, end = "<!-- faults: begin -->\n", "<!-- faults: end -->\n"
    text = path.read_text() if path.exists() else begin + end
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(before + begin + markdown(results) + end + after)


def summary(result, factor):
    """(good, one line for the terminal)"""
    if result.skipped:
        return True, f"skipped: {result.row.name} ({result.backend}): {result.skipped}"
    failures = result.failures(factor)
    ends = result.times("end") or result.times("detect")
    shown = " ".join(f"{name} {percentile(ends, share):.2f}" for name, share in
                     (("p50", 0.5), ("p99", 0.99), ("max", 1))) if ends else "no time"
    text = f"{result.row.name} ({result.backend}): {shown} s, {len(result.outcomes)} trials, named {result.share():.0%}"
    return not failures, ("ok      " if not failures else "FAILED  ") + text + "".join(f"; {f}" for f in failures)


def as_json(result):
    return {"fault": result.row.name, "backend": result.backend, "bound": result.row.bound,
            "detect_bound": result.row.detect, "skipped": result.skipped,
            "trials": [dataclasses.asdict(outcome) for outcome in result.outcomes]}


def now():
    return time.monotonic()
