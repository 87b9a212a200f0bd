"""Fits y = 2x + 3 with DistributedDataParallel.

    torchrun --nproc-per-node 2 examples/pytorch/linear.py --backend ddprun_shm
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from training import device_of, parse, parser_of, train

SAMPLES = 10_000


def line():
    """All ranks make the same samples. The sampler divides them."""
    generator = torch.Generator().manual_seed(42)
    x = torch.randn(SAMPLES, 1, generator=generator)
    return TensorDataset(x, 2 * x + 3 + 0.1 * torch.randn(SAMPLES, 1, generator=generator))


def main():
    args = parse(parser_of(__doc__, epochs=3, batch_size=32, lr=0.05))
    dist.init_process_group(args.backend)
    device = device_of(args.backend)
    torch.manual_seed(42)  # the same first weights in each run

    data = line()
    loader = DataLoader(data, args.batch_size, sampler=DistributedSampler(data))
    model = DistributedDataParallel(torch.nn.Linear(1, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    train(model, loader, torch.nn.MSELoss(), optimizer, device, args)

    if dist.get_rank() == 0:
        print(f"y = {model.module.weight.item():.2f}x + {model.module.bias.item():.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
