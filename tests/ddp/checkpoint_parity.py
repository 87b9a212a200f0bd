"""Python loads a checkpoint of a C++ program, and the program loads Python's. argv: checkpoint_program."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}; set DDPRUN_PYTHON to a Python with torch and safetensors")
    sys.exit(77)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.second = torch.nn.Linear(8, 3)
        self.register_buffer("mask", torch.tensor([0.0, -torch.inf]))


def run(act, path):
    result = subprocess.run([sys.argv[1], act, str(path)], check=True, capture_output=True, text=True, timeout=60)
    return result.stdout


def values_of(line):
    """The values of each tensor in a line "rank 0: NAME VALUE ... NAME VALUE ..."."""
    tensors = {}
    for word in line.split()[2:]:
        if word[0] in "-0123456789" or word == "inf" or word == "-inf":
            tensors[name].append(float.fromhex(word))
        else:
            name = word
            tensors[name] = []
    return tensors


def check_same(line, state):
    tensors = values_of(line)
    assert set(tensors) == set(state), f"{sorted(tensors)} and {sorted(state)}"
    for name, values in tensors.items():
        assert values == state[name].double().reshape(-1).tolist(), name


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "cpp.safetensors"
    line = run("save_weights", path)
    net = Net()
    net.load_state_dict(load_file(path))
    check_same(line, net.state_dict())
    with safe_open(path, framework="pt") as file:
        assert file.metadata()["step"] == "12" and file.metadata()["format"] == "pt", file.metadata()

    path = pathlib.Path(folder) / "python.safetensors"
    net = Net()
    net.norm(torch.randn(5, 8))  # moves the statistics
    save_file(net.state_dict(), path, metadata={"epoch": "3", "format": "pt", "who": "python"})
    number, line = run("load_weights", path).splitlines()
    assert number == "epoch = 3", number
    check_same(line, net.state_dict())
print("ok")
