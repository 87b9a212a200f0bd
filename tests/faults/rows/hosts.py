"""Faults of the network between hosts. The hosts are network namespaces."""

import re
import time

from cluster import HOSTS, PORT, Cluster
from harness import Outcome, Row, now, rank_of, wait_until
from training import ANY_PID, tensors_of

BETWEEN_HOSTS = ("gloo", "ucx")


# ----- Partitions

def link_down(cluster, host):
    cluster.hosts.link_down(host)


def cable_out(cluster, host):
    cluster.hosts.disconnect(host)


def in_training(cluster):
    cluster.jobs[0].wait_for_step(3)
    wait_until(cluster.commits, 60, "a checkpoint")


def at_start(cluster):
    """The launchers have met. The ranks load, meet and connect."""
    def all_started():
        return len({rank_of(pid) for pid in cluster.place.processes()} - {None}) == HOSTS
    wait_until(all_started, 60, "the ranks")


def names_right_hosts(lost, host, victim, half_open):
    """lost: the hosts that the launcher of `host` names. A host other than node 0 is connected to node 0 only."""
    if host == victim:
        return lost == (set(range(1, HOSTS)) if victim == 0 else {0})
    if half_open and victim == 0 and lost:  # node 0 may still say which hosts it has lost
        return host not in lost
    return lost == {victim}


EVERY = 10  # steps between two checkpoints


def steps_saved(cluster):
    """The newest checkpoint of each host; 0: none. Only rank 0 saves checkpoints, on its host."""
    return [max([0, *(int(re.search(r"step-(\d+)", path.name)[1]) for path in cluster.commits(host))])
            for host in range(HOSTS)]


def saved_after(cluster, before, fault):
    """What neither side may do, whichever is the smaller one: save a checkpoint after the fault. The one that rank 0
    is writing then may still appear, within a second. A side that goes on alone does some hundred steps until the end.
    before: steps_saved() at the fault. fault: its time.time()."""
    late = [str(path) for host in range(HOSTS) for path in cluster.commits(host) if path.stat().st_mtime > fault + 1]
    first, *others = steps_saved(cluster)
    if first > before[0] + EVERY or any(others):
        late.append(f"steps {[first, *others]} instead of {before}")
    return late


def partition(place, settings, rng, cut, per_host=1, ready=in_training):
    """Cuts a host off. All launchers end, and each names the hosts that it lost."""
    with Cluster(place) as cluster:
        victim = rng.randrange(HOSTS)
        wires = {victim: cluster.hosts.wire(victim)} if cut in ("out", "in") else {}
        jobs = cluster.train(*settings, per_host=per_host)
        ready(cluster)
        time.sleep(rng.uniform(0, 1))
        saved = steps_saved(cluster)
        fault, fault_of_files = now(), time.time()
        wires[victim].set("block " + cut) if wires else cut(cluster, victim)
        codes = [job.wait() for job in jobs]
        end = place.all_gone() - fault
        lost = [cluster.lost_in(host, per_host) for host in range(HOSTS)]
        right = all(names_right_hosts(lost[host], host, victim, bool(wires)) for host in range(HOSTS))
        late = saved_after(cluster, saved, fault_of_files)
        outcome = Outcome(end=end, rank=right, code=codes == [5] * HOSTS, commit=not late, left=cluster.left(ANY_PID))
        if outcome.problems():
            outcome.note = (f"node{victim} cut off, exit codes {codes}, saved after the fault: {late}; " +
                            " | ".join(job.last_line() for job in jobs))
        return outcome


def host_cut_off(place, backend, rng):
    return partition(place, [f"comm.backend={backend}"], rng, rng.choice([link_down, cable_out]))


def host_cut_off_hierarchical(place, backend, rng):
    settings = [f"comm.backend={backend}", "comm.algorithm=hierarchical"]
    return partition(place, settings, rng, rng.choice([link_down, cable_out]), per_host=2)


def host_cut_off_elastic(place, backend, rng):
    """The other hosts go on, and end with the same bits. Measures until their next finished step."""
    settings = [f"comm.backend={backend}", "strategy.virtual_ranks=8", "train.steps=1500",
                "checkpoint.every_steps=1500"]
    key = (backend, "elastic")
    with Cluster(place) as cluster:
        if key not in undisturbed:
            assert [job.wait(300) for job in cluster.train(*settings, nnodes=f"1:{HOSTS}")] == [0] * HOSTS
            undisturbed[key] = tensors_of(cluster.commits()[-1])
            cluster.commits()[-1].unlink()
        jobs = cluster.train(*settings, nnodes=f"1:{HOSTS}")
        jobs[0].wait_for_step(3)
        time.sleep(rng.uniform(0, 1))
        victim = rng.randrange(1, HOSTS)  # the loss of node 0 is that of the job
        fault = now()
        rng.choice([link_down, cable_out])(cluster, victim)
        codes = [job.wait(120) for job in jobs]
        lines = [(when, text) for when, text in jobs[0].lines if when > fault]
        goes_on = next((when for when, text in lines if " on after step " in text), float("inf"))
        step = next((when for when, text in lines if when > goes_on and re.search(r"epoch \d+ \[", text)), None)
        same = bool(cluster.commits()) and tensors_of(cluster.commits()[-1]) == undisturbed[key]
        named = f"(node{victim}): lost: this host does not answer any more; 2 ranks go on" in jobs[0].text()
        outcome = Outcome(detect=step and step - fault, rank=named, commit=same, left=cluster.left(ANY_PID),
                          code=codes == [5 if host == victim else 0 for host in range(HOSTS)])
        if outcome.problems():
            outcome.note = f"node{victim} cut off, exit codes {codes}; " + jobs[0].text()[-1500:]
        return outcome


def host_cut_off_at_start(place, backend, rng):
    return partition(place, [f"comm.backend={backend}"], rng, rng.choice([link_down, cable_out]), ready=at_start)


def one_direction(place, backend, rng):
    return partition(place, [f"comm.backend={backend}"], rng, rng.choice(["in", "out"]))


def data_cut(place, backend, rng):
    """The launchers still reach each other, the ranks do not: only the backend can notice it."""
    with Cluster(place) as cluster:
        victim = rng.randrange(HOSTS)
        wire = cluster.hosts.wire(victim)
        jobs = cluster.train(f"comm.backend={backend}")
        jobs[0].wait_for_step(3)
        time.sleep(rng.uniform(0, 1))
        saved = steps_saved(cluster)
        fault, fault_of_files = now(), time.time()
        wire.set(f"only {PORT}")
        codes = [job.wait() for job in jobs]
        end = place.all_gone() - fault
        last = {job.last_line() for job in jobs}
        # Ranks notice it within some milliseconds. A launcher names the one that was first, as far as it can see.
        right = all(names_lost_ranks(line, victim) for line in last)
        late = saved_after(cluster, saved, fault_of_files)
        outcome = Outcome(end=end, rank=right, code=codes == [5] * HOSTS, commit=not late, left=cluster.left(ANY_PID))
        if outcome.problems():
            outcome.note = f"node{victim} cut off, exit codes {codes}, saved after it: {late}; " + " | ".join(last)
        return outcome


def names_lost_ranks(line, victim):
    found = re.fullmatch(r"ddprun: failed: rank (\d) \(.*: lost ranks? ([\d, ]+): (its host does|their hosts do) "
                         r"not answer; a host or the network to it is down.*", line)
    lost = {int(rank) for rank in found[2].split(", ")} if found else set()
    return bool(lost) and (victim not in lost if found[1] == str(victim) else lost == {victim})


# ----- Slow networks

STEPS = ["train.steps=3", "checkpoint.every_steps=3"]
undisturbed = {}  # by backend: the tensors of a run without a wire


def trained(place, backend, commands):
    with Cluster(place) as cluster:
        if commands:
            wire = cluster.hosts.wire(1)
            for command in commands:
                wire.set(command)
        jobs = cluster.train(f"comm.backend={backend}", *STEPS)
        codes = [job.wait(300) for job in jobs]
        tensors = tensors_of(cluster.commits()[-1]) if cluster.commits() else None
        return codes, tensors, cluster.left(), jobs[0].last_line()


def slow_network(commands):
    def trial(place, backend, rng):
        if backend not in undisturbed:
            undisturbed[backend] = trained(place, backend, [])[1]
            for path in place.folder.glob("runs0/*/checkpoints/*"):
                path.unlink()
        codes, tensors, left, last = trained(place, backend, commands)
        same = tensors is not None and tensors == undisturbed[backend]
        return Outcome(code=codes == [0] * HOSTS, commit=same, left=left, note=f"exit codes {codes}: {last}")
    return trial


ROWS = [
    Row("a host is cut off", "exit 5 on both sides; the lost ranks named; neither saves a checkpoint after it", 3,
        host_cut_off, backends=BETWEEN_HOSTS, full=50),
    Row("a host is cut off, hierarchical", "the same", 3, host_cut_off_hierarchical,
        backends=BETWEEN_HOSTS, full=50),
    Row("a host is cut off, with virtual ranks and --nnodes 1:3",
        "next step of the other hosts; the same bits at the end", None, host_cut_off_elastic, detect=3.5,
        backends=BETWEEN_HOSTS, quick=0, full=10),
    Row("a host is cut off while the ranks connect", "the same", 3, host_cut_off_at_start, backends=BETWEEN_HOSTS,
        quick=0, full=50),
    Row("packets to or from a host are lost", "the same", 3, one_direction, backends=BETWEEN_HOSTS, full=50),
    Row("the ranks' connections are cut, the launchers' are not", "the same, found by the backend", 3, data_cut,
        backends=BETWEEN_HOSTS, full=50),
    Row("delay of 200 ms", "no rank is ended; the same weights", None, slow_network(["delay 200"]),
        backends=BETWEEN_HOSTS, quick=0, full=3),
    Row("loss of 1 %", "the same", None, slow_network(["loss 0.01"]), backends=BETWEEN_HOSTS, quick=0, full=10),
    Row("1 Mbit/s", "the same", None, slow_network(["rate 1e6"]), backends=BETWEEN_HOSTS, quick=0, full=3),
]
