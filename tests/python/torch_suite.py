#!/usr/bin/env python3
"""Runs PyTorch's own tests of torch.distributed over a ddprun backend.

    python tests/python/torch_suite.py shm 2                      # all cases, over ddprun_shm, on 2 ranks
    python tests/python/torch_suite.py shm 2 -k all_gather -v     # those whose name has "all_gather", and their output
    python tests/python/torch_suite.py torch 2                    # over PyTorch's own Gloo, to compare

The cases are those of torch.testing._internal.distributed.distributed_test, which PyTorch runs for each of its
backends. They ask by name what a backend can do. So they believe that they run over "gloo", and each group that they
make is one of ddprun. torch_cases.py lists the cases that are known not to pass, with the reason.

Exit code 1: a case that is not listed does not pass, or a listed one passes.
"""
import argparse
import collections
import contextlib
import io
import logging
import os
import re
import sys
import tempfile
import time
import unittest


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugin", help='a plugin of ddprun, or "torch" for PyTorch\'s own Gloo')
    parser.add_argument("ranks", type=int, choices=(2, 3, 4))
    parser.add_argument("-k", "--filter", default="", help="only cases whose name has this text")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the output of each case that does not pass")
    parser.add_argument("--package", help="the folder that the package ddprun is in")
    parser.add_argument("--deadline", type=float, default=60, help="seconds for each case (default: 60)")
    return parser.parse_args()


ARGUMENTS = arguments()
if ARGUMENTS.package:
    sys.path.insert(0, ARGUMENTS.package)
os.environ.update(BACKEND="gloo", WORLD_SIZE=str(ARGUMENTS.ranks), INIT_METHOD="file", OMP_NUM_THREADS="1")
os.environ.setdefault("MASTER_PORT", "0")  # the ranks meet in a file

try:
    import expecttest  # noqa: F401
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: {error}: PyTorch's own tests need it, with the Python of DDPRUN_PYTHON")
    sys.exit(77)
import torch.testing._internal.common_distributed as common  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

import torch_cases  # noqa: E402

BACKEND = "gloo" if ARGUMENTS.plugin == "torch" else "ddprun_" + ARGUMENTS.plugin.replace("-", "_")


def redirect():
    """Each group of "gloo" is one of BACKEND from here on; the cases, not torch.distributed itself, still read "gloo"."""
    import ddprun  # noqa: F401: registers the backends

    c10d = dist.distributed_c10d
    make, name_of = c10d._new_process_group_helper, dist.get_backend

    def make_ours(size, rank, ranks, backend, *rest, **options):
        return make(size, rank, ranks, re.sub(r"\bgloo\b", BACKEND, str(backend)), *rest, **options)

    c10d._new_process_group_helper = make_ours
    dist.get_backend = lambda group=None: "gloo" if name_of(group) == BACKEND else name_of(group)
    # Only a backend in C++ can give the profiler the shapes of its tensors. test_c10d.py looks for the events.
    distributed_test.PROFILING_SUPPORTED_BACKENDS = distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS = []


class Cases(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Ranks are forks of this process, which has loaded PyTorch but started no thread: a case takes a part of a second."""

    def setUp(self):
        super().setUp()
        self.output = tempfile.NamedTemporaryFile("r+", prefix="torch-suite-", errors="replace")
        # A rank writes into its own end of the file, so that none overwrites the lines of another one.
        Cases.output_name = self.output.name
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    @classmethod
    def _run(cls, rank, *arguments, **options):
        into = os.open(cls.output_name, os.O_WRONLY | os.O_APPEND)
        os.dup2(into, 1)
        os.dup2(into, 2)
        torch.set_num_threads(1)
        super()._run(rank, *arguments, **options)

    def tearDown(self):
        for process in self.processes:
            process.kill()
            process.join()
        super().tearDown()
        self.output.seek(0)
        Cases.last_output = self.output.read()
        self.output.close()


def reason_of(error, output):
    """The line that says most about a case that did not pass."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if any("timed out" in line for line in lines[-2:]):
        return f"no end within {ARGUMENTS.deadline:g} s"
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Warning|Interrupt)\b", line)]
    words = [line for line in raised if "exited with error code" not in line]
    return (words or raised or lines or ["no output"])[-1][:300]


def run(name):
    """(outcome, why) of one case."""
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()):  # the suite says that it ends the ranks of a case that has failed
        Cases(name).run(result)
    if result.skipped:
        return "skipped", result.skipped[0][1]
    problems = result.failures + result.errors
    if not problems:
        return "passed", ""
    if ARGUMENTS.verbose:
        print(problems[0][1], Cases.last_output, sep="\n")
    return "failed", reason_of(problems[0][1], Cases.last_output)


def main():
    if BACKEND != "gloo":
        redirect()
    logging.disable(logging.INFO)
    common.get_timeout = lambda _: ARGUMENTS.deadline
    known = torch_cases.known(ARGUMENTS.plugin, ARGUMENTS.ranks, torch.__version__)
    names = [name for name in unittest.TestLoader().getTestCaseNames(Cases) if ARGUMENTS.filter in name]
    counts = collections.Counter()
    begin = time.monotonic()
    for name in names:
        sys.stdout.flush()
        sys.stderr.flush()
        start = time.monotonic()
        outcome, why = run(name)
        seconds = f"{time.monotonic() - start:.1f} s"
        if outcome == "failed":
            outcome = "known" if name in known else "FAILED"
            print(f"{outcome:7}{name} ({seconds}): {why}" + (f" [{known[name]}]" if name in known else ""))
        elif outcome == "passed" and name in known:
            outcome = "PASSED"
            print(f"{outcome:7}{name} ({seconds}): it is in torch_cases.py as: {known[name]}")
        elif ARGUMENTS.verbose:
            print(f"{outcome:7}{name} ({seconds}) {why}")
        counts[outcome] += 1
    print(f"torch {torch.__version__}, {BACKEND}, {ARGUMENTS.ranks} ranks: {counts['passed']} passed, "
          f"{counts['skipped']} skipped by the suite, {counts['known']} known not to pass, {counts['FAILED']} failed, "
          f"{counts['PASSED']} passed that should not, in {time.monotonic() - begin:.0f} s")
    return 1 if counts["FAILED"] or counts["PASSED"] or not names else 0


if __name__ == "__main__":
    sys.exit(main())
