"""One rank of PyTorch DDP under torchrun, for library.py, memory.py, pytorch.py and training.py. Rank 0 prints a line of
JSON.

The code follows the tutorials: DistributedDataParallel with its defaults, a DataLoader with a DistributedSampler, the
optimizers of torch.optim, torchvision's ResNet-18. Data are almost free to fetch, so that they affect neither time nor
peak memory. One epoch covers all steps.
"""

import argparse
import ctypes
import hashlib
import itertools
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CLASSES = 10
IN_MEMORY = 16  # batches that are used in turn


class Windows(torch.utils.data.Dataset):
    """Windows of one pool of normal values, like ddprun's data set "synthetic"."""

    OFFSETS = 4096

    def __init__(self, shape, samples):
        self.shape, self.samples = shape, samples
        self.elements = torch.Size(shape).numel()
        self.pool = torch.randn(self.elements + self.OFFSETS)

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        offset = index * 31 % self.OFFSETS
        return self.pool[offset:offset + self.elements].view(self.shape), index % CLASSES


def line(samples):
    x = torch.randn(samples, 1)
    return torch.utils.data.TensorDataset(x, 2 * x + 3 + 0.1 * torch.randn(samples, 1))


def job_of(args, samples):
    """Returns data, model, loss and optimizer."""
    if args.job == "linear":
        model = torch.nn.Linear(1, 1)
        return line(samples), model, torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    if args.job == "simplenet":
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 256), torch.nn.ReLU(),
                                    torch.nn.Linear(256, CLASSES))
        return Windows((1, 28, 28), samples), model, loss_of, torch.optim.Adam(model.parameters(), lr=1e-3)
    if args.job == "mnist":  # the network of examples/ddp_mnist
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 5, stride=2), torch.nn.ReLU(),
                                    torch.nn.Conv2d(8, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.Flatten(),
                                    torch.nn.Linear(256, CLASSES))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
        return Windows((1, 28, 28), samples), model, loss_of, optimizer
    from torchvision.models import resnet18
    model = resnet18(num_classes=CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return Windows((3, args.extent, args.extent), samples), model, loss_of, optimizer


def peak_bytes():
    """VmHWM of this process. ru_maxrss would include torchrun's memory from before it started this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def digest_of(model):
    """SHA-256 of all bits of the weights."""
    digest = hashlib.sha256()
    for weight in model.parameters():
        weight = weight.detach().contiguous()
        digest.update(ctypes.string_at(weight.data_ptr(), weight.nbytes))
    return digest.digest()


def gather(own):
    """The tensors of all ranks, in rank order."""
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, own)
    return gathered


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="gloo", help="that of torch.distributed (gloo)")
    parser.add_argument("--job", choices=["linear", "simplenet", "mnist", "resnet18"], required=True)
    parser.add_argument("--extent", type=int, default=224, help="size of ResNet-18's images (224)")
    parser.add_argument("--data", choices=["loader", "memory"], default="loader",
                        help="a DataLoader, or a few of its batches that are used in turn (loader)")
    parser.add_argument("--batch", type=int, required=True, help="samples per rank")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm", type=int, default=0, help="first steps, which are not measured (0)")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def loader(args, data):
    sampler = torch.utils.data.distributed.DistributedSampler(data)
    return torch.utils.data.DataLoader(data, args.batch, sampler=sampler)


def train(args):
    """The trained model, and the seconds of each step."""
    memory = args.data == "memory"
    count = IN_MEMORY if memory else args.steps
    data, model, loss_of, optimizer = job_of(args, args.batch * count * dist.get_world_size())
    model = DistributedDataParallel(model)
    batches = loader(args, data)
    if memory:
        batches = itertools.islice(itertools.cycle(list(batches)), args.steps)
    seconds = []
    begin = time.perf_counter()
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        loss.item()
        now = time.perf_counter()
        seconds.append(now - begin)
        begin = now
    return model, seconds


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    dist.init_process_group(args.backend)
    torch.manual_seed(42)
    model, seconds = train(args)
    measured = seconds[args.warm:]
    own = statistics.median(measured)
    peaks, steps = zip(*(each.tolist() for each in gather(torch.tensor([peak_bytes(), own], dtype=torch.float64))))
    digests = [bytes(each.tolist()).hex() for each in gather(torch.tensor(list(digest_of(model)), dtype=torch.uint8))]
    if dist.get_rank() == 0:
        print(json.dumps({"torch": torch.__version__, "peak": max(peaks), "step": own, "slowest_step": max(steps),
                          "steps_per_second": len(measured) / sum(measured), "weights": digests}), flush=True)
    # No destroy_process_group: in Torch 2.11 it sometimes waits forever for Gloo's thread.
    dist.barrier()
    time.sleep(0.05)  # until the other ranks have left the barrier
    os._exit(0)


main()
