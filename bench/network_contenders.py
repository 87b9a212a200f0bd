"""The systems that network.py compares: ranks on simulated hosts, between them TCP."""

import contextlib
import json
import math
import os
import pathlib
import secrets
import shutil

import contenders
from comparison import bus_bytes
from namespaces import bits_of, variables_of
from running import Failed, Program, run, run_together

MPICH = ["mpicxx.mpich"], ["mpiexec.hydra"]  # compiler, launcher


class Ddprun(contenders.Ddprun):
    """`ddprun bench --nnodes`, started on each host."""

    def measure(self, hosts):
        path = self.settings.folder / "bench.json"
        path.unlink(missing_ok=True)
        job = [*self.command, "--nnodes", hosts.count, "--nproc-per-node", hosts.ranks_per_host,
               "--master-addr", hosts.address(0), "--json", path]
        commands = [hosts.command(host, [*job, "--node-rank", host], variables_of(self.settings.folder, host))
                    for host in range(hosts.count)]
        secret = {"DDPRUN_SECRET": secrets.token_hex(32)}
        run_together(commands, self.settings.limit, env=self.settings.environment() | secret)
        yield from self.cases(path)


def raw_gloo(settings):
    def places(hosts):
        return ",".join(f"{hosts.address(host)}@{hosts.network_of(host)}" for host in range(hosts.count)
                        for _ in range(hosts.ranks_per_host))
    return contenders.raw_gloo(settings, places)


def mpi(settings, name, compiler, launcher):
    """Any MPI whose launcher takes the options of Open MPI or MPICH (Hydra)."""
    program, is_open_mpi = contenders.build_mpi(settings, name, compiler, launcher)

    def command(hosts):
        agent = hosts.agent(settings.folder / "agent", lambda host: variables_of(settings.folder, host))
        words = open_mpi(hosts, launcher, agent) if is_open_mpi else hydra(hosts, launcher, agent)
        return [*hosts.login(), *words, program]
    return [contenders.Peer(settings, name, command)]


def open_mpi(hosts, launcher, agent):
    ranks = hosts.count * hosts.ranks_per_host
    within = ["vader"] if hosts.ranks_per_host > 1 else []  # shared memory
    words = [*launcher, "--allow-run-as-root", "-n", ranks,
             "--host", ",".join(f"{hosts.address(host)}:{hosts.ranks_per_host}" for host in range(hosts.count)),
             "--mca", "pml", "ob1", "--mca", "btl", ",".join(["tcp", "self", *within]),
             "--mca", "btl_tcp_if_include", hosts.network,
             "--mca", "oob_tcp_if_include", hosts.network, "--mca", "plm_rsh_agent", agent,
             "--mca", "plm_rsh_no_tree_spawn", "1"]
    # The hosts share the cores of this machine, which Open MPI cannot know: it would bind the first rank of each host
    # to the first core, and poll without a pause where there are more ranks than cores.
    words += ["--bind-to", "none"]
    return words + (["--mca", "mpi_yield_when_idle", "1"] if ranks > contenders.CORES else [])


def hydra(hosts, launcher, agent):
    # For the builds of MPICH with UCX, and with libfabric. MPICH itself has shared memory within a host.
    tcp = ["UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0", "FI_PROVIDER=tcp", "FI_TCP_IFACE=eth0"]
    return ["env", *tcp, *launcher, "-launcher", "ssh", "-launcher-exec", agent, "-localhost", hosts.login_address,
            "-n", hosts.count * hosts.ranks_per_host, "-ppn", hosts.ranks_per_host,
            "-hosts", ",".join(hosts.address(host) for host in range(hosts.count))]


class Limit:
    """Measures the rate of a program that only moves data. From it follows how long each host needs at least to send
    its part of an allreduce. `seconds`: how long a measurement takes."""

    most_ranks = math.inf

    def __init__(self, settings, seconds, library):
        self.settings, self.seconds, self.library, self.hung = settings, seconds, library, 0

    def cases(self, hosts, rate):
        """`rate` in bytes per second."""
        for size in self.settings.sizes:
            yield self.column, size, [bus_bytes(hosts.count, size) / rate], 1, 0

    @staticmethod
    def wait_for_server(hosts, host, port):
        listens = f"grep -q :{port:04X}.*:0000.0A /proc/net/tcp"
        hosts.run(host, f"timeout 30 sh -c 'until {listens}; do sleep 0.01; done'")


class Iperf3(Limit):
    """One TCP stream from host 1 to host 0. `both` has the rates of two streams in opposite directions, in bytes per
    second, the slower of each round."""

    name = "iperf3"
    column = "limit iperf3"

    def __init__(self, settings, seconds):
        super().__init__(settings, seconds, run(["iperf3", "--version"], settings.limit).partition("\n")[0])
        self.both = []

    def measure(self, hosts):
        with Program([*hosts.prefix(0), "iperf3", "--server", "--bind", hosts.address(0)]):
            self.wait_for_server(hosts, 0, 5201)
            one_way = self.rates(hosts)["sum_received"]
            both = self.rates(hosts, "--bidir")
        directions = [both[key]["bits_per_second"] for key in ("sum_received", "sum_received_bidir_reverse")]
        self.both.append(min(directions) / 8)
        yield from self.cases(hosts, one_way["bits_per_second"] / 8)

    def rates(self, hosts, *more):
        out = run([*hosts.prefix(1), "iperf3", "--client", hosts.address(0), "--time", self.seconds, "--json", *more],
                  self.settings.limit)
        document = json.loads(out)
        if document.get("error") or not document["end"]["sum_received"]["bits_per_second"]:
            raise Failed(f"iperf3: {document.get('error', 'received nothing')}")
        return document["end"]


def iperf3(settings, seconds):
    if shutil.which("iperf3") is None:
        raise contenders.Absent("no iperf3 here")
    return [Iperf3(settings, seconds)]


class UcxPerftest(Limit):
    """UCX itself: two pairs of a client and a server send tagged messages of 1 MiB between host 0 and host 1, in
    opposite directions at once. The slower rate counts."""

    name = "ucx_perftest"
    column = "limit ucx_perftest"
    message = 1 << 20
    # comm_ucx sets the same sizes.
    variables = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "UCX_TCP_TX_SEG_SIZE": "260k",
                 "UCX_TCP_RX_SEG_SIZE": "260k"}

    def __init__(self, settings, seconds, folder):
        """`folder`: where UCX is installed."""
        self.folder = folder
        self.environment = os.environ | {"LD_LIBRARY_PATH": str(folder / "lib")}
        version = run([folder / "bin" / "ucx_info", "-v"], settings.limit, env=self.environment)
        super().__init__(settings, seconds, version.partition("\n")[0].removeprefix("# Library version: "))

    def command(self, hosts, host, *words):
        return hosts.command(host, [self.folder / "bin" / self.name, *words], self.variables)

    def measure(self, hosts):
        # As many messages as take `seconds` at the rate of the link, or at 2 GB/s.
        rate = bits_of(hosts.rate) / 8 if hosts.rate else 2e9
        test = ["-t", "tag_bw", "-s", self.message, "-n", max(1, round(rate * self.seconds / self.message)), "-w", 4,
                "-f", "-v"]
        with contextlib.ExitStack() as servers:
            for host in range(2):
                servers.enter_context(Program(self.command(hosts, host), env=self.environment))
                self.wait_for_server(hosts, host, 13337)
            out = run_together([self.command(hosts, 1 - host, hosts.address(host), *test) for host in range(2)],
                               self.settings.limit, env=self.environment)
        yield from self.cases(hosts, min(self.rate_in(text) for text in out))

    @staticmethod
    def rate_in(out):
        """Bytes per second, in the output of -v: a line of names, and one of numbers."""
        names, numbers = out.splitlines()[:2]
        return float(dict(zip(names.split(","), numbers.split(",")))["overall_bw"]) * (1 << 20)


def ucx_perftest(settings, seconds):
    """That of the UCX in DDPRUN_UCX_DIR, or of the system."""
    chosen = os.environ.get("DDPRUN_UCX_DIR", "system")
    program = shutil.which("ucx_perftest", path=None if chosen == "system" else f"{chosen}/bin")
    if program is None:
        raise contenders.Absent("no ucx_perftest here; set DDPRUN_UCX_DIR")
    return [UcxPerftest(settings, seconds, pathlib.Path(program).parents[1])]
