"""The arithmetic behind bench/allreduce.py, network.py, pytorch.py and training.py, and the order of their rounds."""
import argparse
import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import allreduce  # noqa: E402
import comparison  # noqa: E402
import network  # noqa: E402
import options  # noqa: E402
import pytorch  # noqa: E402
import running  # noqa: E402
from comparison import Bound, Table  # noqa: E402


def table(cells, own=("shm plugin", "shm malloc"), ranks=2):
    """`cells`: {column: {size: [median of each round]}}. Each round has an outlier that the median ignores."""
    made = Table(set(own))
    for column, sizes in cells.items():
        for size, rounds in sizes.items():
            for median in rounds:
                made.add(ranks, column, size, [median, median / 2, median * 100], 1, 0)
    return made


class Figures(unittest.TestCase):
    def test_a_cell_is_the_median_of_its_rounds_medians(self):
        cell = table({"openmpi": {4: [3.0, 1.0, 2.0]}}).cell(2, "openmpi", 4)
        self.assertEqual(cell.medians(), [3.0, 1.0, 2.0])
        self.assertEqual(cell.median(), 2.0)
        self.assertEqual(cell.spread(), (3.0 - 1.0) / 2.0)

    def test_a_ratio_is_taken_round_by_round(self):
        # The machine was slower in each round: the quotient of the medians would be 6 / 2.
        measured = table({"shm plugin": {4: [2.0, 6.0, 40.0]}, "limit shared": {4: [1.0, 2.0, 10.0]}})
        self.assertEqual(measured.ratio(2, "shm plugin", "limit shared", 4), 3.0)
        measured = table({"shm plugin": {4: [2.0, 6.0, 10.0]}, "limit shared": {4: [1.0, 2.0, 10.0]}})
        self.assertEqual(measured.ratio(2, "shm plugin", "limit shared", 4), 2.0)

    def test_what_was_not_measured_has_no_ratio(self):
        measured = table({"shm plugin": {4: [1.0]}})
        self.assertIsNone(measured.ratio(2, "shm plugin", "openmpi", 4))
        self.assertIsNone(measured.ratio(2, "best peer", "shm plugin", 4))
        self.assertIsNone(measured.ratio(4, "shm plugin", "shm plugin", 4))

    def test_rounds_that_do_not_match_are_a_mistake(self):
        measured = table({"shm plugin": {4: [1.0]}, "openmpi": {4: [1.0, 1.0]}})
        with self.assertRaises(ValueError):
            measured.ratio(2, "shm plugin", "openmpi", 4)

    def test_the_best_peer_is_neither_ours_nor_a_limit(self):
        measured = table({"shm plugin": {4: [1.0], 8: [1.0]}, "limit shared": {4: [0.5], 8: [0.5]},
                          "openmpi": {4: [3.0], 8: [2.0]}, "torch gloo": {4: [2.5], 8: [9.0]}})
        self.assertEqual([measured.best_peer(2, size) for size in (4, 8)], ["torch gloo", "openmpi"])
        self.assertEqual(measured.ratio(2, "best peer", "shm plugin", 8), 2.0)

    def test_the_best_of_ours_is_compared_with_the_best_peer(self):
        measured = table({"ucx": {4: [3.0, 3.0]}, "gloo": {4: [2.0, 4.5]}, "limit iperf3": {4: [0.5, 0.5]},
                          "openmpi": {4: [1.0, 8.0]}, "mpich": {4: [4.0, 4.0]}}, own=("ucx", "gloo"))
        self.assertEqual((measured.best_own(2, 4), measured.best_peer(2, 4)), ("ucx", "mpich"))
        self.assertEqual(measured.ratios(2, "best ddprun", "best peer", 4), [0.75, 0.75])
        self.assertIsNone(measured.best_own(2, 8))
        self.assertIsNone(measured.ratios(2, "best ddprun", "best peer", 8))

    def test_busbw_counts_what_a_rank_sends_at_least(self):
        self.assertEqual([comparison.bus_bytes(ranks, 12) for ranks in (2, 3, 4)], [12, 16, 18])

    def test_an_interval_of_the_median_are_two_of_the_values(self):
        # 2 / 2**6 is below 5 %, 2 / 2**5 is not; with 9 values 2 * (1 + 9) / 2**9 is 3.9 %.
        self.assertEqual(comparison.interval_of([3.0, 1.0, 2.0]), (1.0, 3.0))
        self.assertEqual(comparison.interval_of(list(range(6))), (0, 5))
        self.assertEqual(comparison.interval_of(list(range(9, 0, -1))), (2, 8))
        self.assertEqual(comparison.interval_of([1.5]), (1.5, 1.5))

    def test_wrong_elements_are_added_up(self):
        measured = Table(set())
        for wrong in (0, 2, 3):
            measured.add(2, "openmpi", 4, [1.0], 1, wrong)
        self.assertEqual(measured.wrong(), [(2, "openmpi", 4, 5)])


class Bounds(unittest.TestCase):
    CELLS = {"shm plugin": {4: [1.0], 1024: [3.0], 4096: [1.4]}, "limit shared": {4: [1.0], 1024: [1.0], 4096: [1.0]}}

    def test_a_bound_holds_where_it_is_reached_exactly(self):
        values, missed = Bound(2, "shm plugin", "limit shared", 1.4, 4096).judge(table(self.CELLS))
        self.assertEqual((values, missed), ({4096: 1.4}, {}))
        _, missed = Bound(2, "shm plugin", "limit shared", 1.3, 4096).judge(table(self.CELLS))
        self.assertEqual(missed, {4096: 1.4})

    def test_only_its_sizes_count(self):
        values, missed = Bound(2, "shm plugin", None, 2.0, 0, 1024).judge(table(self.CELLS))
        self.assertEqual((values, missed), ({4: 1.0, 1024: 3.0}, {1024: 3.0}))

    def test_what_cannot_be_judged_does_not_hold(self):
        _, missed = Bound(2, "shm plugin", "best peer", 1).judge(table(self.CELLS))
        self.assertEqual(missed, {4: None, 1024: None, 4096: None})

    def test_a_bound_from_below(self):
        bound = Bound(2, "limit shared", "shm plugin", float("inf"), 4, least=0.7)
        self.assertEqual(bound.judge(table(self.CELLS))[1], {1024: 1 / 3})
        self.assertEqual(bound.text(), "2 ranks: limit shared / shm plugin >= 0.7")

    def test_the_bounds_between_hosts(self):
        cells = {"ucx": {4: [1.0], 1 << 20: [1.0]}, "openmpi": {4: [1.0], 1 << 20: [0.9]},
                 "limit iperf3": {4: [0.1], 1 << 20: [0.93]}}
        peer, limit = comparison.network_bounds(2, 0.93, ["gloo"], ["openmpi"])
        self.assertEqual(list(peer.judge(table(cells, own=["ucx"]))[1]), [1 << 20])
        self.assertEqual(limit.judge(table(cells, own=["ucx"])), ({1 << 20: 0.93}, {}))

    def test_each_backend_alone_has_a_bound(self):
        cells = {"ucx": {4: [2.0]}, "gloo ring": {4: [1.5]}, "gloo tree": {4: [1.2]}, "openmpi": {4: [4.0]},
                 "raw gloo ring": {4: [1.0]}, "raw gloo hd": {4: [1.5]}}
        measured = table(cells, own=["ucx", "gloo ring", "gloo tree"])
        *_, ucx, gloo = comparison.network_bounds(2, 0.93, ["ucx", "gloo"], ["openmpi", "gloo"])
        self.assertEqual((ucx.text(), gloo.text()),
                         ("2 ranks: best ucx / best peer <= 1", "2 ranks: best gloo / best raw gloo <= 1"))
        self.assertEqual((ucx.value(measured, 4), gloo.value(measured, 4)), (2.0, 1.2))
        self.assertIsNone(ucx.value(measured, 8))

    def test_the_bounds_of_these_ranks_and_transports(self):
        self.assertEqual({bound.ranks for bound in comparison.bounds_for(False, [2, 4])}, {2, 4})
        self.assertEqual({bound.ranks for bound in comparison.bounds_for(False, [4])}, {4})
        self.assertTrue(all(bound.below == "openmpi" for bound in comparison.bounds_for(True, [2, 3])))


class Weights(unittest.TestCase):
    def differing(self, **digests):
        training = pytorch.Training(None, pytorch.JOBS[:1], dict.fromkeys(digests))
        training.weights["linear"].update(digests)
        return [line.partition(":")[0] for line in training.differing()]

    def test_all_ranks_and_rounds_must_have_those_of_gloo(self):
        self.assertEqual(self.differing(gloo={"a"}, ddprun_shm={"a"}, ddprun_ucx={"a"}), [])
        self.assertEqual(self.differing(gloo={"a"}, ddprun_shm={"b"}, ddprun_ucx={"a"}), ["linear, ddprun_shm"])
        self.assertEqual(self.differing(gloo={"a"}, ddprun_shm={"a", "b"}), ["linear, ddprun_shm"])

    def test_if_gloo_differs_itself_nothing_is_equal(self):
        self.assertEqual(self.differing(gloo={"a", "b"}, ddprun_shm={"a"}), ["linear, gloo", "linear, ddprun_shm"])


class Turns(unittest.TestCase):
    def test_everyone_once_in_each_round(self):
        for order in running.turns(list("abc"), 7):
            self.assertEqual(sorted(order), list("abc"))

    def test_first_and_last_change(self):
        orders = ["".join(order) for order in running.turns(list("abc"), 4)]
        self.assertEqual(orders, ["abc", "cba", "bca", "acb"])


class Words(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([options.bytes_of(text) for text in ("4", "1K", "45M")], [4, 1024, 45 << 20])
        self.assertEqual([options.text_of(size) for size in (4, 1024, 45 << 20)], ["4 B", "1 KiB", "45 MiB"])
        for bad in ("0", "6", "x", "1T"):
            with self.assertRaises(argparse.ArgumentTypeError):
                options.bytes_of(bad)

    def test_a_mistake_ends_with_2(self):
        for wrong in (["--peers", "mpi"], ["--rounds", "0"], ["--ranks", "1"], ["--sizes", "3"]):
            printed = io.StringIO()
            with self.subTest(wrong), contextlib.redirect_stderr(printed):
                with self.assertRaises(SystemExit) as ended:
                    allreduce.arguments(["--program", "ddprun", *wrong])
                self.assertEqual(ended.exception.code, 2)
                self.assertIn("expected", printed.getvalue())

    def test_a_mistake_of_the_network_ends_with_2(self):
        for wrong in (["--peers", "raw"], ["--rounds", "0"], ["--hosts", "1"], ["--link", "fast"], ["--link", "0gbit"]):
            printed = io.StringIO()
            with self.subTest(wrong), contextlib.redirect_stderr(printed):
                with self.assertRaises(SystemExit) as ended:
                    network.arguments(["--program", "ddprun", *wrong])
                self.assertEqual(ended.exception.code, 2)
                self.assertIn("expected", printed.getvalue())

    def test_quick_gives_way_to_what_is_asked_for(self):
        args = allreduce.arguments(["--program", "ddprun", "--quick", "--ranks", "3"])
        self.assertIsInstance(args, argparse.Namespace)
        self.assertEqual((args.ranks, args.rounds), ([3], 2))
        args = network.arguments(["--program", "ddprun", "--quick", "--link", "unlimited,1gbit"])
        self.assertEqual((args.hosts, args.link, args.rounds), ([2], ["unlimited", "1gbit"], 2))


if __name__ == "__main__":
    unittest.main()
