#!/usr/bin/env python3
"""`ddprun compare` of PyTorch programs that were not changed for it, over Gloo on two ranks.

    programs_test.py FOLDER_OF_PROGRAMS

Ends with 77 if torch is missing. Of times it expects only that a sleep is found.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import torch.distributed.run  # torchrun
except ImportError as missing:
    print(f"skipped: {sys.executable}: {missing}; set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/bin")
HERE = pathlib.Path(__file__).parent
PATIENCE = 400  # seconds
TRAIN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(HERE / "trained_program.py")]
TRAIN_CPP = [str(BIN / "ddprun"), "launch", "-n", "2", str(BIN / "recorded_program")]
ROW = {"collective": "allreduce", "ranks": 2, "backend": "gloo", "algorithm": "ring", "buffer": "malloc", "in_place": True,
       "served": {"algorithm": "ring", "transport": "tcp"}}  # of ddprun bench
PARTS = ("data", "forward", "backward", "comm", "optimizer")


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def wait_until(holds, what):
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.1)


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments, **variables):
        command = [BIN / "ddprun-compare", "--output", self.folder / "out", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "OMP_NUM_THREADS": "1", **variables})

    def compare(self, *arguments, **variables):
        process = self.start(*arguments, **variables)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def result(self):
        (folder,) = (self.folder / "out").iterdir()
        return json.loads((folder / "compare.json").read_text())

    def test_an_unchanged_program_is_recorded_and_a_single_run_has_no_verdict(self):
        code, out, err = self.compare("--aa", "--repeats", "1", "--parity-steps", "2", "--", *TRAIN)
        self.assertEqual(code, 0, err)
        self.assertIn("no verdict from a single run", out)
        comparison = self.result()
        self.assertEqual([one["name"] for one in comparison["variants"]], ["unchanged", "unchanged (twin)"])
        runs = self.check_variants(comparison)
        for run in runs:
            self.check_records(run)
        code, out, err = self.predict(runs[0])
        self.assertEqual(code, 2)
        self.assertIn("has 7 steps that count", err)

    def check_variants(self, comparison):
        """All variants have equal tensors and losses. Returns the folder of the first run of each."""
        parity = comparison["against_first"][0]["parity"]
        self.assertEqual((parity["tensor_steps"], parity["loss_steps"], parity["first_tensor"]), (2, 12, None))
        for variant in comparison["variants"]:
            self.assertEqual((variant["parity"]["ranks"], variant["parity"]["ranks_part"]), (2, None))
            self.assertEqual(variant["median"]["comm.bytes"], 4 * (64 * 32 + 32 + 32 * 10 + 10))
        runs = [pathlib.Path(variant["runs"][0]["folder"]) for variant in comparison["variants"]]
        page = subprocess.run([BIN / "ddprun-report", runs[0], "--csv", self.folder / "steps.csv"], check=True, timeout=60)
        self.assertEqual(len((self.folder / "steps.csv").read_text().splitlines()), 1 + 2 * 12, page)
        return runs

    def steps_of(self, run):
        """Those of both ranks."""
        for rank in range(2):
            steps = read_lines(run / f"steps-rank{rank}.jsonl")
            self.assertEqual([one["step"] for one in steps], list(range(1, 13)))
            for step in steps:
                self.assertEqual(step["samples"], 16)
                self.assertGreater(step["loss"], 0)
                yield step

    def check_verdict(self, comparison, part):
        """Of a second variant that sleeps. On a busy machine, two runs need not be enough for "slower"."""
        verdict = comparison["against_first"][0]["verdict"]
        self.assertNotEqual(verdict, "faster")
        if verdict == "slower":
            self.assertIn(f"% {part}", comparison["ceiling"])

    def predict(self, run):
        bench = self.folder / "bench.json"
        bench.write_text(json.dumps({"ddprun_bench": 1, "hosts": [{"name": f"node{i}", "ranks": [i]} for i in range(2)],
                                     "rows": [ROW | {"size": size, "median": 1e-5 + size * 1e-8}
                                              for size in (1 << 12, 1 << 16, 1 << 20)]}))
        ended = subprocess.run([BIN / "ddprun-predict", run, "--bench", bench, "--hosts", "2", "--json",
                                self.folder / "predicted.json"], capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stdout, ended.stderr

    def check_records(self, run):
        for step in self.steps_of(run):
            for part in ("forward", "backward", "comm", "optimizer"):
                self.assertGreater(step[part], 0, step)
            rest = step["total"] - sum(step[part] for part in PARTS)
            self.assertGreater(rest, -1e-9)
            self.assertLess(rest, step["total"] / 2)
            if step["step"] == 7:
                self.assertLess(step["data"], 1, "the evaluation is not in a step")
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["steps"], summary["world"], summary["backend"], summary["batch"]), (12, 2, "gloo", 32))
        self.assertEqual(summary["model"], "Sequential")

    def test_a_sleep_in_one_variant_is_data_wait(self):
        code, out, err = self.compare("--vary", "env.NAP=0,0.2", "--repeats", "2", "--warmup-steps", "2", "--parity-steps",
                                      "0", "--", *TRAIN, STEPS="16")
        self.assertEqual(code, 0, err)
        comparison = self.result()
        self.assertEqual(comparison["differing_keys"], ["env.NAP"])
        against = comparison["against_first"][0]
        self.assertEqual(against["name"], "NAP=0.2")
        quick, slow = (one["median"]["split"]["data"] for one in comparison["variants"])
        self.assertGreater(slow, max(0.19, quick), out)
        self.check_verdict(comparison, "data wait")
        code, out, err = self.predict(comparison["variants"][1]["runs"][0]["folder"])
        self.assertEqual(code, 0, err)
        self.assertIn("in 1 bucket.", out)
        self.assertGreater(json.loads((self.folder / "predicted.json").read_text())["methods"][0]["rows"][1]["step"], 0.2)
        # Another number of steps is other work.
        code, out, err = self.compare("--vary", "env.STEPS=12,14", "--repeats", "1", "--", *TRAIN)
        self.assertEqual(code, 2, err)
        self.assertIn("train.steps: 12 in STEPS=12, 14 in STEPS=14", err)

    def test_commands_of_the_shell_and_places_in_arguments(self):
        code, out, err = self.compare("--command", "one=" + " ".join(TRAIN), "--command", "two=STEPS=12 " + " ".join(TRAIN),
                                      "--repeats", "1", "-q")
        self.assertEqual(code, 0, err)
        self.assertEqual([one["name"] for one in self.result()["variants"]], ["one", "two"])
        code, out, err = self.compare("--vary", "code=3,4", "--", sys.executable, "-c", "import sys; sys.exit({code})")
        self.assertEqual(code, 3, err)
        self.assertIn("round 1 of 5: code=3: exit code 3; its log: ", err)

    def test_the_backend_is_chosen_or_refused_and_the_cause_is_named(self):
        code, out, err = self.compare("--vary", "backend=gloo,nonsense", "--repeats", "1", "-q", "--", *TRAIN)
        self.assertEqual(code, 1, err)
        self.assertIn("nonsense: RuntimeError: ddprun: DDPRUN_TORCH_BACKEND=nonsense: Torch has no such backend", err)
        self.assertIn("; its log: ", err)
        code, out, err = self.compare("--aa", "--", *TRAIN, ERROR="bad luck")
        self.assertEqual(code, 1, err)
        self.assertIn("ValueError: bad luck; its log: ", err)

    def test_a_cpp_program_of_the_library_is_recorded(self):
        code, out, err = self.compare("--vary", "backend=gloo,ddprun_shm", "--repeats", "2", "--parity-steps", "2", "--",
                                      *TRAIN_CPP, BACKEND="gloo")
        self.assertEqual(code, 0, err)
        comparison = self.result()
        against = comparison["against_first"][0]
        self.assertTrue(against["verdict"], out)
        self.assertGreater(against["ratio"]["value"], 0)
        self.assertEqual(comparison["environment"]["program"], " ".join(TRAIN_CPP))
        for run, backend in zip(self.check_variants(comparison), ("gloo", "shm")):
            summary = json.loads((run / "summary.json").read_text())
            self.assertEqual((summary["steps"], summary["world"], summary["backend"]), (12, 2, backend))
            for step in self.steps_of(run):
                self.assertGreater(min(step["backward"], step["comm"]), 0)
                self.assertLess(step["backward"] + step["comm"], step["total"])
                for part in ("data", "forward", "optimizer"):
                    self.assertNotIn(part, step, "nothing of LibTorch shows it")

    def test_a_sleep_in_a_cpp_program_is_outside_of_backward(self):
        code, out, err = self.compare("--vary", "env.NAP=0,0.2", "--repeats", "2", "--", *TRAIN_CPP, SILENT="1")
        self.assertEqual(code, 0, err)
        comparison = self.result()
        self.assertGreater(comparison["variants"][1]["median"]["split"]["other"], 0.19)
        self.check_verdict(comparison, "other")
        code, out, err = self.compare("--vary", "env.STEPS=12,14", "--repeats", "1", "--", *TRAIN_CPP)
        self.assertEqual(code, 2, err)
        self.assertIn("train.steps: 12 in STEPS=12, 14 in STEPS=14", err)

    def test_a_backend_that_a_cpp_program_cannot_have_is_refused(self):
        code, out, err = self.compare("--vary", "backend=gloo,nonsense", "--repeats", "1", "-q", "--", *TRAIN_CPP)
        self.assertNotEqual(code, 0)
        self.assertIn('comm plugin "nonsense": not found', err)
        self.assertEqual(len(err.splitlines()), 1, err)

    def test_what_leaves_no_record_is_said(self):
        code, out, err = self.compare("--aa", "--", sys.executable, "-c", "print()")
        self.assertEqual(code, 1, err)
        self.assertIn("nothing was recorded: none of its Python processes made a step", err)

    def test_the_hidden_sitecustomize_runs_too(self):
        (self.folder / "sitecustomize.py").write_text("import os; os._exit(5)\n")
        code, out, err = self.compare("--aa", "--", sys.executable, "-c", "print()", PYTHONPATH=str(self.folder))
        self.assertEqual(code, 5, err)

    def test_no_rank_outlives_the_command(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            pids = self.folder / f"pids{number}"
            pids.mkdir()
            process = self.start("--aa", "--", *TRAIN, PIDS=str(pids), STEPS="100000", NAP="0.1")
            try:
                wait_until(lambda: len(list(pids.iterdir())) == 2, "the ranks did not start")
            finally:
                process.send_signal(number)
            process.communicate(timeout=60)
            for pid in pids.iterdir():
                wait_until(lambda: not pathlib.Path("/proc", pid.name).exists(), f"rank {pid.name} lives after {number}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
