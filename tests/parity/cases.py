"""The experiments in which ddprun is compared with PyTorch: keys of a config, which pytorch_ranks.py reads too."""

import dataclasses

COMMON = {
    "experiment.seed": 42,
    "launch.threads": 1,
    "data.batch_per": "global",
    "data.shuffle": True,
    "data.last": "pad",
    "optimizer.scale_lr": "none",
    "optimizer.momentum": 0.0,
    "optimizer.nesterov": False,
    "optimizer.weight_decay": 0.0,
    "optimizer.betas": [0.9, 0.999],
    "optimizer.eps": 1e-8,
    "train.evaluate": True,
    "train.amp": "off",
    "train.clip_norm": 0.0,
    "train.schedule": "none",
    "train.warmup": 0,
    "checkpoint.every_epochs": 0,
}
DDP = {"strategy.kind": "ddp", "strategy.broadcast_buffers": True, "comm.backend": "gloo", "comm.algorithm": "ring"}
SINGLE = {"strategy.kind": "single"}

LINEAR = {
    "model.name": "linear",
    "data.name": "linear",
    "data.options.samples": 1200,
    "data.options.test_samples": 100,
    "data.batch_size": 24,
    "train.steps": 50,
}
SIMPLENET = {
    "model.name": "simplenet",
    "data.name": "synthetic",
    "data.options.shape": "1x28x28",
    "data.options.classes": 10,
    "data.options.samples": 1200,
    "data.options.test_samples": 250,
    "data.batch_size": 24,
    "train.steps": 50,
}
RESNET18 = {
    "model.name": "resnet18",
    "data.name": "synthetic",
    "data.options.shape": "3x32x32",
    "data.options.classes": 10,
    "data.options.samples": 480,
    "data.options.test_samples": 50,
    "data.batch_size": 24,
    "train.steps": 20,
}
MNIST = {**SIMPLENET, "data.name": "mnist", "data.batch_size": 128}
MNIST = {key: value for key, value in MNIST.items() if not key.startswith("data.options.")}

# Two epochs of 250 samples, which 3 ranks do not divide, in steps of 24, which they do: 11 steps each, the last short.
TWO_EPOCHS = {"data.options.samples": 250, "train.steps": None, "train.epochs": 2}
# Small buckets, equally large in PyTorch, so that the parameters are spread over several.
BUCKETS = {"strategy.bucket_cap_mb": 0.25}

SGD = {"optimizer.name": "sgd", "optimizer.lr": 0.05}
MOMENTUM = {**SGD, "optimizer.momentum": 0.9}
NESTEROV = {**MOMENTUM, "optimizer.nesterov": True, "optimizer.weight_decay": 1e-3}
ADAM = {"optimizer.name": "adam", "optimizer.lr": 1e-3}
ADAMW = {**ADAM, "optimizer.name": "adamw", "optimizer.weight_decay": 0.05}
COSINE = {"train.schedule": "cosine", "train.warmup": 10, "train.min_lr": 0.001}
STEP = {"train.schedule": "step", "train.step_epochs": 1, "train.step_factor": 0.5}
CLIP = {"train.clip_norm": 0.1}
BF16, FP16 = {"train.amp": "bf16"}, {"train.amp": "fp16"}
# A step of no length: what is compared after it are the initial weights.
INITIAL = {"optimizer.name": "sgd", "optimizer.lr": 0.0, "train.steps": 1}
# Each rank keeps its own running statistics, and an evaluation by all ranks has no counterpart on one.
OWN_BUFFERS = {"strategy.broadcast_buffers": False, "train.evaluate": False, "train.steps": 3}
FEW_STEPS = {"optimizer.lr": 0.01, "train.steps": 5}


# Many kernels of a GPU add in an order that varies, and ResNet-18 amplifies each rounding difference.
GPU = {"launch.device": "cuda", "comm.backend": "nccl", "comm.algorithm": "auto", "train.deterministic": True}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    ranks: int
    config: dict
    losses: float  # largest relative difference allowed of a loss
    tensors: float  # largest difference allowed of a parameter or buffer, relative to its tensor's largest value
    exact: bool  # where both sides have the same Torch: each step's loss and each tensor equal bit for bit


# A sum of two numbers does not depend on their order, one of three does.
def case(name, ranks, *parts, losses=1e-5, tensors=1e-5, bits=True):
    merged = {**COMMON, **(DDP if ranks > 1 else SINGLE)}
    for part in parts:
        merged.update(part)
    if ranks > 1:
        merged["launch.nproc"] = ranks
    config = {key: value for key, value in merged.items() if value is not None}
    # Three values have several sums: PyTorch's ranks add them up by the ring.
    same_order = ranks <= 2 or merged.get("comm.algorithm", "ring") == "ring"
    return Case(name, ranks, config, losses, tensors, exact=bits and same_order)


def gpu_case(name, ranks, *parts):
    return case(name, ranks, *parts, GPU, losses=1e-3, tensors=1e-2)


GROUPS = {
    "one_process": [
        case("linear-sgd", 1, LINEAR, SGD),
        case("simplenet-nesterov", 1, SIMPLENET, NESTEROV),
        case("simplenet-adam-epochs", 1, SIMPLENET, ADAM, TWO_EPOCHS),
        case("simplenet-adamw", 1, SIMPLENET, ADAMW),
        case("simplenet-step", 1, SIMPLENET, SGD, TWO_EPOCHS, STEP),
        case("simplenet-step-warmup", 1, SIMPLENET, SGD, TWO_EPOCHS, STEP, {"train.warmup": 5}, bits=False),
        case("simplenet-adamw-in-order", 1, SIMPLENET, ADAMW, {"data.shuffle": False}),
    ],
    "two_ranks": [
        case("linear-initial", 2, LINEAR, INITIAL),
        case("linear-sgd", 2, LINEAR, SGD),
        case("linear-momentum-per-rank", 2, LINEAR, MOMENTUM, {"data.batch_per": "rank", "data.batch_size": 16}),
        case("linear-adam", 2, LINEAR, ADAM),
        case("linear-adamw", 2, LINEAR, ADAMW),
        case("simplenet-initial", 2, SIMPLENET, INITIAL),
        case("simplenet-sgd", 2, SIMPLENET, SGD),
        case("simplenet-nesterov-buckets", 2, SIMPLENET, NESTEROV, BUCKETS),
        case("simplenet-scaled-tree", 2, SIMPLENET, SGD, {"optimizer.scale_lr": "world", "comm.algorithm": "tree"}),
        case("simplenet-adam", 2, SIMPLENET, ADAM),
        case("simplenet-adam-decay", 2, SIMPLENET, ADAM, {"optimizer.weight_decay": 0.01}),
        case("simplenet-adamw", 2, SIMPLENET, ADAMW),
        # PyTorch computes a cosine's rate from the last one, which may round otherwise.
        case("simplenet-cosine", 2, SIMPLENET, MOMENTUM, COSINE, bits=False),
        case("simplenet-clip", 2, SIMPLENET, SGD, CLIP),
        case("simplenet-bf16", 2, SIMPLENET, SGD, BF16),
        case("simplenet-fp16", 2, SIMPLENET, SGD, FP16),
        case("simplenet-fp16-adam-clip", 2, SIMPLENET, ADAM, FP16, CLIP),
    ],
    "three_ranks": [
        case("simplenet-initial", 3, SIMPLENET, INITIAL),
        case("linear-momentum", 3, LINEAR, MOMENTUM),
        case("simplenet-sgd-pad", 3, SIMPLENET, SGD, TWO_EPOCHS),
        case("simplenet-sgd-drop", 3, SIMPLENET, SGD, TWO_EPOCHS, {"data.last": "drop"}),
        case("simplenet-adam-buckets", 3, SIMPLENET, ADAM, BUCKETS),
        case("simplenet-adamw", 3, SIMPLENET, ADAMW),
        case("simplenet-nesterov", 3, SIMPLENET, NESTEROV),
        case("simplenet-nesterov-tree", 3, SIMPLENET, NESTEROV, {"comm.algorithm": "tree"}),
    ],
    "mnist": [case("simplenet-adam", 2, MNIST, ADAM)],
    "resnet18": [
        case("sgd", 1, RESNET18, MOMENTUM, FEW_STEPS, losses=1e-3, tensors=1e-3),
        case("initial", 2, RESNET18, INITIAL, losses=1e-3),
        case("sgd", 2, RESNET18, MOMENTUM, {"optimizer.lr": 0.01, "train.steps": 12}, losses=1e-3, tensors=1e-3),
        case("own-buffers", 2, RESNET18, MOMENTUM, OWN_BUFFERS, losses=1e-3, tensors=1e-3),
        case("sgd", 3, RESNET18, MOMENTUM, FEW_STEPS, losses=1e-3, tensors=1e-3),
    ],
    "gpu": [
        gpu_case("linear-sgd", 1, LINEAR, SGD),
        gpu_case("simplenet-adam", 1, SIMPLENET, ADAM),
        gpu_case("resnet18-momentum", 1, RESNET18, MOMENTUM, FEW_STEPS),
        gpu_case("linear-sgd", 2, LINEAR, SGD),
        gpu_case("simplenet-adam", 2, SIMPLENET, ADAM),
        gpu_case("simplenet-buckets", 2, SIMPLENET, NESTEROV, BUCKETS),
        gpu_case("resnet18-momentum", 2, RESNET18, MOMENTUM, FEW_STEPS),
    ],
}
