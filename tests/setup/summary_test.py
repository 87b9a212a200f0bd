"""Tests tests/summary.py, which decides whether ./run-tests has passed."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import summary  # noqa: E402

# As written by ctest 3.25.
PASSED = '<testcase name="good" status="run"><system-out>fine</system-out></testcase>'
FAILED = ('<testcase name="bad" status="fail" time="1.04"><failure message=""/>'
          "<system-out>a\nb\n</system-out></testcase>")
SKIPPED = ('<testcase name="torch" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
           "<system-out>skipped: no torch here</system-out></testcase>")
ABSENT = '<testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>'
DISABLED = '<testcase name="off" status="disabled"><system-out>Disabled</system-out></testcase>'
PARTLY = ('<testcase name="partly" status="run"><system-out>ok 1\nskipped: no GPU\nskipped: no network\n</system-out>'
          "</testcase>")


class Summary(unittest.TestCase):
    def run_on(self, **suites):
        """Returns the exit code and the printed lines for presets with these test cases."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = []
            for preset, cases in suites.items():
                path = pathlib.Path(folder, preset)
                if cases is not None:
                    path.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
                arguments.append(f"{preset}={path}")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                code = summary.main(arguments)
        return code, printed.getvalue().splitlines()

    def test_sums_over_presets_and_ends_with_the_sum(self):
        code, lines = self.run_on(release=[PASSED, PASSED, SKIPPED], asan=[PASSED])
        self.assertEqual(lines[-1], "3 passed, 0 failed, 1 skipped")
        self.assertEqual(code, 0)

    def test_a_failure_is_listed_with_its_reason_and_fails(self):
        code, lines = self.run_on(release=[PASSED, FAILED])
        self.assertIn("  release: bad: failed after 1.0 s: b", lines)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_the_first_failure_of_a_long_output_is_its_reason(self):
        output = "ok      a\nFAILED  b; 6 things left\nok      c\nok      d\nok      e\nthe end"
        bad = f'<testcase name="bad" status="fail" time="2"><system-out>{output}</system-out></testcase>'
        _, lines = self.run_on(release=[bad])
        self.assertIn("  release: bad: failed after 2.0 s: FAILED  b; 6 things left | ok      c | ok      d | ok      e",
                      lines)

    def test_a_skip_is_listed_with_its_reason(self):
        code, lines = self.run_on(tsan=[PASSED, SKIPPED])
        self.assertIn("  tsan: torch: no torch here", lines)
        self.assertEqual(code, 0)

    def test_a_disabled_test_counts_as_skipped(self):
        code, lines = self.run_on(release=[PASSED, DISABLED])
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))

    def test_a_test_that_could_not_be_started_has_failed(self):
        code, lines = self.run_on(release=[PASSED, ABSENT])
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_cases_skipped_within_a_passed_program_are_counted(self):
        code, lines = self.run_on(release=[PARTLY])
        self.assertIn("  release: partly: no network", lines)
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 2 skipped"))

    def test_a_preset_without_results_has_failed(self):
        code, lines = self.run_on(release=[PASSED], asan=None)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_no_test_at_all_is_no_success(self):
        code, lines = self.run_on(release=[])
        self.assertEqual((code, lines[-1]), (1, "0 passed, 0 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
