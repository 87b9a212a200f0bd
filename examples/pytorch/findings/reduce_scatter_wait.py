"""Gloo's reduce_scatter ignores the timeout of wait(), and its is_completed() never says True."""
import time
from datetime import timedelta

import torch
from two_ranks import run, tell


def main(rank, group):
    time.sleep(2 * rank)  # rank 1 comes 2 s later
    work = group._reduce_scatter_base(torch.zeros(2), torch.zeros(4))
    tell(f"rank {rank}: wait(0.5 s)", lambda: work.wait(timedelta(seconds=0.5)))
    tell(f"rank {rank}: is_completed()", work.is_completed)


if __name__ == "__main__":
    run(main)
