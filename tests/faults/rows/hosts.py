"""Faults between hosts, and of the store where they meet. The hosts are network namespaces."""

import hmac
import os
import re
import socket
import stat
import struct
import time

from cluster import HOSTS, PORT, SECRET, Cluster
from harness import ANY, Outcome, Row, now, variables_of, wait_until
from rows.ranks import tensors_of

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
        variables = [variables_of(pid) for pid in cluster.place.processes()]
        return len({each["DDPRUN_RANK"] for each in variables if "DDPRUN_RANK" in each}) == HOSTS
    wait_until(all_started, 60, "the ranks")


def names_right_hosts(lost, host, victim, half_open):
    """lost: the hosts that the launcher of `host` names. A host other than node 0 is connected to node 0 only."""
    if host == victim:
        return lost == (set(range(1, HOSTS)) if victim == 0 else {0})
    if half_open and victim == 0 and lost:  # node 0 may still say which hosts it has lost
        return host not in lost
    return lost == {victim}


def partition(place, settings, rng, cut, per_host=1, ready=in_training):
    """Cuts a host off. All launchers end, and each names the hosts that it lost."""
    with Cluster(place) as cluster:
        victim = rng.randrange(HOSTS)
        wires = {victim: cluster.hosts.wire(victim)} if cut in ("out", "in") else {}
        jobs = cluster.train(*settings, per_host=per_host)
        ready(cluster)
        time.sleep(rng.uniform(0, 1))
        fault, fault_of_files = now(), time.time()
        wires[victim].set("block " + cut) if wires else cut(cluster, victim)
        codes = [job.wait() for job in jobs]
        end = place.all_gone() - fault
        lost = [cluster.lost_in(host, per_host) for host in range(HOSTS)]
        right = all(names_right_hosts(lost[host], host, victim, bool(wires)) for host in range(HOSTS))
        late = [path for path in cluster.commits() if path.stat().st_mtime > fault_of_files + 1]
        outcome = Outcome(end=end, rank=right, code=codes == [5] * HOSTS, commit=not late, left=cluster.left())
        if outcome.problems():
            outcome.note = f"node{victim} cut off, exit codes {codes}: " + " | ".join(job.last_line() for job in jobs)
        return outcome


def host_cut_off(place, backend, rng):
    return partition(place, [f"comm.backend={backend}"], rng, rng.choice([link_down, cable_out]))


def host_cut_off_hierarchical(place, backend, rng):
    settings = [f"comm.backend={backend}", "comm.algorithm=hierarchical"]
    return partition(place, settings, rng, rng.choice([link_down, cable_out]), per_host=2)


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
        fault = now()
        wire.set(f"only {PORT}")
        codes = [job.wait() for job in jobs]
        end = place.all_gone() - fault
        last = {job.last_line() for job in jobs}
        # Ranks notice it within some milliseconds. A launcher names the one that was first, as far as it can see.
        right = all(names_lost_ranks(line, victim) for line in last)
        outcome = Outcome(end=end, rank=right, code=codes == [5] * HOSTS, left=cluster.left())
        if outcome.problems():
            outcome.note = f"node{victim} cut off, exit codes {codes}: " + " | ".join(last)
        return outcome


def names_lost_ranks(line, victim):
    found = re.fullmatch(r"ddprun: failed: rank (\d) \(.*: lost ranks? ([\d, ]+): (its host does|their hosts do) not "
                         r"answer; a host or the network to it is down.*", line)
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


# ----- Where the hosts meet

def refused(place, job, fault, pattern, code=4, begin=0.0):
    """A launcher that must end with one line. begin: seconds that it should have waited."""
    left_code = job.wait()
    outcome = Outcome(end=place.all_gone() - fault - begin, code=left_code == code, left=place.left(),
                      cause=bool(re.fullmatch("ddprun: failed: " + pattern, job.last_line())))
    if outcome.end < -0.05:  # it must not give up earlier
        outcome.cause = False
    if outcome.problems():
        outcome.note = f"exit {left_code}: {job.text()}"
    return outcome


def node(place, rank, port, *settings, master="127.0.0.1"):
    """The launcher of one of two nodes that are on this host."""
    argv = place.argv("launch.nproc=1", *settings)
    argv += ["--nnodes", "2", "--node-rank", str(rank), "--master-addr", master, "--master-port", str(port)]
    return place.start(argv, {"DDPRUN_SECRET": SECRET})


def port_in_use(place, backend, rng):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        fault = now()
        job = node(place, 0, holder.getsockname()[1])
        return refused(place, job, fault, rf".*the port is in use by pid {os.getpid()} \(.*\); choose another one")


def unknown_name(place, backend, rng):
    fault = now()
    job = node(place, 1, PORT, master="no-such-host.invalid")
    return refused(place, job, fault, r'.*"no-such-host.invalid" cannot be resolved.*')


def unreachable(place, backend, rng):
    limit = 3
    with Cluster(place) as cluster:
        fault = now()
        nobody = "10.83.0.99"
        job = cluster.start(1, f"launch.timeout={limit}s", master=nobody)
        return refused(place, job, fault, rf".*cannot reach the store at {nobody}:{PORT} within \d+ ms: .*", begin=limit)


def no_secret(place, backend, rng):
    with Cluster(place) as cluster:
        fault = now()
        job = cluster.start(0, secret=None)
        return refused(place, job, fault, r"processes of other hosts can reach .* and the job has no secret: .*")


# ----- An enemy where the hosts meet

HELLO = b"ddpstor2"
GET, PING = 1, 6  # Request of core/launch/net/protocol.hpp


class Client:
    """A process of the job, as far as the store's server can see."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        mine, secret = os.urandom(32), bytes.fromhex(SECRET)
        self.socket.sendall(HELLO + mine)
        answer = self.read(len(HELLO) + 64)
        theirs = answer[len(HELLO):-32]
        assert answer[-32:] == hmac.digest(secret, b"server" + mine + theirs, "sha256"), "the server's proof"
        self.socket.sendall(hmac.digest(secret, b"client" + mine + theirs, "sha256"))

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            assert part, "the server has closed the connection"
            data += part
        return data

    def ping(self):
        """Seconds until the answer."""
        begin = now()
        self.socket.sendall(struct.pack("<IQ", 8, PING))
        self.read(struct.unpack("<I", self.read(4))[0])
        return now() - begin


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def idle(port, count):
    return [socket.create_connection(("127.0.0.1", port), 20) for _ in range(count)]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def enemy(place, backend, rng):
    """400 idle connections, garbage, half greetings, lengths of 2^64 - 1, and frames after a wrong proof. Outcome.end
    is the slowest operation of a process of the job meanwhile."""
    port = free_port()
    first = node(place, 0, port, "train.steps=3", "comm.backend=gloo")
    client = wait_until(lambda: connected(port), 30, "the server")
    pid = first.pid
    before, slowest = resident_bytes(pid), 0.0
    held = idle(port, 400)
    attacks = [rng.randbytes(4096), HELLO[:4], HELLO + b"x" * 31, b"\xff" * 8, struct.pack("<Q", 2 ** 64 - 1) * 64,
               HELLO + b"x" * 32 + b"y" * 32 + struct.pack("<IQ", 2 ** 32 - 1, GET), b"GET / HTTP/1.1\r\n\r\n"]
    end = now() + 3  # longer than a connection without a proof may last
    while now() < end:
        for attack in attacks:
            held += idle(port, 1)
            held[-1].sendall(attack)
            slowest = max(slowest, client.ping())
        time.sleep(0.02)
    growth = resident_bytes(pid) - before
    second = node(place, 1, port, "train.steps=3", "comm.backend=gloo")
    codes = [job.wait() for job in (first, second)]
    for each in held:
        each.close()
    place.all_gone()
    outcome = Outcome(end=slowest, code=codes == [0, 0], cause=growth <= 8 << 20, left=place.left(),
                      note=f"exit codes {codes}, memory grew by {growth >> 10} KiB; {first.last_line()}")
    return outcome


def connected(port):
    try:
        return Client(port)
    except OSError:
        return None


# ----- What other users of a host can read

def files_of_a_job(place, backend, rng):
    """The job's folder is for its user only, the secret is in no command line, and one host listens on no port."""
    with Cluster(place) as cluster:
        cluster.train(f"comm.backend={backend}", "train.steps=500")
        cluster.jobs[0].wait_for_step(3)
        folders = [path for host in range(HOSTS) for path in cluster.folder(host, "job").iterdir()]
        wrong = [str(path) for path in folders if stat.S_IMODE(path.stat().st_mode) != 0o700]
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        wrong += [str(path) for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077]
        secrets = [path for path in files if path.name == "secret"]
        for pid in place.processes():
            with open(f"/proc/{pid}/cmdline") as argv:
                wrong += [f"the arguments of {pid}"] if SECRET in argv.read() else []
        codes = [job.wait() for job in cluster.jobs]
        place.all_gone()
        return Outcome(code=codes == [0] * HOSTS, cause=not wrong and len(folders) == len(secrets) == HOSTS, left=cluster.left(),
                       note=f"readable by others: {wrong}; folders: {folders}")


ROWS = [
    Row("a host is cut off", "exit 5 on both sides; the lost ranks named; no commit after it", 3, host_cut_off,
        backends=BETWEEN_HOSTS, full=50),
    Row("a host is cut off, hierarchical", "the same", 3, host_cut_off_hierarchical, backends=("ucx",), full=50),
    Row("a host is cut off while the ranks connect", "the same", 3, host_cut_off_at_start, backends=BETWEEN_HOSTS,
        quick=0, full=50),
    Row("packets to or from a host are lost", "the same", 3, one_direction, backends=BETWEEN_HOSTS, full=50),
    Row("the ranks' connections are cut, the launchers' are not", "the same, found by the backend", 3, data_cut,
        backends=BETWEEN_HOSTS, full=50),
    Row("delay of 200 ms", "no rank is ended; the same weights", None, slow_network(["delay 200"]),
        backends=BETWEEN_HOSTS, quick=0, full=3),
    Row("loss of 1 %", "the same", None, slow_network(["loss 0.01"]), backends=BETWEEN_HOSTS, quick=0, full=10),
    Row("1 Mbit/s", "the same", None, slow_network(["rate 1e6"]), backends=BETWEEN_HOSTS, quick=0, full=3),
    Row("port in use", "exit 4; its holder named", 1, port_in_use, backends=ANY),
    Row("master's name unknown", "exit 4", 2, unknown_name, backends=ANY),
    Row("master unreachable", "exit 4 at launch.timeout", 0.5, unreachable, backends=ANY),
    Row("several hosts without a secret", "exit 4", 1, no_secret, backends=ANY),
    Row("an enemy at the rendezvous", "each operation within 50 ms; 8 MiB; the job starts", 0.05, enemy, backends=ANY),
    Row("files of a job", "0700 and 0600; no secret in a command line", None, files_of_a_job, backends=("gloo",)),
]
