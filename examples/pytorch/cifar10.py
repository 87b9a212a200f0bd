"""Trains ResNet-18 on CIFAR-10 with DistributedDataParallel.

    torchrun --nproc-per-node 2 examples/pytorch/cifar10.py --backend ddprun_shm --size 32
"""

import torch
import torch.distributed as dist
from data import cifar10
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from training import device_of, parse, parser_of, train


def convolution(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(),
                                  convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs))
        self.skip = nn.Identity()
        if inputs != outputs:
            self.skip = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, images):
        return torch.relu(self.body(images) + self.skip(images))


def resnet18(classes):
    """The network of torchvision.models.resnet18."""
    layers = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(inputs, outputs, 1 if inputs == outputs else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


def main():
    parser = parser_of(__doc__, epochs=3, batch_size=32, lr=0.05)
    parser.add_argument("--data", default="data/cifar10", metavar="DIR",
                        help="the folder of data_batch_1.bin and so on, plain or .gz (data/cifar10)")
    parser.add_argument("--size", type=int, default=224, choices=[224, 32],
                        help="the size of the images in the network; 32 is seven times smaller and much faster (224)")
    args = parse(parser)
    data = cifar10(args.data)  # before the ranks join, so that a missing file stops all of them at once
    dist.init_process_group(args.backend)
    device = device_of(args.backend)
    torch.manual_seed(42)  # the same first weights in each run

    loader = DataLoader(data, args.batch_size, sampler=DistributedSampler(data))
    network = resnet18(classes=10)
    if args.size != 32:
        network = nn.Sequential(nn.Upsample(size=(args.size, args.size), mode="bilinear"), network)
    model = DistributedDataParallel(network.to(device))
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    train(model, loader, nn.CrossEntropyLoss(), optimizer, device, args)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
