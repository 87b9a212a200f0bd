"""A small training with PyTorch's DistributedDataParallel, which knows nothing of ddprun but ddprun.log. Variables: NAP,
seconds of sleep before each forward; STEPS; PIDS, a folder for the ids of its ranks; ERROR, the text of an exception."""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
if "PIDS" in os.environ:
    pathlib.Path(os.environ["PIDS"], str(os.getpid())).touch()
if "ERROR" in os.environ:
    raise ValueError(os.environ["ERROR"])
try:
    from ddprun.recording import log
except ImportError:
    sys.exit("the recording is not there")
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(os.environ.get("STEPS", 12))):
    time.sleep(float(os.environ.get("NAP", 0)))
    loss = nn.functional.cross_entropy(model(torch.randn(16, 64)), torch.randint(10, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log(loss=loss)
    if step == 5:  # an evaluation belongs to no step
        model.eval()
        with torch.no_grad():
            model(torch.randn(16, 64))
        time.sleep(1)
        model.train()
dist.destroy_process_group()
