"""One rank of PyTorch DDP on ResNet-18, for memory.py: run it under torchrun. Prints a line of JSON on rank 0.

    pytorch_ddp.py EXTENT BATCH STEPS WARM THREADS

What the tutorials write: torchvision's model, DistributedDataParallel with its defaults, Gloo, SGD with momentum. The
images are made as they are needed, so that no data set takes part in the peak.
"""

import json
import os
import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet18

EXTENT, BATCH, STEPS, WARM, THREADS = map(int, sys.argv[1:])


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return BATCH * STEPS * dist.get_world_size()

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, EXTENT, EXTENT, generator=generator), index % 10


def peak_bytes():
    """VmHWM: of this program alone, where ru_maxrss counts what torchrun had before it started this one."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def main():
    torch.set_num_threads(THREADS)
    dist.init_process_group("gloo")
    torch.manual_seed(42)
    model = DistributedDataParallel(resnet18(num_classes=10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    data = Images()
    sampler = torch.utils.data.distributed.DistributedSampler(data)
    seconds, faults = [], 0
    begin = time.perf_counter()
    for step, (images, labels) in enumerate(torch.utils.data.DataLoader(data, BATCH, sampler=sampler)):
        if step == WARM:
            faults = page_faults()
        optimizer.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        now = time.perf_counter()
        seconds.append(now - begin)
        begin = now
    mine = torch.tensor([peak_bytes(), (page_faults() - faults) / (STEPS - WARM)], dtype=torch.float64)
    dist.all_reduce(mine, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(json.dumps({"peak": mine[0].item(), "faults": mine[1].item(),
                          "step": statistics.median(seconds[WARM:])}), flush=True)
    # Without destroy_process_group: in Torch 2.11 it now and then waits for ever for Gloo's thread.
    dist.barrier()
    time.sleep(0.5)  # the other ranks have left the barrier too
    os._exit(0)


main()
