"""One rank of PyTorch DDP under torchrun, for elastic.py: SimpleNet with a checkpoint every 100 steps, as in the tutorial
"Fault-tolerant Distributed Training with torchrun". Each rank prints its process, and rank 0 each step that it has
finished.

    torchrun ... pytorch_restart.py CHECKPOINT
"""

import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BATCH = 512  # of all ranks
EVERY = 100  # steps between two checkpoints



def say(text):
    os.write(1, f"{text}\n".encode())  # in one piece: the ranks share a pipe, and torchrun turns buffers off


checkpoint = pathlib.Path(sys.argv[1])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
say(f"pid {os.getpid()}")
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)))
sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
step = 0
if checkpoint.exists():
    state = torch.load(checkpoint)
    model.load_state_dict(state["model"])
    sgd.load_state_dict(state["sgd"])
    step = state["step"]
samples, classes = torch.randn(BATCH // ranks, 784), torch.arange(BATCH // ranks) % 10
while True:
    sgd.zero_grad()
    torch.nn.functional.cross_entropy(model(samples), classes).backward()
    sgd.step()
    step += 1
    if rank == 0:
        say(f"step {step}")
        if step % EVERY == 0:
            new = checkpoint.with_suffix(".new")
            torch.save({"model": model.state_dict(), "sgd": sgd.state_dict(), "step": step}, new)
            new.replace(checkpoint)
