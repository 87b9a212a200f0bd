"""With other counts on the ranks, Gloo ends a process, or gives no error at all."""
import torch
from two_ranks import run, tell


def main(rank, group):
    x = torch.full((4 if rank == 0 else 8,), float(rank))
    tell(f"rank {rank}: broadcast of 4 elements into 8", lambda: (group.broadcast(x, 0).wait(), x.tolist()))
    tell(f"rank {rank}: allreduce of 4 and 8 elements", lambda: group.allreduce(x).wait())


if __name__ == "__main__":
    run(main)
