#!/usr/bin/env python3
"""Tests ddprun's backends of torch.distributed: collectives, and what happens when something goes wrong.

    python tests/python/test_c10d.py FOLDER [unittest arguments]     # FOLDER: the one that the package ddprun is in
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else "python")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: {error}: set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import ddprun  # noqa: E402
import ranks  # noqa: E402
import steps  # noqa: E402
from ddprun.meeting import own_address  # noqa: E402

PLUGINS = [name for name in ("shm", "gloo", "ucx") if name in ddprun.backends()]


class Case(unittest.TestCase):
    def all_of(self, results, expected):
        self.assertEqual([expected] * len(results), results, results)

    def raised(self, result, kind, *words):
        """A rank has ended with one clear line of this kind."""
        self.assertIsInstance(result, ranks.Raised, result)
        self.assertEqual(kind, result.kind, result)
        for word in words:
            self.assertIn(word, result.text)
        self.assertNotIn("\n", result.text.strip())


class Collectives(Case):
    def test_collectives(self):
        for plugin in PLUGINS:
            for count in (2, 3):
                with self.subTest(plugin=plugin, count=count):
                    self.all_of(ranks.run(steps.collectives("ddprun_" + plugin), count), "ok")

    def test_groups(self):
        for plugin in PLUGINS:
            with self.subTest(plugin=plugin):
                self.all_of(ranks.run(steps.groups("ddprun_" + plugin), 3), "ok")

    def test_weights_are_those_of_gloo(self):
        expected = ranks.run(steps.training("gloo"))
        self.assertEqual(expected[0], expected[1])
        for plugin in PLUGINS:
            with self.subTest(plugin=plugin):
                self.assertEqual(expected, ranks.run(steps.training("ddprun_" + plugin)))

    def test_profiler(self):
        self.all_of(ranks.run(steps.profiler), "ok")

    def test_a_callback_waits_for_other_collectives(self):
        for plugin in PLUGINS:
            with self.subTest(plugin=plugin):
                self.all_of(ranks.run(steps.callbacks("ddprun_" + plugin), deadline=60), "ok")

    def test_works_that_nobody_waits_for_are_freed(self):
        def body(rank):
            rank.join("ddprun_shm")
            for _ in range(300):
                dist.all_reduce(torch.ones(3), async_op=True)
            dist.barrier()  # all have ended
            dist.barrier()  # this one has looked
            return len(dist.group.WORLD._inflight) <= 101

        self.all_of(ranks.run(body), True)


class Arguments(Case):
    def test_wrong_arguments(self):
        """Each is an error at once, and the group works after it."""
        def body(rank):
            rank.join("ddprun_shm")
            for kind, words, call in steps.WRONG:
                try:
                    call()
                except kind as error:
                    for word in ("shm: rank", *words):
                        assert word in str(error), (word, str(error))
                    assert "\n" not in str(error), str(error)
                else:
                    raise AssertionError(f"no error for {words}")
                dist.barrier()
            return "ok"

        self.all_of(ranks.run(body), "ok")

    def test_options(self):
        def body(rank):
            rank.join("ddprun_shm", pg_options=["ring"])

        for result in ranks.run(body):
            self.raised(result, "TypeError", "ddprun_shm: pg_options is a list: expected a dict")


class Addresses(Case):
    def test_the_address_is_given_or_leads_to_rank_0(self):
        for given, master, expected in (("192.0.2.7", "127.0.0.1", "192.0.2.7"), ("", "127.0.0.1", "127.0.0.1"),
                                        ("", "", "")):
            with self.subTest(given=given, master=master), \
                    unittest.mock.patch.dict(os.environ, DDPRUN_ADDRESS=given, MASTER_ADDR=master):
                self.assertEqual(own_address(), expected)


class Failures(Case):
    def test_a_rank_dies(self):
        def body(rank):
            rank.join("ddprun_" + plugin)
            dist.all_reduce(torch.ones(3))
            if rank.number == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            start = time.monotonic()
            try:
                dist.all_reduce(torch.ones(1000))
            finally:
                assert time.monotonic() - start < 10, "too late"

        for plugin in PLUGINS:
            with self.subTest(plugin=plugin):
                self.raised(ranks.run(body)[0], "DistNetworkError", plugin, "rank 0", "rank 1")

    def test_a_rank_dies_in_backward(self):
        def body(rank):
            rank.join("ddprun_shm")
            net = DistributedDataParallel(torch.nn.Linear(4, 4))
            loss = net(torch.ones(2, 4)).sum()
            if rank.number == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            loss.backward()

        result = ranks.run(body)[0]
        self.assertIsInstance(result, ranks.Raised, result)
        self.assertIn("shm: rank 0", result.text)

    def test_a_rank_never_joins(self):
        def body(rank):
            if rank.number == 0:
                rank.join("ddprun_" + plugin, timeout=1)

        for plugin in PLUGINS:
            with self.subTest(plugin=plugin):
                result = ranks.run(body)[0]
                self.raised(result, "DistStoreError", plugin, "rank 0", "rank 1 did not come within 1 s")

    def test_a_rank_starts_no_collective(self):
        def body(rank):
            rank.join("ddprun_" + plugin, timeout=1)
            if rank.number == 0:
                dist.all_reduce(torch.ones(3))
            else:
                rank.wait_for_flag("done0")

        for plugin in PLUGINS:
            with self.subTest(plugin=plugin):
                self.raised(ranks.run(body)[0], "DistNetworkError", plugin, "rank 0", "timeout")

    def test_ranks_with_different_plugins(self):
        def body(rank):
            rank.join("ddprun_gloo" if rank.number else "ddprun_shm", timeout=5)

        for result in ranks.run(body):
            self.raised(result, "DistBackendError", "shm", "gloo", "rank 1")

    def test_ranks_with_different_options(self):
        def body(rank):
            rank.join("ddprun_shm", timeout=5, pg_options={"check": "off"} if rank.number else None)

        for result in ranks.run(body):
            self.raised(result, "DistBackendError", "shm", "check")

    def test_ranks_with_different_calls(self):
        def body(rank):
            rank.join("ddprun_shm", timeout=5)
            dist.all_reduce(torch.ones(3 + rank.number))

        for result in ranks.run(body):
            self.raised(result, "DistBackendError", "shm", "3", "4")


class Interrupts(Case):
    def interrupt(self, body):
        """Sends Ctrl-C to rank 0 while it waits; how the ranks have ended. A rank cannot look at the time itself: what it
        raises after the interrupt is lost."""
        def watch(started, folder):
            while not os.path.exists(f"{folder}/waits"):
                time.sleep(0.01)
            time.sleep(0.3)
            self.sent = time.monotonic()
            os.kill(started[0].pid, signal.SIGINT)

        results = ranks.run(body, watch=watch)
        self.assertLess(time.monotonic() - self.sent, 5, results)
        return results

    def test_in_a_collective(self):
        """The wait ends, and nothing else: the collective goes on, and the group can be used."""
        def body(rank):
            rank.join("ddprun_shm")
            tensor = torch.ones(3)
            if rank.number == 1:
                rank.wait_for_flag("interrupted")
                dist.all_reduce(tensor)
            else:
                work = dist.all_reduce(tensor, async_op=True)
                rank.set_flag("waits")
                try:
                    work.wait()
                except KeyboardInterrupt:
                    rank.set_flag("interrupted")
                    work.wait()
            dist.barrier()
            return tensor.tolist()

        self.all_of(self.interrupt(body), [2.0] * 3)

    def test_while_joining(self):
        def body(rank):
            if rank.number == 0:
                rank.set_flag("waits")
                rank.join("ddprun_shm")

        self.raised(self.interrupt(body)[0], "KeyboardInterrupt")

    def test_in_backward(self):
        """PyTorch waits there in C++, where Python cannot raise: the group is aborted, and backward() ends."""
        def body(rank):
            rank.join("ddprun_shm")
            net = DistributedDataParallel(torch.nn.Linear(4, 4))
            if rank.number == 1:
                return rank.wait_for_flag("done0")
            loss = net(torch.ones(2, 4)).sum()
            rank.set_flag("waits")
            loss.backward()
            time.sleep(1)

        result = self.interrupt(body)[0]
        self.assertTrue(result.kind == "KeyboardInterrupt" or "aborted" in result.text, result)


class Processes(Case):
    def exits(self, name):
        """Runs steps.py's `name` in two interpreters of their own; what they printed."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        command = [sys.executable, str(pathlib.Path(__file__).with_name("steps.py")), name, str(folder / "store")]
        path = os.pathsep.join(sys.path[:2])
        started = [subprocess.Popen([*command, str(rank)], env=os.environ | {"PYTHONPATH": path}, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(2)]
        try:
            return [(process.communicate(timeout=60)[0], process.returncode) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()

    def test_exit_without_destroy(self):
        for output, code in self.exits("exit_without_destroy"):
            self.assertEqual((0, "ready"), (code, output.strip()[-5:]), output)

    def test_exit_with_a_collective_in_flight(self):
        (output, code), _ = self.exits("exit_in_flight")
        self.assertEqual((0, "ready"), (code, output.strip()[-5:]), output)

    def test_forked_workers(self):
        self.all_of(ranks.run(steps.forked_workers), "ok")


if __name__ == "__main__":
    unittest.main()
