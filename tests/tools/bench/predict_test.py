"""bench/predict.py measures, predicts and trains between simulated hosts, and leaves nothing. No test checks speed.

    predict_test.py --program DDPRUN
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
import namespaces  # noqa: E402
import predict  # noqa: E402
import prediction_chart  # noqa: E402

DEADLINE = 300  # seconds for a check: other tests run at the same time
ARGS = None


class Predict(unittest.TestCase):
    def test_links_are_measured_a_step_is_predicted_and_made(self):
        with tempfile.TemporaryDirectory() as folder:
            tmp, result = pathlib.Path(folder) / "tmp", pathlib.Path(folder) / "result.json"
            tmp.mkdir()
            words = [sys.executable, BENCH / "predict.py", "--program", ARGS.program, "--methods", "gloo:ring",
                     "--hosts", "2,3", "--measured", "2", "--link", "1gbit", "--sizes", "64K,1M", "--rounds", "1",
                     "-n", "2", "--steps", "16", "--json", result]
            done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, check=False,
                                  env=os.environ | {"TMPDIR": str(tmp)})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(list(tmp.iterdir()), [])
            document = json.loads(result.read_text())
        self.assertEqual([(row["backend"], row["algorithm"], row["hosts"]) for row in document["rows"]],
                         [("gloo", "ring", 2), ("gloo", "ring", 3)])
        for row in document["rows"]:
            self.assertGreater(row["measured"], 0)
            self.assertAlmostEqual(row["error"], row["predicted"] / row["measured"] - 1)
        self.assertIn("simplenet, link 1gbit, ranks per host 1: ms per step", done.stdout)
        self.assertIn("of 2 steps", done.stdout)

    def test_the_error_is_the_median_of_all_rows(self):
        def method(rows):
            return {"backend": "gloo", "algorithm": "ring", "rows": [
                {"hosts": hosts, "step": value, "efficiency": 1 / hosts}
                for hosts, value in rows]}
        steps = {("gloo", "ring", 2): 1.0, ("gloo", "ring", 3): 2.0, ("gloo", "ring", 4): 1.0}
        predictions = {hosts: {"methods": [method([(1, 1.0), (hosts, value)])]}
                       for hosts, value in ((2, 1.1), (3, 1.0), (4, 0.8))}
        args = predict.arguments(["--program", "ddprun"])
        rows = list(predict.rows_of(args, predictions, steps))
        self.assertEqual([row["hosts"] for row in rows], [2, 3, 4])
        self.draw(args, rows)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertAlmostEqual(predict.show(args, rows), 0.2)
        self.assertIn("median error 20.0% of 3 steps", said.getvalue())

    def draw(self, args, rows):
        """Lines are the prediction; a measured step that is half as long has twice the efficiency."""
        points = prediction_chart.specification("a title", rows)["data"]["values"]
        self.assertEqual({name: round(value, 3) for name, value in points[1].items() if name not in ("backend", "algorithm")},
                         {"hosts": 3, **{name: round(percent / predict.compute_of(args, 3), 3) for name, percent in (
                             ("predicted", 100 / 3), ("measured", 50 / 3))}})
        if prediction_chart.why_not() is None:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "chart.png"
                prediction_chart.draw(path, "a title", rows)
                self.assertEqual(path.read_bytes()[:4], b"\x89PNG")
        with mock.patch.dict(os.environ):
            os.environ.pop("DDPRUN_CHARTS_PYTHON", None)
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
                predict.arguments(["--program", "ddprun", "--png", "chart.png"])
        self.assertIn("--png needs DDPRUN_CHARTS_PYTHON", said.getvalue())

    def test_without_root_it_says_so(self):
        said = io.StringIO()
        with mock.patch("os.geteuid", return_value=1000), contextlib.redirect_stderr(said):
            self.assertEqual(predict.main(["--program", "ddprun"]), 77)
        self.assertEqual(said.getvalue(), "predict.py: skipped: needs root\n")

    def test_wrong_arguments_are_refused(self):
        self.assertEqual([predict.burst_of(rate) for rate in ("100mbit", "1gbit")], ["16kb", "159kb"])
        for words in (["--methods", "gloo"], ["--link", "fast"], ["--ranks-per-host", "0"], ["--hosts", "1"],
                      ["--steps", "15"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                predict.arguments(["--program", "ddprun", *words])


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    ARGS = parser.parse_args()
    if reason := "needs root" if os.geteuid() != 0 else namespaces.why_not("1gbit"):
        print(f"skipped: {reason}")
        return 77
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Predict))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
