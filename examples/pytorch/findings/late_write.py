"""After a wait that has timed out, Gloo still writes into the tensor."""
import time
from datetime import timedelta

import torch
from two_ranks import run, tell


def main(rank, group):
    x = torch.ones(4)
    time.sleep(2 * rank)  # rank 1 comes 2 s later
    work = group.allreduce(x)
    tell(f"rank {rank}: wait(0.5 s)", lambda: work.wait(timedelta(seconds=0.5)))
    tell(f"rank {rank}: the tensor", lambda: x[0].item())
    time.sleep(3)
    tell(f"rank {rank}: the tensor later", lambda: x[0].item())


if __name__ == "__main__":
    run(main)
