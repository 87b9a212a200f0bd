"""The suite and the benchmark over backends of torch.distributed. Each test runs the programs as a user does."""
import argparse
import os
import re
import subprocess
import sys
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("--conformance", required=True)
parser.add_argument("--bench", required=True)
parser.add_argument("--python", required=True, help="a Python with torch")
args = parser.parse_args()

RANKS = ["--ranks", "2", "--as", "processes", "--slack", "15000"]


def run(*command, python=args.python, **variables):
    """(exit code, output)"""
    done = subprocess.run(command, env={**os.environ, "DDPRUN_PYTHON": python, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


def conformance(plugin, *options, **how):
    return run(args.conformance, "--plugin", plugin, *RANKS, *options, **how)


class C10d(unittest.TestCase):
    def test_collectives_of_gloo_pass(self):
        wanted = ["float32 sum count 7", "allgather auto bfloat16", "broadcast auto float32", "int64 max count 1024"]
        code, output = conformance("c10d:gloo", *(word for one in wanted for word in ("--filter", one)))
        self.assertEqual(code, 0, output)
        for group in ("allreduce auto", "reduce_scatter auto", "allgather auto", "broadcast auto"):
            self.assertRegex(output, group + r" +[1-9]\d* passed\n")

    def test_process_and_its_settings_stay_as_they_are(self):
        code, output = conformance("c10d:gloo", "--filter", "settings of the process", "--filter", "no CPU is used")
        self.assertEqual(code, 0, output)

    def test_an_abort_ends_a_blocked_allreduce(self):
        code, output = conformance("c10d:gloo", "--filter", "abort: allreduce auto, blocked")
        self.assertEqual(code, 0, output)

    def test_a_backend_of_a_module_that_is_wrong_fails(self):
        code, output = conformance("c10d:fake", "--option", "module=torch.testing._internal.distributed.fake_pg",
                                   "--filter", "allreduce auto float32 sum count 7")
        self.assertEqual(code, 6, output)
        self.assertRegex(output, "FAILED .*allreduce auto float32 sum count 7 out of place")

    def test_a_backend_that_does_not_exist_is_refused(self):
        code, output = conformance("c10d:nothing")
        self.assertEqual(code, 3, output)
        self.assertIn("nothing: torch.distributed has no such backend", output)

    def test_a_python_that_does_not_exist_is_named(self):
        code, output = conformance("c10d:gloo", python="/no/python")
        self.assertEqual(code, 3, output)
        self.assertRegex(output, "/no/python: not found; set DDPRUN_PYTHON to a Python with torch\n")

    def test_bench_measures_gloo_beside_another_backend(self):
        code, output = run(args.bench, "--backend", "shm,c10d:gloo", "--ranks", "2", "--sizes", "64", "-n", "3", "-w",
                           "1", "--rounds", "1", "-c", "1")
        self.assertEqual(code, 0, output)
        rows = re.findall(r"^ +64 .* (shm|c10d) +auto +(\S+) .* (\d+)$", output, re.M)
        self.assertIn(("c10d", "c10d/gloo", "0"), rows)
        self.assertIn("shm", [row[0] for row in rows])


def why_not():
    """Why this machine cannot run these tests, or nothing."""
    code, output = run(args.python, "-c", "import torch.distributed as d; assert d.is_gloo_available()")
    if code != 0:
        return f"{args.python} has no torch with Gloo"
    code, output = conformance("c10d:gloo", "--filter", "null buffers")
    missing = re.search(r"[^\n]*install libpython for [^\n]*", output)
    return missing.group().strip() if missing else ""


if __name__ == "__main__":
    why = why_not()
    if why:
        print("skipped:", why)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], "-v"])
