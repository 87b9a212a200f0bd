"""Simulated hosts: each has network, PID, IPC, mount and UTS namespaces of its own. A bridge connects them. Needs root.
The namespaces have no names: they end with the processes in them, and these end with this process."""

import os
import re
import select
import shutil
import stat
import subprocess

OWN = ["--net", "--pid", "--ipc", "--mount", "--uts"]
# Every kernel has it, and every namespace may use it. The default of a machine can be BBR, whose guess of the rate
# depends on what a connection has sent before: the same allreduce then took 0.9 ms in one job and 1.4 ms in another.
CONGESTION = "reno"
BURST = "256kb"  # of a limited link: a few packets of 64 KiB, which the kernel sends as one
DEADLINE = 30  # seconds for one command
TOOLS = ("ip", "unshare", "nsenter", "setpriv")


def why_not(rate=None):
    """Why hosts cannot be made here; "" if they can."""
    needed = [*TOOLS, *(["tc"] if rate else [])]
    if missing := [tool for tool in needed if shutil.which(tool) is None]:
        return f"no hosts from namespaces: no {' and no '.join(missing)} here"
    try:
        with Hosts(1, rate):
            return ""
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        return f"no hosts from namespaces (needs CAP_SYS_ADMIN, {', '.join(needed)}): {said}"


def _hold(kinds, setup):
    """A process that holds new namespaces. In a PID namespace the kernel ends the others with it."""
    fork = ["--fork", "--kill-child"] if "--pid" in kinds else []
    # In a session of its own: Ctrl-C is for this process, which then ends the others in order.
    script = setup + " && trap '' CHLD && echo ready && exec sleep infinity"
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", *kinds, *fork, "sh", "-c", script],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    answered = select.select([process.stdout], [], [], DEADLINE)[0]
    if not answered or process.stdout.readline() != "ready\n":
        process.kill()
        raise RuntimeError(process.communicate()[1].strip() or f"no new namespaces within {DEADLINE} s")
    return process


def _holder(process):
    """The first process inside: `unshare --fork` itself stays in the old PID namespace."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
        return int((children.read().split() or [process.pid])[0])


def is_rate(text):
    """Whether this is a rate of tc, such as 1gbit."""
    return re.fullmatch(r"[1-9]\d*[kmg]bit", text) is not None


def bits_of(rate):
    """Bits per second."""
    return int(rate[:-4]) * {"k": 1e3, "m": 1e6, "g": 1e9}[rate[-4]]


def variables_of(folder, host):
    """The environment variables of a rank on that host. Its temporary files are in a folder of its own in `folder`: the
    hosts share the disk."""
    own = folder / f"node{host}"
    own.mkdir(mode=0o700, exist_ok=True)
    return {"TMPDIR": own, "XDG_RUNTIME_DIR": own, "OMP_NUM_THREADS": 1}


class Hosts:
    """Host h has the name "node<h>", the address 10.83.0.(10+h) at eth0, its own /dev/shm. With a rate, such as
    "1gbit", each host sends and receives at most that much; after a pause it may send `burst` at once. `ranks_per_host`
    is for those who start ranks."""

    network = "10.83.0.0/24"
    login_address = "10.83.0.1"

    def __init__(self, count, rate=None, burst=BURST, ranks_per_host=1):
        self.count, self.rate, self.burst, self.ranks_per_host = count, rate, burst, ranks_per_host
        self._held = []
        try:
            self._switch = self._add(["--net"], "true")
            self._run_at(self._switch, "ip link add switch up type bridge && ip link set lo up && "
                                       f"ip address add {self.login_address}/24 dev switch", ["--net"])
            self._pids = [self._add(OWN, f"mount -t proc proc /proc && mount -t sysfs sysfs /sys && "
                                         f"mount -t tmpfs tmpfs /dev/shm && hostname node{host} && ip link set lo up")
                          for host in range(count)]
            for host in range(count):
                self._join(host)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for process in reversed(self._held):
            process.kill()
            process.communicate()
        self._held = []

    @staticmethod
    def address(host):
        return f"10.83.0.{10 + host}"

    def network_of(self, host):
        """The path of the host's network namespace, for setns()."""
        return f"/proc/{self._pids[host]}/ns/net"

    def prefix(self, host, folder=None):
        """argv that runs a command on the host: append the command."""
        enter = ["nsenter", f"--target={self._pids[host]}", *OWN]
        return enter + ([f"--wd={folder}"] if folder else []) + ["--"]

    def command(self, host, argv, variables):
        """argv that runs a command on the host, in this folder, with more variables: {name: value}."""
        given = [f"{name}={value}" for name, value in variables.items()]
        return [*self.prefix(host, os.getcwd()), "env", *given, *argv]

    def login(self):
        """argv that runs a command where all hosts can be reached, and where agent() can enter them."""
        return ["nsenter", f"--target={self._switch}", "--net", "--"]

    def agent(self, path, variables):
        """Writes a program that a launcher of MPI can use as ssh, under login(): `agent [-OPTIONS] ADDRESS COMMAND...`.
        As with ssh, the command gets no variables of the launcher, only `variables` of each host: {name: value}."""
        lines = ["#!/bin/sh", "while case $1 in -*) true ;; *) false ;; esac do shift; done", "host=$1", "shift",
                 "case $host in"]
        for host in range(self.count):
            given = " ".join(f"{name}='{value}'" for name, value in variables(host).items())
            enter = " ".join(self.prefix(host))
            lines.append(f'{self.address(host)}) exec {enter} env -i PATH="$PATH" {given} sh -c "$*" ;;')
        path.write_text("\n".join([*lines, "esac", 'echo "no host $host" >&2', "exit 1", ""]))
        path.chmod(stat.S_IRWXU)
        return path

    def run(self, host, command):
        self._run_at(self._pids[host], command, OWN)

    def start(self, host, argv, folder=None, **how):
        return subprocess.Popen(self.prefix(host, folder) + argv, **how)

    def end_all(self):
        """Ends all processes on the hosts that commands have left."""
        for host in range(self.count):
            self.run(host, "kill -KILL -1 || true")  # not the first process, which holds the namespaces

    def received(self, host):
        """Bytes that have come to the host since it exists."""
        shown = self._run_at(self._pids[host], "cat /sys/class/net/eth0/statistics/rx_bytes", OWN)
        return int(shown.stdout)

    def disconnect(self, host):
        """The host's link stays up, and what it sends is lost."""
        self._run_at(self._switch, f"ip link set port{host} nomaster", ["--net"])

    def link_down(self, host):
        self.run(host, "ip link set eth0 down")

    def _add(self, kinds, setup):
        self._held.append(_hold(kinds, setup))
        return _holder(self._held[-1])

    def _join(self, host):
        cable = f"ip link add port{host} type veth peer name eth0 netns {self._pids[host]}"
        self._run_at(self._switch, cable, ["--net"])
        self._run_at(self._switch, f"ip link set port{host} master switch up", ["--net"])
        self.run(host, f"echo {CONGESTION} > /proc/sys/net/ipv4/tcp_congestion_control && "
                       f"ip address add {self.address(host)}/24 dev eth0 && ip link set eth0 up")
        self.run(host, f"timeout {DEADLINE} sh -c 'until ip -o link show eth0 | grep -q state.UP; do sleep 0.01; done'")
        if self.rate:  # at both ends: what two others send to a host shares its link too
            limit = f"root tbf rate {self.rate} burst {self.burst} latency 50ms"
            self.run(host, f"tc qdisc add dev eth0 {limit}")
            self._run_at(self._switch, f"tc qdisc add dev port{host} {limit}", ["--net"])

    @staticmethod
    def _run_at(pid, command, kinds):
        return subprocess.run(["nsenter", f"--target={pid}", *kinds, "--", "sh", "-c", command], check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * DEADLINE)
