"""Images per second of PyTorch eager on one GPU, as its tutorials write it: ResNet-18, 3 x 224 x 224, bf16 autocast,
channels_last, SGD with momentum. A page-locked batch is copied to the GPU for each step. Prints a line of JSON.

Usage: pytorch_speed.py BATCH WARM STEPS
"""

import json
import sys
import time

import torch
import torchvision


def main(batch, warm, steps):
    device = torch.device("cuda:0")
    model = torchvision.models.resnet18(num_classes=10).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    inputs = torch.randn(batch, 3, 224, 224).pin_memory()
    targets = torch.randint(10, (batch,)).pin_memory()
    for step in range(warm + steps):
        if step == warm:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        x = inputs.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        y = targets.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(json.dumps({"images_per_second": batch * steps / seconds, "loss": loss.item()}))


main(*map(int, sys.argv[1:]))
