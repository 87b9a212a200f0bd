"""Faults of a rank of a job on three hosts: each launcher names the rank and its host, and all hosts end."""

import contextlib
import os
import pathlib
import re
import signal
import time

from cluster import HOSTS, Cluster
from harness import FAILED, Outcome, Row, now, rank_of, wait_until
from rows.hosts import BETWEEN_HOSTS, in_training
from training import ANY_PID, KILLED, backend_of, fault_in


def parent_of(pid):
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def launchers(cluster):
    """{host: pid}, as this process sees them: nsenter starts a child in the host's PID namespace."""
    hosts = {job.pid: host for host, job in enumerate(cluster.jobs)}
    return {hosts[parent_of(pid)]: pid for pid in cluster.place.processes() if parent_of(pid) in hosts}


def ranks(cluster):
    """{rank: pid}, as this process sees them. Rank r is the only one of host r."""
    def found():
        own = set(launchers(cluster).values())
        pids = [pid for pid in cluster.place.processes() if parent_of(pid) in own]
        named = {rank_of(pid): pid for pid in pids}
        named.pop(None, None)
        return {int(rank): pid for rank, pid in named.items()} if len(named) == HOSTS else None
    return wait_until(found, 30, "the ranks of all hosts")


def ended_everywhere(cluster, fault, victim, cause, code=5, killed=()):
    """The end of the last process, and the time until a line of a launcher of each other host names the victim."""
    codes = [job.wait() for job in cluster.jobs]
    end = cluster.place.all_gone() - fault
    last = [job.last_line() for job in cluster.jobs]
    found = [FAILED.fullmatch(line) for line in last]
    name = rf"rank {victim} \(node{victim}[,)]"
    seen = [[when for when, text in cluster.jobs[host].lines if when > fault and re.search(name, text)]
            for host in range(HOSTS) if host != victim]
    outcome = Outcome(end=end, detect=max(times[0] for times in seen) - fault if all(seen) else None,
                      rank=all(line and int(line["rank"]) == victim and line["host"] == f"node{victim}"
                               for line in found),
                      cause=all(line and re.search(cause, line["cause"]) for line in found),
                      code=codes == [code] * HOSTS, left=cluster.left(killed))
    if outcome.problems():
        outcome.note = f"exit codes {codes}, last lines: " + " | ".join(last)
    return outcome


def signalled(number, cause, **expected):
    def trial(place, backend, rng):
        with Cluster(place) as cluster:
            cluster.train(backend_of(backend))
            in_training(cluster)
            victim = rng.randrange(HOSTS)
            pid = ranks(cluster)[victim]
            time.sleep(rng.uniform(0, 0.3))
            fault = now()
            os.kill(pid, number)
            return ended_everywhere(cluster, fault, victim, cause, killed=ANY_PID, **expected)
    return trial


def throws(place, backend, rng):
    with Cluster(place) as cluster:
        victim = rng.randrange(HOSTS)
        cluster.train(backend_of(backend), *fault_in("throw", victim))
        fault = cluster.jobs[0].wait_for_step(5)
        return ended_everywhere(cluster, fault, victim, 'faults.kind = "throw"', code=1)


def spins(place, backend, rng):
    """Node 0 finds the rank that hangs, and tells its host, which tells all others at the end."""
    with Cluster(place) as cluster:
        victim = rng.randrange(HOSTS)
        first = cluster.train(backend_of(backend), "comm.timeout=12s", *fault_in("spin", victim))[0]
        fault = first.wait_for_step(5)
        outcome = ended_everywhere(cluster, fault, victim, "no progress, and the others waited for it")
        named = [when for when, text in first.lines if f"rank {victim} (node{victim}) has been in step 6" in text]
        outcome.detect = named[0] - fault if named else None
        outcome.cause = outcome.cause and "spin_for_ever" in cluster.jobs[victim].text()
        return outcome


def interrupted(place, backend, rng):
    """The launcher of one host gets SIGINT."""
    with Cluster(place) as cluster:
        cluster.train(backend_of(backend))
        in_training(cluster)
        host = rng.randrange(HOSTS)
        pid = launchers(cluster)[host]
        fault = now()
        os.kill(pid, signal.SIGINT)
        codes = [job.wait() for job in cluster.jobs]
        end = place.all_gone() - fault
        last = [job.last_line() for job in cluster.jobs]
        done = re.search(r"stopping after step (\d+)", "".join(job.text() for job in cluster.jobs))
        saved = bool(done) and f"step-{int(done[1]):08}" in cluster.commits()[-1].name
        outcome = Outcome(end=end, code=codes == [130] * HOSTS, commit=saved, left=cluster.left(),
                          cause=all("interrupted; all ranks stopped" in line for line in last))
        if outcome.problems():
            outcome.note = f"SIGINT on node{host}, exit codes {codes}, last lines: " + " | ".join(last)
        return outcome


ROWS = [
    Row("SIGKILL of a rank, three hosts", "signal, rank and host named on all hosts; exit 5", 1,
        signalled(signal.SIGKILL, KILLED), backends=BETWEEN_HOSTS),
    Row("SIGSTOP of a rank, three hosts", "named on the other hosts within 3 s, after a grace of 2 s; exit 5", 3,
        signalled(signal.SIGSTOP, "stopped by a signal and not continued"), detect=3, backends=BETWEEN_HOSTS, full=10),
    Row("an exception in a rank, three hosts", "its text, rank and host on all hosts; exit 1", 1, throws,
        backends=BETWEEN_HOSTS, full=10),
    Row("a rank that is busy for ever, three hosts", "named on all hosts, its stack on its own; exit 5 at comm.timeout",
        17, spins, detect=10, quick=0, backends=BETWEEN_HOSTS, full=3),
    Row("SIGINT, three hosts", "a common step is committed; exit 130 on all hosts", 5, interrupted,
        backends=BETWEEN_HOSTS, full=10),
]
