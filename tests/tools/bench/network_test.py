"""bench/network.py measures between simulated hosts, names what it skips, and leaves nothing. No test checks speed.

    network_test.py --bench TOOL --plugins DIR --backends NAME,...
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
import contenders  # noqa: E402
import namespaces  # noqa: E402
import network  # noqa: E402
import running  # noqa: E402

DEADLINE = 300  # seconds for a comparison: other tests run at the same time
ARGS = None


def wait_until(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {DEADLINE} s")
        time.sleep(0.02)


class Network(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        self.environment = os.environ | {"TMPDIR": str(self.tmp)}

    def words(self, *more):
        program = self.folder / "ddprun"  # a build without torch has only ddprun-bench
        program.write_text(f'#!/bin/sh\nshift\nexec "{ARGS.bench}" "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return [sys.executable, BENCH / "network.py", "--program", program, "--plugin-path", ARGS.plugins, "--quick",
                "--sizes", "4,4K", "--rounds", "1", "-n", "2", "-w", "1", "--backends", "gloo", *more]

    def compare(self, *more):
        path = self.folder / "result.json"
        done = subprocess.run(self.words("--json", path, *more), capture_output=True, text=True, timeout=DEADLINE,
                              check=False, env=self.environment)
        return done, json.loads(path.read_text()) if path.exists() else None

    def left(self):
        """Processes of a comparison, also in other namespaces. A namespace without a name lasts as long as they do."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.folder).encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes())
        return found

    def check_nothing_is_left(self):
        wait_until(lambda: not self.left(), "all processes have ended")
        self.assertEqual(list(self.tmp.iterdir()), [])

    def check_results(self, place, own):
        columns = list(dict.fromkeys(result["column"] for result in place["results"]))
        self.assertCountEqual([(result["column"], result["size"]) for result in place["results"]],
                              [(column, size) for column in columns for size in (4, 4096)])
        for result in place["results"]:
            self.assertEqual((result["wrong"], len(result["rounds"])), (0, 1))
            self.assertGreater(result["host_rate"], 0)
        for size, found in zip((4, 4096), place["summary"], strict=True):
            self.assertEqual(found["size"], size)
            self.assertIn(found["ours"], own(columns))
            self.assertIn(found["peer"], columns)
            self.assertNotIn(found["peer"], own(columns))
            self.assertLessEqual(found["interval"][0], found["ratio"])
        return columns

    def test_every_system_between_two_and_three_hosts(self):
        done, document = self.compare("--hosts", "2,3", "--backends", ARGS.backends)
        self.assertEqual(done.returncode, 0, done.stderr)
        skipped = {name for name in network.PEERS if f"skipped: {name}:" in done.stderr}
        names = {"openmpi": ["openmpi"], "mpich": ["mpich"], "iperf3": ["limit iperf3"],
                 "ucx_perftest": ["limit ucx_perftest"],
                 "gloo": ["raw gloo ring", "raw gloo bcube", "raw gloo hd"]}
        for place, hosts in zip(document["places"], (2, 3), strict=True):
            self.assertEqual((place["hosts"], place["link"]), (hosts, "unlimited"))
            self.assertIn(f"{hosts} hosts, link unlimited: us per float32 sum allreduce", done.stdout)
            backends = ARGS.backends.split(",")
            columns = self.check_results(place, lambda columns: [
                column for column in columns if column.split()[0] in backends])
            for peer, wanted in names.items():
                for column in wanted:
                    self.assertEqual(column in columns, peer not in skipped, column)
        self.check_nothing_is_left()
        for name in sorted(skipped):
            print(f"skipped: {name} is not installed here", flush=True)

    def test_a_link_with_a_rate_and_a_gate_that_is_not_passed(self):
        # The second bound has no size here, so it cannot hold.
        done, document = self.compare("--link", "100mbit", "--peers", "gloo", "--gate")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertEqual(document["places"][0]["link"], "100mbit")
        self.assertIn("no size  2 ranks: limit iperf3 / best ddprun >= 0.93", done.stdout)

    def test_several_ranks_on_each_host(self):
        done, document = self.compare("--ranks-per-host", "2", "--backends", "gloo:ring,gloo:hierarchical",
                                      "--peers", "openmpi,gloo", "--hosts", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 hosts with 2 ranks each, link unlimited", done.stdout)
        # 1.15 times the limit; there is no size from 1 MiB.
        self.assertIn("no size  4 ranks: limit iperf3 / best ddprun >= 0.87", done.stdout)
        place = document["places"][0]
        self.assertEqual((place["hosts"], place["ranks_per_host"]), (2, 2))
        columns = {result["column"] for result in place["results"]}
        self.assertLessEqual({"gloo ring", "gloo hierarchical"}, columns)
        self.assertEqual({result["ranks"] for result in place["results"]}, {4})

    def test_the_link_has_the_rate(self):
        with namespaces.Hosts(2, "100mbit") as hosts:
            for host in range(2):
                shown = subprocess.run([*hosts.prefix(host), "tc", "qdisc", "show", "dev", "eth0"], capture_output=True,
                                       text=True, check=True, timeout=DEADLINE)
                self.assertIn("tbf", shown.stdout)
                self.assertIn("100Mbit", shown.stdout)

    def test_a_peer_that_is_missing_is_named(self):
        done, document = self.compare("--peers", "iperf3", "--mpi", "nobody", "mpicxx.nobody", "mpiexec.nobody")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("network.py: skipped: nobody: no mpiexec.nobody here", done.stderr)
        self.assertIsNone(document["places"][0]["summary"][0]["peer"])
        with mock.patch("shutil.which", return_value=None):
            settings = contenders.Settings([4], 1, 1, 10, True, self.folder)
            args = network.arguments(["--program", "ddprun"])
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(list(network.peers_of(args, settings)), [])
        for name, reason in (("openmpi", "no mpirun.openmpi here"), ("mpich", "no mpiexec.hydra here"),
                             ("gloo", "no g++ here"), ("iperf3", "no iperf3 here"),
                             ("ucx_perftest", "no ucx_perftest here; set DDPRUN_UCX_DIR")):
            self.assertIn(f"skipped: {name}: {reason}", said.getvalue())

    def test_what_ddprun_refuses_ends_with_its_code(self):
        done, document = self.compare("--peers", "iperf3", "--option", "gloo.nonsense=1")
        self.assertEqual((done.returncode, document), (3, None), done.stderr)
        self.assertIn("nonsense", done.stderr)
        self.check_nothing_is_left()

    def test_a_wrong_sum_is_a_failure(self):
        place = network.Place(2, "unlimited", 1)
        place.table.own.add("gloo")
        place.table.add(2, "gloo", 4, [1.0], 1, 3)
        own = [types.SimpleNamespace(environment={"host": "here", "cpu_model": "", "cores": 2, "load": ""})]
        args = network.arguments(["--program", "ddprun"])
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(network.report(args, [place], own, []), 6)
        self.assertIn("gloo, 2 hosts, link unlimited, 4 B: 3 wrong elements", said.getvalue())

    def test_sums_that_did_not_pass_the_link_are_a_failure(self):
        contender = types.SimpleNamespace(name="openmpi", measure=lambda hosts: [("openmpi", 400, [1e-6] * 2, 5, 0)])
        received = [100, 4100]
        hosts = types.SimpleNamespace(received=lambda host: received.pop(0), end_all=lambda: None)
        self.assertEqual(len(network.over_link(contender, hosts)), 1)
        received += [100, 4099]
        with self.assertRaisesRegex(running.Failed, "received 3999 bytes over its link instead of at least 4000"):
            network.over_link(contender, hosts)

    def test_nothing_is_left_after_a_signal(self):
        for sent, code, peers in ((signal.SIGINT, 130, "openmpi"), (signal.SIGTERM, 143, "iperf3"),
                                  (signal.SIGKILL, -signal.SIGKILL, "gloo")):
            with self.subTest(sent):
                said = self.folder / "said"
                with said.open("w") as file:
                    words = self.words("--peers", peers, "--rounds", "1000", "--sizes", "64K", "-n", "1000")
                    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file, env=self.environment)
                # The order is reversed in the second round, so the peer runs then.
                wait_until(lambda: "round 2 of" in said.read_text() or process.poll() is not None, "a second round")
                process.send_signal(sent)
                self.assertEqual(process.wait(DEADLINE), code, said.read_text())
                wait_until(lambda: not self.left(), f"all processes have ended: {self.left()}")
                if sent != signal.SIGKILL:
                    self.assertEqual(list(self.tmp.iterdir()), [])

    def test_without_root_it_says_so(self):
        said = io.StringIO()
        with mock.patch("os.geteuid", return_value=1000), contextlib.redirect_stderr(said):
            self.assertEqual(network.main(["--program", "ddprun"]), 77)
        self.assertEqual(said.getvalue(), "network.py: skipped: needs root\n")
        with mock.patch("shutil.which", return_value=None):
            self.assertIn("no ip and no unshare and no nsenter and no setpriv and no tc", namespaces.why_not("1gbit"))


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--backends", required=True)
    ARGS = parser.parse_args()
    if reason := "needs root" if os.geteuid() != 0 else namespaces.why_not("100mbit"):
        print(f"skipped: {reason}")
        return 77
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Network))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
