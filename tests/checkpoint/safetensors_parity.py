"""Python's safetensors reads ddprun's checkpoints, and ddprun reads its files. argv: the checkpoint_tool program."""

import json
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

DTYPES = {
    "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64,
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
}


def bytes_of(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist()


def check(true, what):
    if not true:
        sys.exit(f"failed: {what}")


def python_reads_ddprun(tool, folder):
    path = folder / "ddprun.safetensors"
    subprocess.run([tool, "write", str(path)], check=True)
    tensors = load_file(path)
    check(set(tensors) == {f"tensor.{name}" for name in DTYPES} | {"scalar", "empty"}, f"names: {sorted(tensors)}")
    for name, dtype in DTYPES.items():
        tensor = tensors[f"tensor.{name}"]
        check(tensor.dtype == dtype and tensor.shape == (2, 3), f"{name}: {tensor.dtype} {tuple(tensor.shape)}")
        check(bytes_of(tensor) == list(range(6 * tensor.element_size())), f"{name}: bytes {bytes_of(tensor)}")
    check(tensors["scalar"].shape == () and tensors["empty"].shape == (0, 4), "scalar or empty: shape")
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    check(metadata["step"] == "469" and metadata["epoch"] == "1", f"metadata: {metadata}")


def ddprun_reads_python(tool, folder):
    path = folder / "python.safetensors"
    torch.manual_seed(0)
    tensors = {name: (torch.randn(3, 5) * 100).to(dtype) for name, dtype in DTYPES.items()}
    tensors["fc1.weight"] = torch.nn.Linear(4, 2).weight.detach()
    tensors["scalar"] = torch.tensor(1.5)
    tensors["flag"] = torch.tensor([True, False, True])
    save_file(tensors, path, metadata={"who": "python"})
    shown = json.loads(subprocess.run([tool, "show", str(path)], check=True, capture_output=True, text=True).stdout)
    check(shown["metadata"] == {"who": "python"}, f"metadata: {shown['metadata']}")
    check(set(shown["tensors"]) == set(tensors), f"names: {sorted(shown['tensors'])}")
    for name, tensor in tensors.items():
        got = shown["tensors"][name]
        check(got["shape"] == list(tensor.shape) and got["bytes"] == bytes_of(tensor), f"{name}: {got}")


with tempfile.TemporaryDirectory() as folder:
    python_reads_ddprun(sys.argv[1], pathlib.Path(folder))
    ddprun_reads_python(sys.argv[1], pathlib.Path(folder))
print(f"{len(DTYPES)} dtypes both ways")
