"""Gloo takes no int16, also where it only moves the elements."""
import torch
from two_ranks import run, tell


def main(rank, group):
    x = torch.ones(2, dtype=torch.int16)
    tell(f"rank {rank}: broadcast", lambda: group.broadcast(x, 0).wait())
    tell(f"rank {rank}: allreduce", lambda: group.allreduce(x).wait())


if __name__ == "__main__":
    run(main)
