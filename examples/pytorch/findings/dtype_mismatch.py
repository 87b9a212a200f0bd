"""With other dtypes of the same size on the ranks, Gloo adds the bits and gives no error."""
import torch
from two_ranks import run, tell


def main(rank, group):
    x = torch.ones(2, dtype=(torch.float32, torch.int32)[rank])
    tell(f"rank {rank}: allreduce", lambda: (group.allreduce(x).wait(), x.tolist()))


if __name__ == "__main__":
    run(main)
