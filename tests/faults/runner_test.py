#!/usr/bin/env python3
"""The runner of the fault matrix: a wrong rank, cause or exit code, a missed bound or a leftover makes a row fail."""

import pathlib
import random
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import harness  # noqa: E402
import private  # noqa: E402
from harness import Outcome, Result, Row, Skip, ended  # noqa: E402

FAILED = "ddprun: failed: rank 1 (host, pid 47) step 6 phase forward: killed by signal 9 (SIGKILL)"


def result_of(*outcomes, bound=1.0, detect=None):
    return Result(Row("a fault", "an end", bound, None, detect=detect), "shm", list(outcomes))


def job_that(script):
    """A trial whose job is a shell script instead of ddprun; it must end with rank 1, signal 9 and exit code 5."""
    def trial(place, backend, rng):
        job = place.start(["sh", "-c", script], {"FAILED": FAILED})
        return ended(place, job, job.started, rank=1, cause=r"killed by signal 9 \(SIGKILL\)")
    return trial


def run(trial, bound=30.0):
    row = Row("a fault", "an end", bound, trial)
    return harness.run_row(row, "any", pathlib.Path("/none"), 1, 1, lambda text: None)


class Statistics(unittest.TestCase):
    def test_percentiles_are_values_that_were_measured(self):
        values = random.Random(1).sample(range(1, 201), 200)
        self.assertEqual([harness.percentile(values, share) for share in (0.5, 0.99, 1)], [100, 198, 200])
        self.assertEqual([harness.percentile([7], share) for share in (0.5, 0.99, 1)], [7, 7, 7])

    def test_the_99th_percentile_must_keep_the_bound(self):
        good = [Outcome(end=0.5)] * 198
        self.assertEqual(result_of(*good, Outcome(end=3), Outcome(end=3)).failures(1), [])
        late = result_of(*good[:197], *[Outcome(end=3)] * 3)
        self.assertEqual(late.failures(1), ["end: p99 3.00 s, bound 1 s"])
        self.assertEqual(late.failures(10), [])
        self.assertEqual(result_of(Outcome(end=0.5), detect=1).failures(1), ["detect: p99 never, bound 1 s"])

    def test_names_leftovers_and_checkpoints_are_strict_also_with_a_factor(self):
        for wrong in (Outcome(end=0, rank=False), Outcome(end=0, cause=False), Outcome(end=0, code=False),
                      Outcome(end=0, commit=False), Outcome(end=0, left=["process 47"])):
            self.assertEqual(len(result_of(Outcome(end=0), wrong).failures(10)), 1, wrong)


class Trials(unittest.TestCase):
    def test_a_job_that_ends_as_it_must_is_good(self):
        result = run(job_that('echo "$FAILED"; exit 5'))
        self.assertEqual(result.failures(1), [], result.outcomes)
        self.assertTrue(harness.summary(result, 1)[0])

    def test_each_wrong_end_is_found(self):
        for script in ('echo "$FAILED" | sed "s/rank 1/rank 2/"; exit 5', 'echo "$FAILED" | sed s/9/11/; exit 5',
                       'echo "$FAILED"; exit 1', 'echo "$FAILED"; echo "$FAILED"; exit 5', 'exit 5',
                       'echo "$FAILED"; touch "$TMPDIR/left"; exit 5'):
            with self.subTest(script):
                self.assertFalse(harness.summary(run(job_that(script)), 10)[0])

    def test_a_process_that_is_left_is_found_and_ended(self):
        def trial(place, backend, rng):
            job = place.start(["sh", "-c", 'setsid sleep 60 >/dev/null 2>&1 & echo $!'])
            job.wait()
            self.pid = int(job.last_line())
            return Outcome(end=0, left=place.left())
        result = run(trial)
        self.assertEqual(len(result.outcomes[0].left), 1)
        harness.wait_until(lambda: not harness.is_alive(self.pid), 10, "the process has ended")

    def test_an_unfinished_checkpoint_is_left_unless_its_writer_was_killed(self):
        def trial_of(name, killed):
            def trial(place, backend, rng):
                folder = place.runs / "run/checkpoints"
                folder.mkdir(parents=True)
                (folder / name).touch()
                return Outcome(end=0, left=place.left(killed))
            return trial
        weights, state = (f"step-00000010{part}.safetensors.tmp-47-1a2b" for part in ("", ".state-rank1"))
        for name, killed, left in ((weights, [], 1), (weights, [46], 1), (weights, [46, 47], 0), (state, [47], 0),
                                   ("config.toml.tmp-47-1a2b", [47], 1), ("step-00000010.safetensors", [], 0)):
            with self.subTest(name=name, killed=killed):
                self.assertEqual(len(run(trial_of(name, killed)).outcomes[0].left), left)

    def test_a_trial_that_cannot_run_is_skipped_and_one_that_breaks_is_a_failure(self):
        def skip(place, backend, rng):
            raise Skip("no such disk")
        def broken(place, backend, rng):
            raise OSError("no such process")
        self.assertEqual(harness.summary(run(skip), 1), (True, "skipped: a fault (any): no such disk"))
        self.assertFalse(harness.summary(run(broken), 1)[0])


class Page(unittest.TestCase):
    def test_the_table_replaces_what_is_between_the_markers(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("before\n<!-- faults: begin -->\nold\n<!-- faults: end -->\nafter\n")
            harness.write_markdown(page, [result_of(Outcome(end=0.25), Outcome(end=0.75))])
            text = page.read_text()
            self.assertRegex(text, r"(?s)^before\n<!-- faults: begin -->\n.*<!-- faults: end -->\nafter\n$")
            self.assertTrue(private.why_not)
            self.assertIn("| a fault | shm | 2 | 1 s | 0.25 | 0.75 | 0.75 | 100% | nothing; "
                          "shared memory not checked |", text)
            self.assertNotIn("old", text)


class Program(unittest.TestCase):
    def run_rows(self, rows, *arguments, prefix=()):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            for name in ("run", "harness.py", "place.py", "private.py"):
                (copy / name).write_bytes((HERE / name).read_bytes())
            (copy / "rows").mkdir()
            (copy / "rows/some.py").write_text(textwrap.dedent(rows))
            return subprocess.run([*prefix, sys.executable, copy / "run", "--program", "/bin/true", *arguments],
                                  capture_output=True, text=True, timeout=60)

    def test_the_exit_code_is_1_if_a_row_fails(self):
        rows = """
            from harness import ANY, Outcome, Row
            ROWS = [Row("good", "", 1, lambda *_: Outcome(end=0), backends=ANY),
                    Row("bad", "", 1, lambda *_: Outcome(end=0, cause=False), backends=ANY)]
            """
        self.assertEqual(self.run_rows(rows, "--only", "good").returncode, 0)
        both = self.run_rows(rows)
        self.assertEqual(both.returncode, 1)
        self.assertTrue(re.search(r"(?m)^FAILED  bad \(any\)", both.stdout), both.stdout)
        self.assertEqual(self.run_rows(rows, "--only", "none such").returncode, 1)

    LEAVES = """
        import ctypes
        import private
        from harness import ANY, Outcome, Row
        def leaves(place, *_):
            with open("/dev/shm/left-by-a-rank", "x"):
                pass
            ctypes.CDLL(None).shmget(0, 4096, 0o600)
            return Outcome(end=0, left=place.left())
        def nothing(place, *_):  # the kernel removes this segment
            libc = ctypes.CDLL(None)
            segment = libc.shmget(0, 4096, 0o600)
            libc.shmat(segment, None, 0)
            libc.shmctl(segment, 0, None)
            marked = private.why_not or any(number == segment for number, _ in private.segments())
            return Outcome(end=0, left=place.left() if marked else ["no marked segment was made"])
        ROWS = [Row("leaves", "", 1, leaves, backends=ANY, full=2), Row("nothing", "", 1, nothing, backends=ANY)]
        """

    def test_shared_memory_is_found_in_the_trial_that_leaves_it(self):
        tried = subprocess.run([sys.executable, "-B", "-c", "import private; print(private.make_private())"], cwd=HERE,
                               capture_output=True, text=True)
        if why_not := tried.stdout.strip():
            self.skipTest(why_not)
        shown = self.run_rows(self.LEAVES).stdout
        for trial in (0, 1):
            self.assertRegex(shown, rf"leaves \(any\), trial {trial}: left: /dev/shm/left-by-a-rank, "
                                    r"left: System V segment \d+;")
        self.assertRegex(shown, r"(?m)^FAILED  leaves .*; 4 things left$")
        self.assertRegex(shown, r"(?m)^ok      nothing ")
        self.assertFalse(pathlib.Path("/dev/shm/left-by-a-rank").exists())

    def test_without_the_right_to_make_it_private_it_says_so(self):
        prefix = ("setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin")
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("no capability can be given up here")
        shown = self.run_rows(self.LEAVES, "--only", "nothing", prefix=prefix)
        self.assertEqual(shown.returncode, 0, shown.stdout)
        self.assertIn("shared memory that is left is not found: it cannot be made private (unshare: ", shown.stdout)


if __name__ == "__main__":
    unittest.main()
