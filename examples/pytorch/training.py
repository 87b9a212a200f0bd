"""What the programs of this folder share: their options, their device, and the loop over epochs."""

import argparse
import itertools
import os
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist


def parser_of(description, epochs, batch_size, lr):
    """The options that all programs have, with these defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="gloo", metavar="NAME",
                        help="gloo, nccl, ddprun_shm, ddprun_gloo, ddprun_ucx or ddprun_nccl (gloo)")
    parser.add_argument("--epochs", type=int, default=epochs, metavar="N", help=f"({epochs})")
    parser.add_argument("--batch-size", type=int, default=batch_size, metavar="N",
                        help=f"the samples of a rank in a step ({batch_size})")
    parser.add_argument("--lr", type=float, default=lr, metavar="X", help=f"the learning rate ({lr})")
    parser.add_argument("--steps", type=int, metavar="N", help="end an epoch after so many steps (all)")
    return parser


def parse(parser):
    args = parser.parse_args()
    if min(args.epochs, args.batch_size, args.steps or 1) < 1 or args.steps == 0:
        parser.error("--epochs, --batch-size and --steps must be at least 1")
    if not dist.is_backend_available(args.backend):
        hint = "; PYTHONPATH has no folder with ddprun's package" if args.backend.startswith("ddprun_") else ""
        stop(f"--backend {args.backend}: this Torch has no such backend{hint}")
    if "LOCAL_RANK" not in os.environ:
        stop("start it with torchrun: torchrun --nproc-per-node 2 " + sys.argv[0])
    return args


def stop(reason):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {reason}")


def device_of(backend):
    """NCCL works with GPUs only: then each rank of a host has its own."""
    if not backend.endswith("nccl"):
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def train(model, loader, loss_of, optimizer, device, args):
    """Prints a line for each epoch. Its loss is the mean of all ranks. A step is timed without the loading of data."""
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)  # another order in each epoch
        total, seconds = 0.0, []
        for inputs, targets in itertools.islice(loader, args.steps):
            inputs, targets = inputs.to(device), targets.to(device)
            begin = time.perf_counter()
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()  # DDP averages the gradients here, over the backend
            optimizer.step()
            total += loss.item()  # waits until a GPU has done the step
            seconds.append(time.perf_counter() - begin)
        mean = torch.tensor(total / len(seconds), device=device)
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}: loss {mean.item() / dist.get_world_size():.4f}; {len(seconds)} steps, "
                  f"median {statistics.median(seconds) * 1e3:.3f} ms", flush=True)
