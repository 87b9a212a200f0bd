"""abort() of a Gloo group does not end a call that is blocked: that ends at the group's timeout of 5 s."""
import threading
import time

import torch
from two_ranks import run, tell


def main(rank, group):
    if rank == 1:
        return time.sleep(7)  # rank 1 stays away
    work = group.allreduce(torch.zeros(4))
    threading.Timer(0.5, lambda: tell("abort()", group.abort)).start()
    tell("allreduce", work.wait)


if __name__ == "__main__":
    run(main)
