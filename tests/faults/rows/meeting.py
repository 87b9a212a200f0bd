"""Faults where the hosts meet: the store of node 0 and its secret."""

import hmac
import os
import re
import socket
import struct
import time

from cluster import PORT, SECRET, Cluster
from harness import ANY, Outcome, Row, now, wait_until


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
        line = rf".*cannot reach the store at {nobody}:{PORT} within \d+ ms: .*"
        return refused(place, job, fault, line, begin=limit)


def no_secret(place, backend, rng):
    with Cluster(place) as cluster:
        fault = now()
        job = cluster.start(0, secret=None)
        return refused(place, job, fault, r"processes of other hosts can reach .* and the job has no secret: .*")


# ----- An enemy where the hosts meet

HELLO = b"ddpstor5"
EXCHANGE, PING = 0, 4  # Request of launch/net/protocol.hpp


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
        self.socket.sendall(struct.pack("<QQ", 8, PING))
        self.read(struct.unpack("<Q", self.read(8))[0])
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
               HELLO + b"x" * 32 + b"y" * 32 + struct.pack("<IQ", 2 ** 32 - 1, EXCHANGE), b"GET / HTTP/1.1\r\n\r\n"]
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


ROWS = [
    Row("port in use", "exit 4; its holder named", 1, port_in_use, backends=ANY),
    Row("master's name unknown", "exit 4", 2, unknown_name, backends=ANY),
    Row("master unreachable", "exit 4 at launch.timeout", 0.5, unreachable, backends=ANY),
    Row("several hosts without a secret", "exit 4", 1, no_secret, backends=ANY),
    Row("a process without the secret at the rendezvous", "each operation within 50 ms; 8 MiB; the job starts", 0.05,
        enemy, backends=ANY),
]
