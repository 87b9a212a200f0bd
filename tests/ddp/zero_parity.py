"""Trains the net of zero_program.cpp with PyTorch's ZeroRedundancyOptimizer over Gloo, and with ddprun's, on 2 and 3
ranks. Compares which rank has which parameter, and the weights.

Usage: zero_parity.py ZERO_PROGRAM DDPRUN. Ends with 77 if torch is missing.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

try:
    import torch
    import torch._dynamo  # The first optimizer imports it, which takes seconds: once, before the fork.
    import torch.distributed as dist
    from torch.distributed.optim import ZeroRedundancyOptimizer
except ImportError as missing:
    print(f"skipped: {sys.executable}: {missing}; set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)

TOLERANCE = 1e-6  # absolute; weights are about 0.2. Adam of LibTorch rounds otherwise than Adam of Python
PATIENCE = 100  # seconds
OPTIMIZERS = {
    "adam": (torch.optim.Adam, {"lr": 0.01}),
    "sgd": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
}


class Net(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, outputs) for outputs in [width] * 6 + [3])
        with torch.no_grad():
            for phase, parameter in enumerate(self.parameters()):
                angle = torch.arange(parameter.numel(), dtype=torch.float64) * 0.7 + phase
                parameter.copy_((angle.sin() * 0.2).view(parameter.shape))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def rank_main(rank, ranks, port, folder):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    for name in OPTIMIZERS:
        train(rank, ranks, name, folder)
    dist.destroy_process_group()


def train(rank, ranks, name, folder):
    net = Net()
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    kind, options = OPTIMIZERS[name]
    zero = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=kind, **options)
    inputs = (torch.arange(24 * 32, dtype=torch.float64) * 0.3).cos().float().view(24, 32)
    targets = torch.arange(24).remainder(3)
    for step in range(6):
        zero.zero_grad()
        loss = torch.nn.functional.cross_entropy(ddp(inputs.chunk(ranks)[rank]), targets.chunk(ranks)[rank])
        loss.backward()
        if step == 3:
            zero.param_groups[0]["lr"] = 0.002
        zero.step()
    if rank == 0:
        owners = [zero._param_to_rank[parameter] for parameter in net.parameters()]
        torch.save((owners, [parameter.detach() for parameter in net.parameters()]), folder / name)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def main(program, ddprun):
    torch.set_num_threads(1)  # also because a process with OpenMP's threads cannot be forked
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for ranks in (2, 3):
            # Forked, because importing torch takes longer than training.
            torch.multiprocessing.start_processes(rank_main, (ranks, free_port(), folder), ranks, start_method="fork")
            for name in OPTIMIZERS:
                owners, expected = torch.load(folder / name)
                weights = folder / "weights"
                command = [ddprun, "launch", "--nproc-per-node", str(ranks), program, f"parity_{name}", str(weights)]
                out = subprocess.run(command, env={**os.environ, "DDPRUN_BACKEND": "gloo"}, stdout=subprocess.PIPE,
                                     check=True, text=True, timeout=PATIENCE).stdout  # fmt: skip
                flat = torch.frombuffer(bytearray(weights.read_bytes()), dtype=torch.float32)
                wanted = torch.cat([tensor.flatten() for tensor in expected])
                largest = (flat - wanted).abs().max().item()
                ours = [int(word) for word in out.split()]
                print(f"{name}, {ranks} ranks: owners {'equal' if ours == owners else f'{ours}, in PyTorch {owners}'}, "
                      f"largest difference of a weight {largest:.1e}, {(flat == wanted).float().mean().item():.0%} "
                      "equal bit for bit")  # fmt: skip
                failed = failed or ours != owners or not largest <= TOLERANCE
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    sys.exit(main(*sys.argv[1:]))
