"""Autocast and GradScaler of a C++ program give the numbers of Python's, bit for bit. argv: amp_program."""

import subprocess
import sys

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)

torch.set_num_threads(1)


def words(*tensors):
    return [value for tensor in tensors for value in tensor.detach().double().reshape(-1).tolist()]


def lines_of(act):
    result = subprocess.run([sys.argv[1], act], check=True, capture_output=True, text=True, timeout=60)
    return [line.split() for line in result.stdout.splitlines()]


def check(got, expected, what):
    if got != expected:
        sys.exit(f"{what}: got {got}, and PyTorch has {expected}")


def scaler():
    lines = lines_of("scaler")
    w = torch.arange(1.0, 5.0, requires_grad=True)
    sgd = torch.optim.SGD([w], 0.1, momentum=0.9)
    grad_scaler = torch.amp.GradScaler("cpu", init_scale=8, growth_interval=3)
    scales = set()
    for step in range(12):
        x = torch.arange(4.0) * 0.25 + step
        if step in (3, 7, 8):
            x[1] = torch.inf
        sgd.zero_grad()
        grad_scaler.scale((w * x).sum()).backward()
        if step % 2 == 1:
            grad_scaler.unscale_(sgd)
            w.grad.clamp_(-5, 5)
        grad_scaler.step(sgd)
        grad_scaler.update()
        scales.add(grad_scaler.get_scale())
        line = lines.pop(0)
        check(float(line[1]), grad_scaler.get_scale(), f"scale after step {step}")
        check([float.fromhex(word) for word in line[2:]], words(w), f"weights after step {step}")
    assert len(scales) > 2, scales
    check({name: float(value) for name, value in lines}, grad_scaler.state_dict(), "state_dict")


def autocast():
    for dtype, line in zip((torch.bfloat16, torch.float16), lines_of("autocast"), strict=True):
        weight = (torch.arange(12.0).reshape(3, 4) / 7).requires_grad_()
        value = torch.arange(8.0).reshape(2, 4) / 3
        with torch.autocast("cpu", dtype):
            loss = torch.nn.functional.mse_loss(torch.nn.functional.linear(value, weight), torch.ones(2, 3))
        loss.backward()
        check([float.fromhex(word) for word in line[1:]], words(loss, weight.grad), f"autocast to {dtype}")


scaler()
autocast()
print("ok")
