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

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "weights.safetensors"
    for name, seed, classes, words, make in CASES:
        subprocess.run([sys.argv[1], name, str(seed), str(classes), str(path), *words], check=True)
        ours = load_file(path)
        torch.manual_seed(seed)
        pythons = make().state_dict()
        what = f"{name} {words} seed {seed}"
        if set(ours) != set(pythons):
            sys.exit(f"failed: {what}: names {sorted(ours)}, PyTorch has {sorted(pythons)}")
        for key, tensor in pythons.items():
            if ours[key].shape != tensor.shape or not torch.equal(ours[key], tensor):
                sys.exit(f"failed: {what}: {key} differs from PyTorch's")
print(f"{len(CASES)} models bit-equal to PyTorch {torch.__version__}")
