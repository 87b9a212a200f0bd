"""The peers of bench/allreduce.py give correct sums and complete lines. No test checks speed.

    peers_test.py --bench TOOL --plugins DIR [--python PYTHON] [--program DDPRUN]
"""
import argparse
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
import contenders  # noqa: E402
import running  # noqa: E402
from options import SKIPPED  # noqa: E402

SIZES = [12, 1 << 20]  # one that ranks divide unevenly, one with several chunks
SAMPLES = 3
ARGS = None


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tmp").mkdir()
        self.settings = self.settings_of(SIZES)

    def settings_of(self, sizes):
        return contenders.Settings(sizes, SAMPLES, 1, 60, False, self.folder)

    def check(self, make, ranks=(2, 3)):
        try:
            peers = make()
        except contenders.NotBuilt as fault:
            self.fail(str(fault))
        except contenders.Absent as reason:
            self.skipTest(str(reason))
        for peer in peers:
            for number in ranks:
                if number > peer.most_ranks:
                    continue
                with self.subTest(peer.name, ranks=number):
                    self.check_cases(peer, list(peer.measure(number)))

    def check_cases(self, peer, cases):
        self.assertEqual([size for _, size, *_ in cases], SIZES)
        for column, _, samples, batch, wrong in cases:
            self.assertEqual((column, wrong, len(samples)), (peer.name, 0, SAMPLES))
            self.assertGreaterEqual(batch, 1)
            self.assertGreater(sum(samples), 0)

    def test_limits(self):
        self.check(lambda: contenders.limits(self.settings), ranks=(2, 3, 4))

    def test_raw_gloo(self):
        self.check(lambda: contenders.raw_gloo(self.settings))

    def test_open_mpi(self):
        self.check(lambda: contenders.mpi(self.settings, "openmpi", ["mpicxx.openmpi"], ["mpirun.openmpi"]))

    def test_torch(self):
        self.check(lambda: contenders.torch_gloo(self.settings, ARGS.python), ranks=(2,))

    def test_a_peer_that_is_not_there_says_why(self):
        with self.assertRaisesRegex(contenders.Absent, "no mpirun.nobody here"):
            contenders.mpi(self.settings, "nobody", ["g++"], ["mpirun.nobody"])
        with self.assertRaisesRegex(contenders.Absent, "no /nobody/python here"):
            contenders.torch_gloo(self.settings, "/nobody/python")
        with self.assertRaisesRegex(contenders.NotBuilt, "nobody.cpp cannot be built"):
            contenders.compile_peer(self.settings, "nobody.cpp", "nobody")

    def test_a_mistake_ends_with_2_and_starts_nothing(self):
        limits = contenders.compile_peer(self.settings, "limits.cpp", "limits")
        for words in (["alone", 2, 1, 1, 4], ["shared", 2, 1, 1, 5], ["shared", 2, 0, 1, 4], ["shared", 2, 1, 1]):
            with self.subTest(words), self.assertRaises(running.Failed) as failed:
                running.run([limits, *words], 10)
            self.assertEqual(failed.exception.code, 2)

    def test_a_mistake_of_raw_gloo_ends_with_2(self):
        try:
            ring, *_ = contenders.raw_gloo(self.settings)
        except contenders.Absent as reason:
            self.skipTest(str(reason))
        program, *_ = ring.command(2)
        for words in (["star", 2, 1, 1, 4], ["ring", "127.0.0.1@/proc/self/ns/net,127.0.0.1", 1, 1, 4]):
            with self.subTest(words), self.assertRaises(running.Failed) as failed:
                running.run([program, *words], 10)
            self.assertEqual(failed.exception.code, 2)

    def test_a_program_that_hangs_is_ended_with_its_children(self):
        path = self.folder / "pid"
        script = f'trap "" TERM; sleep 100 & echo $! > "{path}.new"; mv "{path}.new" "{path}"; wait; wait'
        for limit in (1, 5, 30):  # longer limits in case the shell has not started its child yet
            with mock.patch.object(running, "GRACE", 0.2), self.assertRaisesRegex(running.Failed, f"than {limit} s"):
                running.run(["sh", "-c", script], limit)
            if path.exists():
                break
        child = path.read_text().strip()
        state = pathlib.Path("/proc", child, "stat")
        deadline = time.monotonic() + 10
        while state.exists() and ") Z " not in state.read_text():
            self.assertLess(time.monotonic(), deadline, f"{child} is still there")
            time.sleep(0.01)

    def test_one_that_fails_ends_the_others(self):
        begin = time.monotonic()
        with self.assertRaisesRegex(running.Failed, "exit 7: ended with 7") as failed:
            running.run_together([["sleep", "100"], ["sh", "-c", "exit 7"]], 50)
        self.assertEqual(failed.exception.code, 7)
        self.assertLess(time.monotonic() - begin, 40)
        self.assertEqual(running.run_together([["echo", "a"], ["echo", "b"]], 50), ["a\n", "b\n"])

    def test_a_peer_that_hangs_after_its_last_result_is_counted(self):
        line = '{"library": "some", "size": %d, "batch": 1, "wrong": 0, "samples": [1, 2, 3]}\n'
        printed = "".join(line % size for size in SIZES)
        peer = contenders.Peer(self.settings, "some", lambda ranks: ["sh", "-c", f"printf '{printed}'; sleep 100"])
        with mock.patch.object(contenders, "END", 0.2):
            self.check_cases(peer, list(peer.measure(2)))
        self.assertEqual(peer.hung, 1)
        self.settings.limit = 0.5
        peer = contenders.Peer(self.settings, "some", lambda ranks: ["sh", "-c", f"printf '{line % 12}'; sleep 100"])
        with self.assertRaisesRegex(running.Failed, "took more than 0.5 s"):
            list(peer.measure(2))

    def allreduce(self, *more):
        """bench/allreduce.py on Gloo's plugin and the limits."""
        program = self.folder / "ddprun"  # a build without torch has only ddprun-bench
        program.write_text(f'#!/bin/sh\nshift\nexec "{ARGS.bench}" "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        path = self.folder / "result.json"
        words = [sys.executable, BENCH / "allreduce.py", "--program", program, "--plugin-path", ARGS.plugins, "--quick",
                 "--backends", "gloo:ring", "--peers", "limits", "--sizes", "4,4K", "--json", path, *more]
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False,
                              env=os.environ | {"TMPDIR": str(self.folder / "tmp")})
        return done, json.loads(path.read_text()) if path.exists() else None

    def test_the_table_joins_all(self):
        done, document = self.allreduce()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gloo ring", done.stdout)
        self.assertIn("4 KiB", done.stdout)
        self.assertEqual([(result["column"], result["size"]) for result in document["results"]],
                         [(name, size) for name in ("gloo ring", "limit shared", "limit staged") for size in (4, 4096)])
        for result in document["results"]:
            self.assertEqual((result["wrong"], [len(each["samples"]) for each in result["rounds"]]), (0, [5, 5]))
        self.assertIn("plugin.gloo.version", document["environment"])
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_a_gate_that_cannot_be_judged_is_not_passed(self):
        done, _ = self.allreduce("--gate")
        self.assertEqual(done.returncode, 6)
        self.assertIn("MISSED  2 ranks: shm plugin <= 1 us", done.stdout)

    def test_what_ddprun_refuses_ends_with_its_code(self):
        done, document = self.allreduce("--option", "gloo.nonsense=1")
        self.assertEqual((done.returncode, document), (3, None))
        self.assertIn("nonsense", done.stderr)

    @staticmethod
    def has_torchvision():
        wanted = [ARGS.python, "-c", "import torch, torchvision"]
        return ARGS.python and subprocess.run(wanted, capture_output=True, check=False).returncode == 0

    @staticmethod
    def training(*words):
        return subprocess.run([sys.executable, BENCH / "training.py", "--program", ARGS.program, "--python", ARGS.python,
                               "--quick", *words], capture_output=True, text=True, timeout=250, check=False)

    def test_training_has_a_line_for_each_job(self):
        if not ARGS.program:
            self.skipTest("built without torch: there is no ddprun that trains")
        if not self.has_torchvision():
            self.skipTest(f"{ARGS.python} lacks torch or torchvision")
        path = self.folder / "training.json"
        done = self.training("--rounds", "1", "--jobs", "start", "--backends", "gloo", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(path.read_text())["figures"]
        self.assertEqual(list(figures), ["start to exit"])
        for systems in figures.values():
            self.assertEqual(list(systems), ["PyTorch DDP", "gloo"])
            for rates in systems.values():
                self.assertEqual(len(rates), 1)
                self.assertGreater(min(rates), 0)
        self.assertIn("start to exit", done.stdout)

    @staticmethod
    def pytorch(*words):
        return subprocess.run([sys.executable, BENCH / "pytorch.py", "--python", ARGS.python, "--quick", *words],
                              capture_output=True, text=True, timeout=250, check=False)

    def test_pytorch_compares_gloo_with_itself(self):
        if not self.has_torchvision():
            self.skipTest(f"{ARGS.python} lacks torch or torchvision")
        path = self.folder / "pytorch.json"
        done = self.pytorch("--rounds", "1", "--jobs", "linear,allreduce", "--backends", "gloo", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(path.read_text())
        self.assertEqual(list(document["steps"]), ["linear"])
        self.assertEqual([(column, len(each["steps"]), each["bit_equal"])
                          for column, each in document["steps"]["linear"].items()],
                         [("gloo", 1, True), ("gloo again", 1, True)])
        self.assertEqual(len(document["allreduce"]), 2 * 5)
        self.assertIn("ms per step of the slowest rank", done.stdout)
        self.assertIn("16 MiB", done.stdout)

    def test_pytorch_says_in_one_line_which_backend_is_absent(self):
        if not self.has_torchvision():
            self.skipTest(f"{ARGS.python} lacks torch or torchvision")
        done = self.pytorch("--backends", "gloo,nobody")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Apytorch\.py: \S+ has no backend nobody; .*PYTHONPATH=DIR/lib/ddprun/python\n\Z")

    def test_training_over_a_link(self):
        if not ARGS.program or not self.has_torchvision():
            self.skipTest("no ddprun that trains, or no torchvision")
        path = self.folder / "training.json"
        done = self.training("--rounds", "1", "--jobs", "simplenet", "--backends", "gloo,gloo:bf16", "--link", "1gbit",
                             "--json", path)
        if done.returncode == SKIPPED:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(path.read_text())["figures"]["simplenet"]
        self.assertEqual(list(figures), ["PyTorch DDP", "one rank", "gloo", "gloo:bf16"])
        # 203,530 parameters of 4 or 2 bytes over 1 Gbit/s take 6.5 or 3.3 ms at least; a burst passes at once.
        for system, most in (("PyTorch DDP", 250), ("gloo", 250), ("gloo:bf16", 500)):
            self.assertLess(figures[system][0], most)
        self.assertIn("of the limit", done.stdout)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--python")
    parser.add_argument("--program")
    ARGS = parser.parse_args()
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Peers))
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
