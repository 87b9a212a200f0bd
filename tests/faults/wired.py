"""Simulated hosts, and wires between them and their network that delay, lose or block packets."""

import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import namespaces  # noqa: E402

WIRE = [sys.executable, str(pathlib.Path(__file__).with_name("wire.py"))]


class WiredHosts(namespaces.Hosts):
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
