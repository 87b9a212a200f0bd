#!/usr/bin/env python3
"""What PyTorch builds on torch.distributed, over Gloo and over ddprun's backends: after some steps, all weights must have
the same bits. Two ranks, so the order of sums is the same.

    python tests/python/torch_features.py FOLDER [PLUGIN...]     # FOLDER: the one that the package ddprun is in
"""
import hashlib
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: {error}: set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import distribute_tensor, Shard
from torch.nn.parallel import DistributedDataParallel

import ranks


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 4))


def train(model, optimizer, steps=5):
    torch.manual_seed(1 + dist.get_rank())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 20)).square().mean().backward()
        optimizer.step()


def digest(tensors):
    return hashlib.sha256(b"".join(tensor.detach().clone().contiguous().numpy().tobytes() for tensor in tensors)).hexdigest()


def with_hook(hook):
    def run():
        model = DistributedDataParallel(net(), bucket_cap_mb=0.01)
        model.register_comm_hook(None, hook)
        train(model, torch.optim.SGD(model.parameters(), 0.1))
        return digest(model.parameters())

    return run


def power_sgd():
    """One bucket: with more, the order in which its callbacks start collectives would differ between the ranks."""
    model = DistributedDataParallel(net())
    model.register_comm_hook(powerSGD_hook.PowerSGDState(None, 2, start_powerSGD_iter=3), powerSGD_hook.powerSGD_hook)
    train(model, torch.optim.SGD(model.parameters(), 0.1), steps=8)
    return digest(model.parameters())


def zero():
    model = DistributedDataParallel(net())
    train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01))
    return digest(model.parameters())


def fsdp():
    model = FullyShardedDataParallel(net(), device_id=torch.device("cpu"))
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    with FullyShardedDataParallel.summon_full_params(model):
        return digest(model.parameters())


def fsdp2():
    model = net()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    return digest([weight.full_tensor() for weight in model.parameters()])


def dtensor():
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    left = distribute_tensor(torch.randn(16, 8), mesh, [Shard(0)])
    right = distribute_tensor(torch.randn(8, 16), mesh, [Shard(0)])
    return digest([(left @ right).full_tensor()])


def compiled():
    model = torch.compile(DistributedDataParallel(net()), backend="eager")
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    return digest(model.parameters())


FEATURES = {
    "hook allreduce": with_hook(default_hooks.allreduce_hook),
    "hook fp16": with_hook(default_hooks.fp16_compress_hook),
    "hook bf16": with_hook(default_hooks.bf16_compress_hook),
    "hook PowerSGD": power_sgd,
    "ZeroRedundancyOptimizer": zero,
    "FullyShardedDataParallel": fsdp,
    "fully_shard": fsdp2,
    "DTensor": dtensor,
    "torch.compile": compiled,
}


def over(backend, feature):
    def body(rank):
        rank.join(backend)
        result = FEATURES[feature]()
        dist.barrier()
        return result

    return ranks.run(body)


def main():
    import ddprun
    failed = 0
    for feature in FEATURES:
        if feature == "fully_shard" and torch.__version__.startswith("2.7."):
            print(f"{feature}: skipped: the reduce_scatter of PyTorch 2.7's Gloo takes AVG as SUM")
            continue
        expected = over("gloo", feature)
        print(f"{feature}: gloo: {'done' if isinstance(expected[0], str) else expected[0]}", flush=True)
        for plugin in sys.argv[2:] or [name for name in ("shm", "gloo", "ucx") if name in ddprun.backends()]:
            found = over("ddprun_" + plugin, feature)
            failed += found != expected
            print(f"{feature}: ddprun_{plugin}: {'the same bits' if found == expected else found}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
