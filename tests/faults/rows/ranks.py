"""Faults of ranks and of the launcher."""

import contextlib
import os
import re
import signal
import time

from harness import ANY, FAILED, Outcome, Row, ended, now, wait_until
from training import (KILLED, WORLD, backend_of, check_resuming, fault_in, last_step_before, running, tensors_of,
                      tensors_without_fault)


def kill(place, backend, rng):
    """Only the end is measured: the launcher prints nothing when it notices the death, because a failure that comes in
    the next 100 ms may be the first cause. The other ranks are killed after that, so the end is about 0.1 s later."""
    job, ranks = running(place, backend, rng)
    victim = rng.randrange(WORLD)
    fault = now()
    os.kill(ranks[victim], signal.SIGKILL)
    outcome = ended(place, job, fault, rank=victim, cause=KILLED, killed=ranks.values())
    found = FAILED.fullmatch(job.last_line())
    outcome.cause = outcome.cause and bool(found and found["step"] and int(found["pid"]) == ranks[victim])
    check_resuming(place, backend, outcome)
    return outcome


def kill_in_allreduce(place, backend, rng):
    """Rank 2 is slow, so rank 1 is in its allreduce when it is killed."""
    job = place.train(backend_of(backend), *fault_in("slow", 2, 6, **{"faults.seconds": 20}))
    job.wait_for_step(5)
    ranks = job.ranks(WORLD)
    time.sleep(0.3 + rng.uniform(0, 0.2))
    fault = now()
    os.kill(ranks[1], signal.SIGKILL)
    outcome = ended(place, job, fault, rank=1, cause=KILLED)
    outcome.cause = outcome.cause and "step 6 phase allreduce bucket 0: " in job.last_line()
    return outcome


def kill_at_start(place, backend, rng):
    """Ranks join, connect, and build what they need. Gloo then throws in threads of its own, too."""
    job = place.train(backend_of(backend))
    ranks = job.ranks(WORLD)
    time.sleep(rng.uniform(0, 1))
    victim = rng.randrange(WORLD)
    fault = now()
    os.kill(ranks[victim], signal.SIGKILL)
    return ended(place, job, fault, rank=victim, cause=KILLED, killed=ranks.values())


STEPS = "train.steps=160"


def going_on(line, setting, *options):
    """Training goes on after `line`, and ends with the same bits. Measures until the next finished step."""
    def trial(place, backend, rng):
        settings = (backend_of(backend), STEPS, setting)
        whole = tensors_without_fault(place, *settings)
        job = place.start([*place.argv(*settings), *options])
        job.wait_for_step(rng.randint(11, 16))
        ranks = job.ranks(WORLD)
        victim = rng.randrange(WORLD)
        fault = now()
        os.kill(ranks[victim], signal.SIGKILL)
        code = job.wait()
        lines = [when for when, text in job.lines if when > fault and re.search(r"epoch \d+ \[", text)]
        goes_on = [when for when, text in job.lines if when > fault and line in text]
        first = [when for when in lines if goes_on and when > goes_on[0]]
        named = any(re.search(rf"rank {victim} .*{KILLED}", text) for _, text in job.lines)
        outcome = Outcome(detect=first[0] - fault if first else None, code=code == 0, rank=named,
                          left=place.left(), commit=tensors_of(place.commits()[-1]) == whole)
        if outcome.problems():
            outcome.note = job.text()[-1500:]
        return outcome
    return trial


def kill_in_checkpoint(place, backend, rng):
    """A commit in each step, so most of the time is spent in writing. A trial takes about 2 s without other work, so
    the 900 of a full run take half an hour. A test of core/checkpoint adds 100 kills of a process that only writes."""
    job, ranks = running(place, backend, rng, "checkpoint.every_steps=1")
    victim = rng.choice([0, 0, 1, "all"])
    fault = now()
    if victim == "all":
        for pid in [job.pid, *ranks.values()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job.wait()
        outcome = Outcome(end=place.all_gone() - fault, left=place.left(ranks.values()))
    else:
        os.kill(ranks[victim], signal.SIGKILL)
        outcome = ended(place, job, fault, rank=victim, cause=KILLED, killed=ranks.values())
    check_resuming(place, backend, outcome)
    return outcome


def stop(place, backend, rng):
    job, ranks = running(place, backend, rng)
    victim = rng.randrange(WORLD)
    fault = now()
    os.kill(ranks[victim], signal.SIGSTOP)
    return ended(place, job, fault, rank=victim, cause="stopped by a signal and not continued", killed=ranks.values(),
                 detect=rf"rank {victim} \(pid \d+\) is stopped by a signal")


def spin(place, backend, rng):
    job = place.train(backend_of(backend), "comm.timeout=12s", *fault_in("spin"))
    job.wait_for_step(5)
    fault = last_step_before(job, 6)
    outcome = ended(place, job, fault, rank=1, cause="no progress, and the others waited for it; rank",
                    detect="spin_for_ever")
    return outcome


def throw(place, backend, rng):
    job = place.train(backend_of(backend), *fault_in("throw"))
    job.wait_for_step(5)
    return ended(place, job, last_step_before(job, 6), rank=1, cause='faults.kind = "throw"', code=1)


def stop_by(number, code, word):
    def trial(place, backend, rng):
        job, _ = running(place, backend, rng)
        fault = job.send(number)
        outcome = ended(place, job, fault, cause=f"{word}; all ranks stopped", code=code)
        done = re.search(r"stopping after step (\d+)", job.text())
        outcome.commit = bool(done) and f"step-{int(done[1]):08}" in place.commits()[-1].name
        outcome.commit = outcome.commit and place.loads("latest", backend_of(backend))[0]
        return outcome
    return trial


def stop_twice(place, backend, rng):
    """The stopped rank cannot finish its step, so only the second signal can end the job."""
    job, ranks = running(place, backend, rng)
    os.kill(ranks[1], signal.SIGSTOP)
    job.send(signal.SIGINT)
    job.line("ddprun: stopping", 10)  # two pending signals count as one
    fault = job.send(signal.SIGINT)
    return ended(place, job, fault, cause="interrupted; the ranks were killed", code=130, killed=ranks.values())


def kill_launcher(place, backend, rng):
    job, ranks = running(place, backend, rng)
    fault = now()
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    return Outcome(end=place.all_gone() - fault, left=place.left(ranks.values()))


def kill_launcher_of_families(place, backend, rng):
    """Each rank is a shell with children, which no signal of the kernel reaches when the launcher dies."""
    job = place.start([place.program, "launch", "-n", "2", "sh", "-c", "sleep 300 & sleep 300 & wait"])
    wait_until(lambda: len(place.processes()) >= 7, 30, "two shells with two children each")
    fault = now()
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    return Outcome(end=place.all_gone() - fault, left=place.left())


ROWS = [  # quick=0: a test in tests/e2e does the same
    Row("SIGKILL of a rank", "signal, rank and step named; exit 5; the checkpoints load", 0.5, kill, quick=1, full=100),
    Row("SIGKILL of a rank inside allreduce", "also the bucket named", 0.5, kill_in_allreduce, quick=1, full=50),
    Row("SIGKILL of a rank while the ranks start", "signal and rank named; exit 5", 0.5, kill_at_start, quick=1,
        full=50),
    Row("SIGKILL of a rank, with launch.max_restarts", "first step of the restarted ranks; the same bits at the end",
        None, going_on("resuming from", "launch.max_restarts=1"), detect=0.6, quick=1, full=20),
    Row("SIGKILL of a rank, with virtual ranks and --nnodes 1:1",
        "next step of the other ranks; the same bits at the end", None,
        going_on(" on after step ", "strategy.virtual_ranks=8", "--nnodes", "1:1"), detect=0.6, quick=1, full=20),
    Row("SIGKILL while a checkpoint is written", "the newest checkpoint or the one before loads", 0.5,
        kill_in_checkpoint, quick=1, full={"shm": 700, "other": 100}),
    Row("SIGSTOP of a rank", "seen at once, named after a grace of 2 s; exit 5", 2.5, stop, detect=0.2, quick=1),
    Row("a rank that is busy for ever", "named with its stack 5 to 10 s later; exit 5 at comm.timeout = 12 s", 17, spin,
        detect=10, quick=1, full=3),
    Row("an exception in a rank", "its text, rank and step; exit 1", 0.5, throw, quick=1),
    Row("SIGINT", "a common step is committed; exit 130", 5, stop_by(signal.SIGINT, 130, "interrupted"), quick=1),
    Row("SIGTERM", "a common step is committed; exit 143", 5, stop_by(signal.SIGTERM, 143, "terminated"), quick=0),
    Row("SIGINT twice", "the job ends at once; exit 130", 0.5, stop_twice, quick=1),
    Row("SIGKILL of the launcher", "no process is left", 0.5, kill_launcher, quick=1, full=130),
    Row("SIGKILL of the launcher, with grandchildren", "no process is left", 0.5, kill_launcher_of_families, quick=1,
        full=120, backends=ANY),
]
