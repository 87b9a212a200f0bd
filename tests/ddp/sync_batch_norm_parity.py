"""Compares synchronized BatchNorm on 1, 2 and 3 ranks with PyTorch's BatchNorm on the whole batch, which is what
SyncBatchNorm promises; PyTorch's SyncBatchNorm itself refuses CPUs.

Usage: sync_batch_norm_parity.py PROGRAM DDPRUN. Exit code: 0 if all agree, 1 if not, 77 if this Python has no torch.
"""

import subprocess
import sys

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}; set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)

TOLERANCE = 1e-13  # float64; the values are around 1
SAMPLES = 24


def trained():
    """The net and the steps of sync_batch_norm_program.cpp."""
    net = nn.Sequential(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Unflatten(1, (3, 2)), nn.BatchNorm3d(3),
                        nn.Flatten(), nn.Linear(54, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    with torch.no_grad():
        for parameter in net.parameters():
            values = torch.sin(torch.arange(parameter.numel()) * 0.7 + parameter.dim())
            parameter.copy_(values.view_as(parameter) * 0.3 + 0.1)
    net.double()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for step in range(5):
        numbers = torch.arange(SAMPLES * 2 * 25, dtype=torch.float64)
        inputs = torch.sin(numbers * (0.37 + step)).view(SAMPLES, 2, 5, 5) + 1
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), torch.arange(SAMPLES) % 3).backward()
        optimizer.step()
    return net.state_dict()


def main(program, ddprun):
    expected = trained()
    failed = False
    for ranks in (1, 2, 3):
        result = subprocess.run([ddprun, "launch", "--nproc-per-node", str(ranks), program, "print_trained"],
                                stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        ours = {line.split()[0]: torch.tensor([float(value) for value in line.split()[1:]], dtype=torch.float64)
                for line in result.stdout.splitlines()}
        if ours.keys() != expected.keys():
            sys.exit(f"{ranks} ranks: tensors {sorted(ours)}, PyTorch's are {sorted(expected)}")
        apart = {name: (ours[name] - expected[name].double().reshape(-1)).abs().max().item() for name in expected}
        worst = max(apart, key=apart.get)
        print(f"{ranks} ranks: at most {apart[worst]:.2g} apart, {worst}")
        failed = failed or not apart[worst] < TOLERANCE
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
