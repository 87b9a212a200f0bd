"""The ranks of the cases in PyTorch, as its own tutorials write them. argv: a job in JSON."""

import datetime
import gzip
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import sys

import torch
import torch._dynamo  # The first optimizer imports it, which takes seconds: once, before the fork.
import torch.distributed as dist
from ddp_parity import die_with_parent
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, SequentialSampler, TensorDataset


class SimpleNet(torch.nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.fc1 = torch.nn.Linear(inputs, hidden)
        self.fc2 = torch.nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))


def resnet18():
    import torchvision

    return torchvision.models.resnet18(num_classes=10)


MODELS = {
    "linear": (lambda: torch.nn.Linear(1, 1), torch.nn.MSELoss()),
    "simplenet": (lambda: SimpleNet(784, 256, 10), torch.nn.CrossEntropyLoss()),
    "resnet18": (resnet18, torch.nn.CrossEntropyLoss()),
}


def read_idx(path, header, shape):
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8).view(-1, *shape)


def mnist(root, split):
    images = read_idx(root / f"{split}-images-idx3-ubyte.gz", 16, (1, 28, 28))
    labels = read_idx(root / f"{split}-labels-idx1-ubyte.gz", 8, ())
    return TensorDataset(images.float() / 255, labels.long())


def open_splits(case):
    config = case["config"]
    if config["data.name"] == "mnist":
        root = pathlib.Path(config["data.root"])
        return mnist(root, "train"), mnist(root, "t10k")
    tensors = load_file(case["data"])
    return tuple(TensorDataset(tensors[f"{split}.inputs"], tensors[f"{split}.targets"]) for split in ("train", "test"))


def make_optimizer(config, parameters, world):
    lr = config["optimizer.lr"] * (world if config["optimizer.scale_lr"] == "world" else 1)
    decay = config["optimizer.weight_decay"]
    if config["optimizer.name"] == "sgd":
        momentum, nesterov = config["optimizer.momentum"], config["optimizer.nesterov"]
        return torch.optim.SGD(parameters, lr, momentum, nesterov=nesterov, weight_decay=decay, fused=True)
    make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config["optimizer.name"]]
    betas, eps = config["optimizer.betas"], config["optimizer.eps"]
    return make(parameters, lr, betas, eps, decay, fused=True)


def make_schedule(config, optimizer, steps_per_epoch):
    """Called after each step."""
    schedulers = torch.optim.lr_scheduler
    warmup, total = config["train.warmup"], config.get("train.steps", config.get("train.epochs", 0) * steps_per_epoch)
    parts = [schedulers.LinearLR(optimizer, 1 / warmup, total_iters=warmup - 1)] if warmup else []
    if config["train.schedule"] == "cosine":
        parts.append(schedulers.CosineAnnealingLR(optimizer, total - warmup, config["train.min_lr"]))
        return schedulers.SequentialLR(optimizer, parts, [warmup]) if warmup else parts[0]
    if config["train.schedule"] == "step":
        steps = config["train.step_epochs"] * steps_per_epoch
        parts.append(schedulers.StepLR(optimizer, steps, config["train.step_factor"]))
    return schedulers.ChainedScheduler(parts) if parts else schedulers.ConstantLR(optimizer, 1)


def device_of(config, rank):
    """Where the tensors of a rank are."""
    if config.get("launch.device") != "cuda":
        return torch.device("cpu")
    return torch.device("cuda", config["launch.devices"][rank])


def precision(config, device):
    dtype = {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}[config["train.amp"]]
    return torch.autocast(device.type, dtype, enabled=dtype is not None)


class Order:
    """The samples of each epoch."""

    def __init__(self, config, dataset, rank, world):
        self.seed = config["experiment.seed"]
        self.generator = torch.Generator()
        if world > 1:
            drop = config["data.last"] == "drop"
            self.sampler = DistributedSampler(dataset, world, rank, config["data.shuffle"], self.seed, drop)
        elif config["data.shuffle"]:
            self.sampler = RandomSampler(dataset, generator=self.generator)
        else:
            self.sampler = SequentialSampler(dataset)

    def begin(self, epoch):
        self.generator.manual_seed(self.seed + epoch)
        if isinstance(self.sampler, DistributedSampler):
            self.sampler.set_epoch(epoch)


def distribute(model, config):
    sizes = {"bucket_cap_mb": config["strategy.bucket_cap_mb"]} if "strategy.bucket_cap_mb" in config else {}
    return DistributedDataParallel(model, broadcast_buffers=config["strategy.broadcast_buffers"], **sizes)


@torch.no_grad()
def evaluate(model, loss_of, loader, config, device):
    """Mean loss and the number of right answers over the whole test set."""
    model.eval()
    loss, right, samples = 0.0, 0, 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        with precision(config, device):
            outputs = model(inputs)
            loss += loss_of(outputs, targets).item() * len(inputs)
        if targets.dtype == torch.int64:
            right += (outputs.argmax(1) == targets).sum().item()
        samples += len(inputs)
    model.train()
    return {"loss": loss / samples, "right": right, "samples": samples}


def train(case, rank, world):
    """Trains; returns the steps and evaluations of this rank, and its model."""
    config = case["config"]
    train_set, test_set = open_splits(case)
    make_model, loss_of = MODELS[config["model.name"]]
    torch.manual_seed(config["experiment.seed"])
    device = device_of(config, rank)
    model = make_model().to(device)
    replica = distribute(model, config) if world > 1 else model
    optimizer = make_optimizer(config, replica.parameters(), world)
    batch = config["data.batch_size"] // (1 if config["data.batch_per"] == "rank" else world)
    order = Order(config, train_set, rank, world)
    loader = DataLoader(train_set, batch, sampler=order.sampler, drop_last=config["data.last"] == "drop")
    scaler = torch.amp.GradScaler(device.type, enabled=config["train.amp"] == "fp16")
    schedule = make_schedule(config, optimizer, len(loader))
    limit = config.get("train.steps", sys.maxsize)
    steps, tests, epoch = [], [], 0
    while epoch < config.get("train.epochs", sys.maxsize) and len(steps) < limit:
        order.begin(epoch)
        epoch += 1
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            optimizer.zero_grad()
            with precision(config, device):
                loss = loss_of(replica(inputs), targets)
            scaler.scale(loss).backward()
            if config["train.clip_norm"] > 0:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(replica.parameters(), config["train.clip_norm"])
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            steps.append({"epoch": epoch, "samples": len(inputs), "loss": loss.item()})
            if len(steps) == limit:
                break
        if rank == 0 and config["train.evaluate"]:
            tests.append(evaluate(model, loss_of, DataLoader(test_set, batch), config, device))
    return {"steps": steps, "tests": tests}, model


def backend_of(job, rank):
    """Ranks that share a GPU tell NCCL that they are on different hosts, and talk over sockets."""
    config = job["cases"][0]["config"]
    if config.get("launch.device") != "cuda":
        return "gloo"
    torch.cuda.set_device(device_of(config, rank))
    os.environ["NCCL_SOCKET_IFNAME"] = "=lo"
    if config.get("comm.options.share_gpu"):
        os.environ["NCCL_HOSTID"] = f"pytorch-rank-{rank}"
    return "nccl"


def rank_main(job, rank):
    die_with_parent()
    world, folder = job["world"], pathlib.Path(job["folder"])
    torch.set_num_threads(1)
    if job["cases"][0]["config"].get("train.deterministic"):
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        torch.use_deterministic_algorithms(True)
    if world > 1:
        store = f"file://{folder}/store-{world}"
        dist.init_process_group(backend_of(job, rank), store, datetime.timedelta(seconds=60), world_size=world, rank=rank)
    results = {}
    for case in job["cases"]:
        results[case["name"]], model = train(case, rank, world)
        if rank == 0:
            save_file(model.state_dict(), folder / f"{case['name']}-{world}.safetensors")
    (folder / f"pytorch-{world}-rank{rank}.json").write_text(
        json.dumps({"torch": torch.__version__, "cases": results}))
    if world > 1:
        dist.destroy_process_group()


def main():
    job = json.loads(pathlib.Path(sys.argv[1]).read_text())
    fork = multiprocessing.get_context("fork")  # importing torch takes longer than training
    ranks = [fork.Process(target=rank_main, args=(job, rank)) for rank in range(job["world"])]
    for rank in ranks:
        rank.start()
    # The first that fails ends the others: they die with this process.
    while alive := [rank.sentinel for rank in ranks if rank.exitcode is None]:
        multiprocessing.connection.wait(alive)
        if any(rank.exitcode for rank in ranks):
            os._exit(1)


main()
