"""The checks of tests/gpu/run without a GPU: one that fails is in the table and in the exit code."""

import importlib.util
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import checks  # noqa: E402
import running  # noqa: E402
import speeds  # noqa: E402
from programs import is_there, script, wait_until  # noqa: E402


class Failures(unittest.TestCase):
    """With programs that stand for the built ones."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = pathlib.Path(self.folder.name)
        (self.build / "bin").mkdir()

    def check(self, *arguments):
        done = subprocess.run([sys.executable, HERE / "checks.py", "--build", self.build, *map(str, arguments)],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def program(self, name, text):
        return script(self.build / "bin" / name, text)

    def test_a_suite_that_passes_is_ok(self):
        self.program("ddprun-conformance", "echo 12 passed, 0 failed, 0 skipped")
        code, out, _ = self.check("--only", "conformance")
        self.assertEqual(code, 0)
        self.assertIn("conformance of nccl, one rank                     ok      12 passed", out)
        self.assertIn("3 ok, 0 failed", out)

    def test_a_suite_that_fails_or_is_skipped_is_a_failure(self):
        for code in [6, 77]:
            self.program("ddprun-conformance", f"echo it is so; exit {code}")
            got, out, _ = self.check("--only", "conformance")
            self.assertEqual(got, 1)
            self.assertIn("FAILED", out)
            self.assertIn("0 ok, 3 failed", out)

    def test_what_a_program_wrote_is_told_where_it_fails_and_kept_in_any_case(self):
        self.program("ddprun-conformance", "echo FAILED float32; echo as stderr >&2; exit 6")
        _, _, err = self.check("--only", "conformance")
        self.assertIn("FAILED float32\nas stderr\n", err)
        log, *_ = sorted((self.build / "logs").glob("*-ddprun-conformance.log"))
        self.assertIn("--plugin nccl", log.read_text())
        self.assertIn("FAILED float32\nas stderr\n", log.read_text())
        with self.assertRaisesRegex(running.Failed, "took more than 3 s:\nthis far"):
            running.run(["sh", "-c", "echo this far; exec sleep 60"], 3)

    def test_a_command_that_is_ended_leaves_its_results_and_no_process(self):
        pid, figures = self.build / "pid", self.build / "figures.json"
        self.program("ddprun-conformance", f"""
            case "$*" in *"--ranks 1"*) echo the first; exit 0 ;; esac
            echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 60""")
        for end in ["terminate", "kill"]:
            with subprocess.Popen([sys.executable, HERE / "checks.py", "--build", self.build, "--gpus", "2", "--only",
                                   "conformance", "--json", figures], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True) as process:
                wait_until(pid.exists)
                getattr(process, end)()
                _, err = process.communicate(timeout=60)
            self.assertIn("conformance of nccl, one rank  ok      the first\n", err)
            self.assertEqual([each["text"] for each in json.loads(figures.read_text())["results"]], ["the first"])
            wait_until(lambda: not is_there(int(pid.read_text())))
            pid.unlink()
            figures.unlink()

    def test_three_ranks_on_one_gpu_run_some_cases_and_fewer_all(self):
        self.program("ddprun-conformance", 'echo "$*"')
        _, out, _ = self.check("--only", "conformance")
        filters = {re.search(r"--ranks (\S+)", line)[1]: "--filter float32" in line for line in out.splitlines()[1:-1]}
        self.assertEqual(filters, {"1": False, "2": False, "3": True})

    def test_all_gpus_are_tested_where_there_are_several(self):
        self.program("ddprun-conformance", 'echo "$*"')
        _, out, _ = self.check("--only", "conformance", "--gpus", 4)
        self.assertEqual(out.count("--fault-deadline 5000"), 4)
        self.assertIn("conformance of nccl, 4 GPUs", out)
        self.assertIn("--ranks 2,4", out)

    def test_ucx_is_held_to_the_memory_of_gpus_where_its_folder_is_named(self):
        self.program("ddprun-conformance", 'echo "$*"')
        code, out, _ = self.check("--only", "ucx", "--ucx")  # there is no program to train with
        self.assertEqual(code, 1)
        self.assertIn("conformance of ucx, 2 ranks on one GPU           ok ", out)
        self.assertIn("--memory cuda --ranks 2 --as processes", out)
        self.assertNotIn("ucx", checks.arguments([]).only)
        self.assertIn("ucx", checks.arguments(["--ucx"]).only)

    def test_a_check_that_fails_does_not_keep_the_others_from_running(self):
        self.program("ddprun-conformance", "echo fine")
        got, out, _ = self.check("--only", "training,busbw,conformance")  # there is no program to train with
        self.assertEqual(got, 1)
        self.assertIn("3 ok, 2 failed", out)

    def train_with(self, on_cpu, on_gpu, by_heart=0.1, served="ring tree"):
        """A ddprun whose every run leaves these test losses, and ResNet-18's this training loss. NCCL reports the algorithms
        that are named in `served` where they were asked for."""
        self.program("ddprun", f"""
            grep -q '"cpu"' "$2" && loss={on_cpu} || loss={on_gpu}
            cat "$2" >>{self.build}/configs
            for name in {served}; do
              algorithm=$(echo $name | tr a-z A-Z)
              path=$(sed -n "s/^comm.options.debug_file = \\"\\(.*nccl-$name\\)[.]%p\\"$/\\1/p" "$2")
              [ -z "$path" ] || echo "NCCL INFO AllReduce: 8 Bytes -> Algo $algorithm proto LL" >"$path.1"
            done
            grep -q resnet18 "$2" && learnt={by_heart} || learnt=$loss
            mkdir -p {self.build}/r && : >{self.build}/r/steps-rank0.jsonl
            echo "{{\\"train.loss\\": $learnt, \\"test.loss\\": $loss}}" >{self.build}/r/summary.json
            echo run folder: {self.build}/r""")
        return self.check("--only", "training", "--quick")

    def test_a_loss_that_is_not_the_cpus_is_a_failure(self):
        self.assertEqual(self.train_with(2.0, 2.001)[0], 0)
        code, out, _ = self.train_with(2.0, 2.08)
        self.assertEqual(code, 1)
        self.assertIn("training, single                      FAILED  linear 2.08 / 2.08 (CPU 2 / 2)", out)
        self.assertIn("training, single, bf16                ok      linear", out)
        self.assertIn("training, single, fp16                ok      simplenet", out)
        self.assertEqual(self.train_with(2.0, "NaN")[0], 1)

    def test_ring_and_tree_are_forced_and_nccl_must_report_them(self):
        _, out, _ = self.train_with(2.0, 2.0, served="ring")
        configs = (self.build / "configs").read_text()
        for name, result in [("ring", "ok"), ("tree", "FAILED")]:
            self.assertRegex(out, rf"training, ddp, nccl, {name} +{result}")
            self.assertIn(f'comm.algorithm = "{name}"\n', configs)

    def test_a_resnet_that_has_not_learnt_its_batch_is_a_failure_under_every_strategy(self):
        for loss in [2.3, "NaN"]:
            code, out, _ = self.train_with(2.0, 2.001, loss)
            self.assertEqual(code, 1)
            self.assertIn("\n0 ok, ", out)

    def busbw_of(self, *seconds):
        """Of calls by ddprun, in turns, where the loop takes one second."""
        machine, turn = checks.Machine(self.build, 2, False, self.build), itertools.cycle(seconds)
        with unittest.mock.patch.multiple(speeds, loop=lambda machine, sizes, samples: [1.0 for _ in sizes],
                                          bench=lambda machine, sizes, samples: [next(turn)] * len(sizes)):
            return list(checks.busbw(machine))

    def test_busbw_is_a_failure_where_its_whole_interval_is_below_what_is_wanted(self):
        self.assertTrue(all(result.good for result in self.busbw_of(1.01)))
        self.assertFalse(all(result.good for result in self.busbw_of(1.05)))
        noisy = self.busbw_of(0.95, 1.1, 1.05)  # the median is 0.952, and three of nine are above
        self.assertTrue(all(result.good for result in noisy))
        self.assertIn("ratio 0.952, 0.909 to 1.053 (wanted 0.98)", noisy[-1].text)

    def test_the_interval_of_a_median_is_the_sign_tests(self):
        for count, cut in [(1, 0), (5, 0), (8, 0), (9, 1), (11, 1), (12, 2), (25, 7)]:  # of its tables
            self.assertEqual(speeds.interval_of(range(count)), (cut, count - 1 - cut))

    def test_a_sample_of_the_loop_is_the_slowest_ranks(self):
        told = ["1024 10.0 11.0 14.0 14.5\n4096 20 21 22 23\n", "1024 10.5 10.8 12.0 15.0\n4096 20 21 22 23\n"]
        self.assertEqual(speeds.slowest(told), [1.0 / 20, 1.0 / 20])  # at 1024: 0.5, 3.0 and 1.0

    def test_the_figures_are_kept(self):
        self.program("ddprun-conformance", "echo fine")
        path = self.build / "figures.json"
        self.check("--only", "conformance", "--json", path)
        self.assertEqual(json.loads(path.read_text())["results"][0]["text"], "fine")


class Parity(unittest.TestCase):
    """Of the file of the same name as one of bench/, which wants modules that not every Python has."""

    def setUp(self):
        wanted = dict.fromkeys(["numpy", "safetensors", "safetensors.numpy"], unittest.mock.MagicMock())
        path = checks.ROOT / "tests" / "parity" / "comparison.py"
        spec = importlib.util.spec_from_file_location("parity_comparison", path)
        self.comparison = importlib.util.module_from_spec(spec)
        with unittest.mock.patch.dict(sys.modules, wanted | {spec.name: self.comparison}):
            spec.loader.exec_module(self.comparison)

    def compare(self, right, exact):
        """An epoch whose test has so many right answers of 100, where PyTorch has 90."""
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder)
            (run / "epochs.jsonl").write_text(json.dumps(
                {"train.loss": 1.0, "train.loss_by_rank": [1.0], "test.loss": 1.0, "test.accuracy": right / 100}))
            pythons = [{"steps": [{"epoch": 1, "loss": 1.0, "samples": 4}],
                        "tests": [{"loss": 1.0, "right": 90, "samples": 100}]}]
            self.comparison.compare_epochs(self.comparison.Measured(), run, pythons, exact)

    def test_one_sample_may_fall_to_the_other_side_where_losses_need_not_be_equal(self):
        self.compare(90, exact=True)
        for right in [89, 90, 91]:
            self.compare(right, exact=False)
        for right, exact in [(89, True), (91, True), (88, False), (92, False)]:
            with self.assertRaises(self.comparison.Mismatch):
                self.compare(right, exact)


unittest.main()
