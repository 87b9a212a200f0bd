"""The initial weights of our models against the same modules in PyTorch, bit for bit. argv: the model_weights program."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing}; set DDPRUN_PYTHON to a Python with torch and safetensors")
    sys.exit(77)
try:
    from torchvision.models import resnet18
except ImportError as missing:
    print(f"resnet18 skipped: {missing}; set DDPRUN_PYTHON to a Python with torchvision")
    resnet18 = None


class SimpleNet(torch.nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.fc1 = torch.nn.Linear(inputs, hidden)
        self.fc2 = torch.nn.Linear(hidden, classes)


# name, seed, classes, shape and options of ours, and the module in Python
CASES = [
    ("linear", 42, 0, ["1"], lambda: torch.nn.Linear(1, 1)),
    ("linear", 7, 0, ["2", "3"], lambda: torch.nn.Linear(6, 1)),
    ("simplenet", 42, 10, ["1", "28", "28"], lambda: SimpleNet(784, 256, 10)),
    ("simplenet", 43, 10, ["1", "28", "28"], lambda: SimpleNet(784, 256, 10)),
    ("simplenet", 42, 100, ["3", "32", "32", "hidden=64"], lambda: SimpleNet(3072, 64, 100)),
]
if resnet18 is not None:
    CASES += [
        ("resnet18", seed, classes, ["3", "224", "224"], lambda classes=classes: resnet18(num_classes=classes))
        for seed in (0, 42)
        for classes in (10, 1000)
    ]

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "weights.safetensors"
    for name, seed, classes, words, make in CASES:
        result = subprocess.run([sys.argv[1], name, str(seed), str(classes), str(path), *words],
                                check=True, capture_output=True, text=True)
        order = result.stdout.split()
        ours = load_file(path)
        torch.manual_seed(seed)
        module = make()
        what = f"{name} {words} seed {seed}"
        # DDP and the optimizers go by this order.
        if order != [key for key, _ in module.named_parameters()]:
            sys.exit(f"failed: {what}: parameters in the order {order}")
        pythons = module.state_dict()
        if set(ours) != set(pythons):
            sys.exit(f"failed: {what}: names {sorted(ours)}, PyTorch has {sorted(pythons)}")
        for key, tensor in pythons.items():
            mine = ours[key]
            if (mine.dtype, mine.shape) != (tensor.dtype, tensor.shape) or not torch.equal(mine, tensor):
                sys.exit(f"failed: {what}: {key} differs from PyTorch's")
print(f"{len(CASES)} models bit-equal to PyTorch {torch.__version__}")
