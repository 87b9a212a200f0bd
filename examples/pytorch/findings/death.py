"""If a rank dies, Gloo's error comes at once. It has an address and a port, and no rank."""
import os
import signal
import time

import torch
from two_ranks import run, tell


def main(rank, group):
    if rank == 1:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    tell("allreduce, while rank 1 dies after 1 s", lambda: group.allreduce(torch.zeros(4)).wait())


if __name__ == "__main__":
    run(main)
