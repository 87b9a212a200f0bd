"""The allreduce of PyTorch's c10d over a backend, timed as measure.hpp times the other peers. Starts its ranks itself.

    torch_allreduce.py BACKEND RANKS SAMPLES WARMUP SIZE...
"""

import ctypes
import json
import math
import os
import pathlib
import signal
import sys
import tempfile
import time

BACKEND = sys.argv[1]
RANKS, SAMPLES, WARMUP, *SIZES = map(int, sys.argv[2:])
CLOCK_SHARE = 0.01  # of a sample, at most
PR_SET_PDEATHSIG = 1


def clock_cost():
    """Nanoseconds per reading of the clock: the minimum of a few runs."""
    def once(readings=1000):
        begin = end = time.monotonic_ns()
        for _ in range(readings):
            end = time.monotonic_ns()
        return (end - begin) / readings
    return min(once() for _ in range(5))


class Rank:
    def __init__(self, rank, store):
        import torch  # after the fork, which would end its threads
        import torch.distributed
        torch.set_num_threads(1)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        torch.distributed.init_process_group(BACKEND, init_method=f"file://{store}", rank=rank, world_size=RANKS)
        self.torch, self.rank = torch, rank
        self.data = torch.zeros(max(SIZES) // 4)

    def gather(self, values):
        """The values of all ranks, in rank order."""
        own = self.torch.tensor(values, dtype=self.torch.int64)
        gathered = [self.torch.empty_like(own) for _ in range(RANKS)]
        self.torch.distributed.all_gather(gathered, own)
        return [tensor.tolist() for tensor in gathered]

    def check(self, vector):
        """Wrong elements on all ranks, after one call. Small integers: their sums are exact in every order."""
        index = self.torch.arange(vector.numel())
        def values(rank):
            return ((index * 7 + rank * 13) % 101).float()
        vector.copy_(values(self.rank))
        self.torch.distributed.all_reduce(vector)
        wrong = int((vector != sum(values(rank) for rank in range(RANKS))).sum())
        return sum(count for [count] in self.gather([wrong]))

    def batch_of(self, vector):
        """The number of calls that limits the clock's cost to 1 %, from the quickest of a few."""
        def once():
            begin = time.monotonic_ns()
            self.torch.distributed.all_reduce(vector)
            return time.monotonic_ns() - begin
        least = max(1, min(once() for _ in range(max(1, WARMUP))))
        return max(calls for [calls] in self.gather([math.ceil(clock_cost() / CLOCK_SHARE / least)]))

    def time(self, vector, batch):
        """Seconds of one call, per sample: since the last rank ended the previous sample."""
        all_reduce, now = self.torch.distributed.all_reduce, time.monotonic_ns
        self.torch.distributed.barrier()
        for _ in range(WARMUP):
            all_reduce(vector)
        stamps = [now()]
        for _ in range(SAMPLES):
            for _ in range(batch):
                all_reduce(vector)
            stamps.append(now())
        last = [max(stamp) for stamp in zip(*self.gather(stamps))]
        return [(end - begin) * 1e-9 / batch for begin, end in zip(last, last[1:])]

    def measure(self, size):
        vector = self.data[:size // 4]
        wrong = self.check(vector)
        vector.zero_()  # other values would grow with every sum in place
        batch = self.batch_of(vector)
        samples = self.time(vector, batch)
        if self.rank == 0:
            print(json.dumps({"library": f"torch {self.torch.__version__}", "size": size, "batch": batch,
                              "wrong": wrong, "samples": samples}), flush=True)


def run_rank(rank, store, parent):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    this = Rank(rank, store)
    for size in SIZES:
        this.measure(size)
    this.torch.distributed.barrier()
    time.sleep(0.2)  # until the other ranks have left the barrier


def main():
    parent = os.getpid()
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(RANKS):
            child = os.fork()
            if child == 0:
                # No destroy_process_group: in Torch 2.11 it sometimes waits forever for Gloo's thread.
                try:
                    run_rank(rank, pathlib.Path(folder) / "store", parent)
                    os._exit(0)
                except BaseException as error:
                    print(f"torch_allreduce.py: rank {rank}: {error}", file=sys.stderr, flush=True)
                    os._exit(1)
            children.append(child)
        for _ in range(RANKS):
            _, status = os.wait()
            if status != 0:
                for child in children:
                    os.kill(child, signal.SIGKILL)  # at most a zombie
                return 1
    return 0


sys.exit(main())
