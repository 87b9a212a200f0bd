"""Trains the same models on the same samples with PyTorch's DistributedDataParallel over Gloo and with the library's
(library_program.cpp), on 1, 2 and 3 ranks, and compares all parameters and rank 0's buffers.

Usage: library_parity.py PROGRAM DDPRUN [CASE...]. Ends with 77 if torch is missing.
"""

import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy  # PowerSGDState needs it
    import torch
    import torch._dynamo  # The first optimizer imports it, which takes seconds: once, before the fork.
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention
    from torch.utils.checkpoint import checkpoint
except ImportError as missing:
    print(f"skipped: {sys.executable}: {missing}; set DDPRUN_PYTHON to a Python with torch and numpy")
    sys.exit(77)

# The largest absolute difference of a weight, by case and number of ranks. All others are equal bit for bit.
TOLERANCES = {
    # Measured 1.5e-8. With find_unused_parameters and static_graph, PyTorch's buckets have another order than the
    # library's, which have that of the gradients. On three ranks, the place in a bucket decides in which order a ring
    # adds.
    "unused": {3: 1e-7},
    "checkpoint": {3: 1e-7},
}
PATIENCE = 100  # seconds, for the ranks of one side
SAMPLES, BATCH = 128, 4

# What a case sets; the rest is as here. cap: bucket_cap_mb, small enough for several buckets.
USUAL = {"model": "simplenet", "cap": 0.005, "lr": 0.05, "weight_decay": 0.0, "parts": 1, "find_unused": False,
         "static_graph": False, "join": None, "hook": None, "rank": 1, "min_rate": 0.5, "feedback": True,
         "warm_start": True}  # fmt: skip
RESNET = {"model": "resnet", "cap": 0.05}
TRANSFORMER = {"model": "transformer", "cap": 0.02}
# One bucket: the hook of PyTorch waits for collectives inside of Gloo's callbacks, which hangs with several buckets.
POWER = {"hook": "power_sgd", "cap": 25}
CASES = {
    "simplenet": {},
    "resnet": RESNET,
    "transformer": TRANSFORMER,
    "no_sync": {"parts": 2},
    "no_sync_resnet": {**RESNET, "parts": 2},
    "unused": {"model": "partly", "find_unused": True, "weight_decay": 0.1},
    "checkpoint": {"model": "checkpointed", "static_graph": True},
    "join": {"join": "initial"},
    "join_active": {"join": "active"},
    "join_resnet": {**RESNET, "join": "active"},
    "fp16": {"hook": "fp16"},
    "bf16": {"hook": "bf16"},
    "power_1": POWER,
    "power_2": {**POWER, "rank": 2},
    "power_4": {**POWER, "rank": 4},
    "power_no_feedback": {**POWER, "rank": 2, "feedback": False},
    "power_cold": {**POWER, "rank": 2, "warm_start": False},
    "power_cold_no_feedback": {**POWER, "rank": 4, "warm_start": False, "feedback": False},
    "power_transformer": {**TRANSFORMER, **POWER, "rank": 2},
    "power_resnet": {**RESNET, **POWER, "rank": 4, "min_rate": 2},
}


class SimpleNet(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, 256), nn.Linear(256, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Partly(nn.Module):
    """Rank 1 does not use `extra`; no rank uses `idle`."""

    def __init__(self, rank):
        super().__init__()
        self.rank = rank
        self.fc1, self.idle, self.extra, self.fc2 = nn.Linear(784, 32), *(nn.Linear(32, 10) for _ in range(3))

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return self.fc2(x) if self.rank == 1 else self.fc2(x) + self.extra(x)


class Checkpointed(nn.Module):
    """The hidden layer is used twice, each time checkpointed."""

    def __init__(self, rank):
        super().__init__()
        self.fc1, self.hidden, self.fc2 = nn.Linear(784, 32), nn.Linear(32, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        for _ in range(2):
            x = torch.tanh(checkpoint(self.hidden, x, use_reentrant=True))
        return self.fc2(x)


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(),
                                  convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs))  # fmt: skip
        shortcut = [convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)] if stride > 1 else []
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(rank):
    return nn.Sequential(convolution(3, 16, 3, 1), nn.BatchNorm2d(16), nn.ReLU(), Residual(16, 16, 1),
                         Residual(16, 32, 2), Residual(32, 64, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 10))  # fmt: skip


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.norm2, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x):
        parts = [part.unflatten(-1, (2, 16)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1)]
        heads = scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).flatten(2))
        return x + self.down(gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Causal. Two inputs: tokens, and their positions."""

    def __init__(self, rank):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(64, 32), nn.Embedding(16, 32)
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(32, 64)

    def forward(self, tokens, positions):
        return self.head(self.blocks(self.tokens(tokens) + self.positions(positions)))


MODELS = {"simplenet": SimpleNet, "partly": Partly, "checkpointed": Checkpointed, "resnet": resnet,
          "transformer": Transformer}  # fmt: skip


def flat(tensors):
    return torch.cat([tensor.detach().float().flatten() for tensor in tensors])


def write(path, tensor):
    path.write_bytes(tensor.contiguous().numpy().tobytes())


def read(path):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


def make_files(folder):
    """Samples, and initial weights of each model."""
    torch.manual_seed(1)
    tokens = torch.randint(64, (SAMPLES, 17)).float()
    write(folder / "tokens", tokens[:, :-1])
    write(folder / "next", tokens[:, 1:])
    write(folder / "images", torch.randn(SAMPLES, 3, 32, 32))
    for name, make in MODELS.items():
        write(folder / name, flat(make(0).parameters()))


def samples_of(model, folder):
    """Inputs, and targets."""
    if model == "transformer":
        tokens, following = (read(folder / name).view(SAMPLES, 16).long() for name in ("tokens", "next"))
        return [tokens, torch.arange(16).expand(SAMPLES, 16)], following
    images = read(folder / "images").view(SAMPLES, 3, 32, 32)
    return [images if model == "resnet" else images.flatten(1)[:, :784]], torch.arange(SAMPLES) % 10


def register_hook(ddp, case):
    if case["hook"] != "power_sgd":
        ddp.register_comm_hook(None, getattr(default_hooks, f"{case['hook']}_compress_hook"))
        return
    state = powerSGD_hook.PowerSGDState(
        None, case["rank"], start_powerSGD_iter=2, min_compression_rate=case["min_rate"],
        use_error_feedback=case["feedback"], warm_start=case["warm_start"])  # fmt: skip
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def train(case, rank, ranks, folder):
    torch.manual_seed(rank)
    net = MODELS[case["model"]](rank)
    if rank == 0:
        nn.utils.vector_to_parameters(read(folder / case["model"]), net.parameters())
    ddp = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=case["cap"], static_graph=case["static_graph"],
                                              find_unused_parameters=case["find_unused"])  # fmt: skip
    if case["hook"]:
        register_hook(ddp, case)
    sgd = torch.optim.SGD(net.parameters(), case["lr"], momentum=0.9, weight_decay=case["weight_decay"])
    inputs, targets = samples_of(case["model"], folder)

    def loss_of(batch):
        part = slice(batch * BATCH, (batch + 1) * BATCH)
        return cross_entropy(ddp(*(tensor[part] for tensor in inputs)).flatten(0, -2), targets[part].flatten())

    def loop(steps):
        parts = case["parts"]
        for step in range(steps):
            sgd.zero_grad()
            batches = [(step * parts + part) * ranks + rank for part in range(parts)]
            with ddp.no_sync():
                for batch in batches[:-1]:
                    loss_of(batch).backward()
            loss_of(batches[-1]).backward()
            sgd.step()

    if case["join"]:
        with ddp.join(divide_by_initial_world_size=case["join"] == "initial"):
            loop(3 + rank)
    else:
        loop(5)
    # The buffers of the other ranks become rank 0's only with the next forward.
    return flat([*net.parameters(), *(net.buffers() if rank == 0 else [])])


def rank_main(cases, rank, ranks, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store-{ranks}", rank=rank, world_size=ranks)
    for case in cases:
        write(folder / f"{case['name']}-{rank}.pytorch", train(case, rank, ranks, folder))
    dist.destroy_process_group()
    os._exit(0)  # PyTorch's threads may still run, and destructors at exit then end the process with SIGABRT


def run_pytorch(cases, ranks, folder):
    """Runs all cases in the same processes, and forks these, because importing torch takes longer than training."""
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=rank_main, args=(cases, rank, ranks, folder), daemon=True)
                 for rank in range(ranks)]  # fmt: skip
    for process in processes:
        process.start()
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
        if process.exitcode != 0:
            for other in processes:
                other.kill()
            end = "does not end" if process.exitcode is None else f"exit code {process.exitcode}"
            sys.exit(f"PyTorch on {ranks} ranks: {end}")


def run_library(cases, ranks, folder, program, ddprun):
    command = [ddprun, "launch", "--nproc-per-node", str(ranks), program, str(folder)]
    command += [",".join(f"{key}={value}" for key, value in case.items()) for case in cases]
    subprocess.run(command, env={**os.environ, "DDPRUN_BACKEND": "gloo"}, check=True, timeout=PATIENCE)


def compare(case, ranks, folder):
    """The largest difference, or None if all are equal bit for bit."""
    largest = None
    for rank in range(ranks):
        ours, theirs = read(folder / f"{case['name']}-{rank}"), read(folder / f"{case['name']}-{rank}.pytorch")
        if not torch.isfinite(theirs).all():
            sys.exit(f"{case['name']}: PyTorch's weights are not finite")
        if not torch.equal(ours.view(torch.int32), theirs.view(torch.int32)):
            largest = max(largest or 0.0, (ours - theirs).abs().nan_to_num(torch.inf).max().item())
    return largest


def main(program, ddprun, *names):
    torch.set_num_threads(1)
    cases = [{"name": name, **USUAL, **CASES[name]} for name in names or CASES]
    failed = False
    for ranks in (1, 2, 3):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            make_files(folder)
            begin = time.monotonic()
            run_pytorch(cases, ranks, folder)
            middle = time.monotonic()
            run_library(cases, ranks, folder, program, ddprun)
            print(f"{ranks} ranks: PyTorch {middle - begin:.1f} s, library {time.monotonic() - middle:.1f} s")
            for case in cases:
                apart, allowed = compare(case, ranks, folder), TOLERANCES.get(case["name"], {}).get(ranks)
                within = apart is None or (allowed is not None and apart <= allowed)
                print(f"  {case['name']}, {ranks} ranks: {'equal bit for bit' if apart is None else f'{apart:.1e}'}"
                      f"{'' if within else ', expected ' + ('bits' if allowed is None else f'at most {allowed:.0e}')}")
                failed = failed or not within
    return int(failed)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # of the library's program
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    sys.exit(main(*sys.argv[1:]))
