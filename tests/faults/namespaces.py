"""Simulated hosts: each has network, PID, IPC and mount namespaces of its own. A bridge connects them. Needs root."""

import pathlib
import subprocess
import sys

WIRE = [sys.executable, str(pathlib.Path(__file__).with_name("wire.py"))]
OWN = ["--net", "--pid", "--ipc", "--mount", "--uts"]


def why_not():
    """Why hosts cannot be made here; "" if they can."""
    try:
        with Hosts(1):
            return ""
    except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
        return f"no hosts from namespaces (needs CAP_SYS_ADMIN, ip, unshare, nsenter): {error}"


def _hold(kinds, setup):
    """A process that holds new namespaces. In a PID namespace the kernel ends the others with it."""
    fork = ["--fork", "--kill-child"] if "--pid" in kinds else []
    process = subprocess.Popen(["unshare", *kinds, *fork, "sh", "-c", setup + " && echo ready && exec sleep infinity"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        process.kill()
        raise RuntimeError(process.communicate()[1].strip())
    return process


def _holder(process):
    """The first process inside: `unshare --fork` itself stays in the old PID namespace."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
        return int((children.read().split() or [process.pid])[0])


class Hosts:
    """Host h has the name "node<h>", the address 10.83.0.(10+h) at eth0, its own /dev/shm."""

    def __init__(self, count):
        self.count = count
        self._held = []
        try:
            self._switch = self._add(["--net"], "true")
            self._run_at(self._switch, "ip link add switch up type bridge", ["--net"])
            self._pids = [self._add(OWN, f"mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm && "
                                         f"hostname node{host} && ip link set lo up") for host in range(count)]
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

    def prefix(self, host, folder=None):
        """argv that runs a command on the host: append the command."""
        enter = ["nsenter", f"--target={self._pids[host]}", *OWN]
        return enter + ([f"--wd={folder}"] if folder else []) + ["--"]

    def run(self, host, command):
        self._run_at(self._pids[host], command, OWN)

    def start(self, host, argv, folder=None, **how):
        return subprocess.Popen(self.prefix(host, folder) + argv, **how)

    def disconnect(self, host):
        """The host's link stays up, and what it sends is lost."""
        self._run_at(self._switch, f"ip link set port{host} nomaster", ["--net"])

    def link_down(self, host):
        self.run(host, "ip link set eth0 down")

    def wire(self, host):
        """Puts a Wire between the host and the bridge. Call it before anything is sent."""
        for each in range(self.count):
            subprocess.run(self.prefix(each) + WIRE + ["offloads-off", "eth0"], check=True)
        self.disconnect(host)
        self._run_at(self._switch, f"ip link add wire{host} up type veth peer name far{host} && "
                                   f"ip link set far{host} master switch up", ["--net"])
        process = subprocess.Popen(["nsenter", f"--target={self._switch}", "--net", "--", *WIRE, f"port{host}",
                                    f"wire{host}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self._held.append(process)
        return Wire(process)

    def _add(self, kinds, setup):
        self._held.append(_hold(kinds, setup))
        return _holder(self._held[-1])

    def _join(self, host):
        cable = f"ip link add port{host} type veth peer name eth0 netns {self._pids[host]}"
        self._run_at(self._switch, cable, ["--net"])
        self._run_at(self._switch, f"ip link set port{host} master switch up", ["--net"])
        self.run(host, f"ip address add {self.address(host)}/24 dev eth0 && ip link set eth0 up")
        self.run(host, "timeout 30 sh -c 'until ip -o link show eth0 | grep -q state.UP; do sleep 0.01; done'")

    @staticmethod
    def _run_at(pid, command, kinds):
        subprocess.run(["nsenter", f"--target={pid}", *kinds, "--", "sh", "-c", command], check=True,
                       stdin=subprocess.DEVNULL, capture_output=True)


class Wire:
    """What a host sends and receives passes through it (wire.py lists the commands)."""

    def __init__(self, process):
        self._process = process
        self._expect_ok()

    def set(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self._expect_ok()

    def _expect_ok(self):
        if self._process.stdout.readline() != "ok\n":
            raise RuntimeError("the wire failed: " + self._process.communicate()[1])
