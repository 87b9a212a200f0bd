"""Trains a network of two linear layers on MNIST with DistributedDataParallel.

    torchrun --nproc-per-node 2 examples/pytorch/mnist.py --backend ddprun_shm
"""

import torch
import torch.distributed as dist
from data import mnist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from training import device_of, parse, parser_of, train


class SimpleNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(784, 256)
        self.fc2 = torch.nn.Linear(256, 10)

    def forward(self, images):
        return self.fc2(torch.relu(self.fc1(images.flatten(1))))


def main():
    parser = parser_of(__doc__, epochs=3, batch_size=64, lr=0.1)
    parser.add_argument("--data", default="data/mnist", metavar="DIR",
                        help="the folder of the IDX files, plain or .gz (data/mnist)")
    args = parse(parser)
    data = mnist(args.data)  # before the ranks join, so that a missing file stops all of them at once
    dist.init_process_group(args.backend)
    device = device_of(args.backend)
    torch.manual_seed(42)  # the same first weights in each run

    loader = DataLoader(data, args.batch_size, sampler=DistributedSampler(data))
    model = DistributedDataParallel(SimpleNet().to(device))
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    train(model, loader, torch.nn.CrossEntropyLoss(), optimizer, device, args)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
