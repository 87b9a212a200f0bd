"""Divides the time of a process into training steps and their parts. docs/comparing.md defines the parts."""
import atexit
import multiprocessing.util
import os
import sys
import threading
import time

import torch

from .record_files import RunFiles, digest_of
from .traced_buckets import STEPS, BucketTrace

now = time.perf_counter
WATCH = 0.5  # seconds between two checks of the parent process


class Recording:
    """The steps of one process. A step lasts from the end of one optimizer.step() to the end of the next. Each event
    ends a part of the step, so the parts and the rest add up to the step. A step is written when the next one begins,
    because it may have several optimizers. Times are in seconds."""

    def __init__(self, folder, parity_steps):
        self.folder, self.parity_steps = folder, parity_steps
        self.files = None
        self.broken = False     # an error was reported, and nothing more is recorded
        self.number = 1
        self.ended = False      # an optimizer's step has ended, and nothing of the next step has begun
        self.begin = self.last = None
        self.evaluating = False
        self.optimizer = None   # whose step is running
        self.depth = 0          # of backward calls
        self.modules = {}       # DDP modules, and the bytes of their gradients
        self.half = False
        self.on_host = True
        self.place = (int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)), "")
        self.gradients = {}
        self.trace = None       # of this step's buckets; only rank 0 has it
        self.clear()

    def clear(self):
        self.parts = dict.fromkeys(("data", "forward", "backward", "comm", "optimizer"), 0.0)
        self.samples, self.loss, self.after, self.module = 0, None, None, None
        self.stepped = set()    # the optimizers that have made their step

    def joined(self):
        dist = torch.distributed
        self.place = (dist.get_rank(), dist.get_world_size(), dist.get_backend())
        watch_parent()

    # --- the clock

    def mark(self, part):
        """Adds the time since the last event to this part of the step; None: to the rest of the step."""
        time_now = now()
        if part is not None and self.last is not None:
            self.parts[part] += time_now - self.last
        self.last = time_now
        if self.begin is None:
            self.begin = time_now

    def leave_out(self):
        """Excludes the time since the last event from all steps."""
        time_now = now()
        self.begin += time_now - self.last
        self.last = time_now

    def begin_next(self):
        """The next step begins: writes the step that has ended."""
        if not self.ended:
            return
        self.ended = False
        self.write()
        self.begin = self.last
        self.number += 1
        self.clear()

    # --- events

    def evaluated(self):
        if self.ended:
            self.begin_next()
        if self.begin is not None and not self.after:
            self.leave_out()

    def trains(self, mode):
        if not mode and (self.ended or not self.after):
            self.evaluating = True
        elif mode and self.evaluating:
            self.evaluating = False
            self.evaluated()

    def forward_begins(self, module, inputs, kwargs):
        self.begin_next()
        self.mark({None: "data", "backward": "data", "forward": "forward"}.get(self.after))
        self.after, self.module = "forward", self.module or module
        if module not in self.modules:
            self.add_module(module)
        if self.number in STEPS and self.trace is None and self.place[0] == 0 and self.on_host:
            self.trace = BucketTrace(module)
        self.samples += next((one.shape[0] for one in tensors_in([inputs, kwargs]) if one.dim()), 0)

    def add_module(self, module):
        trained = [one for one in module.parameters() if one.requires_grad]
        self.modules[module] = sum(one.numel() * one.element_size() for one in trained)
        device = trained[0].device.type if trained else "cpu"
        self.on_host = self.on_host and device == "cpu"
        self.half = self.half or torch.is_autocast_enabled(device) or any(one.element_size() < 4 for one in trained)

    def backward_begins(self, roots):
        self.begin_next()
        self.mark("forward" if self.after == "forward" else None)
        self.after = "backward"
        if self.trace is not None:
            self.trace.backward_begins()
        root = roots if isinstance(roots, torch.Tensor) else next(iter(roots), None)
        if self.module is None or not isinstance(root, torch.Tensor) or not root.requires_grad:
            return None
        # Autograd runs such callbacks in their order, after the last gradient. This hook is called first of all: so its
        # callback runs before that of DDP, which waits for the allreduces.
        engine = torch.autograd.Variable._execution_engine
        return root.register_hook(lambda _: engine.queue_callback(self.gradients_done))

    def gradients_done(self):
        self.mark("backward")
        self.after = "gradients"
        if self.trace is not None:
            self.trace.gradients_done()

    def backward_ends(self):
        self.mark("comm" if self.after == "gradients" else "backward")
        self.after = "backward"

    def optimizer_begins(self, optimizer):
        if optimizer in self.stepped:
            self.begin_next()
        if self.optimizer is None or self.ended or self.after != "optimizer":
            self.optimizer = optimizer  # not one that another optimizer's step calls
        self.mark(None)
        self.ended = False
        if self.is_compared():
            self.gradients = {name: digest_of(torch.zeros_like(one) if one.grad is None else one.grad)
                              for name, one in self.parameters()}
            self.leave_out()
        self.after = "optimizer"

    def optimizer_ends(self, optimizer):
        if optimizer is not self.optimizer:
            return
        self.mark("optimizer")
        self.optimizer, self.ended = None, True
        self.stepped.add(optimizer)
        if self.is_compared() and self.gradients and self.open():
            self.files.parity({"step": self.number, "parameter": name, "elements": one.numel(),
                               "gradient": self.gradients[name], "value": digest_of(one)}
                              for name, one in self.parameters())
            self.gradients = {}
            self.leave_out()

    def is_compared(self):
        return self.module is not None and self.number <= self.parity_steps

    def parameters(self):
        return [(name, one) for name, one in self.module.module.named_parameters() if one.requires_grad]

    # --- records

    def open(self):
        if self.files is None and not self.broken:
            rank, world, backend = self.place
            about = {"world": world, "backend": backend, "half": self.half, "threads": torch.get_num_threads(),
                     "model": type(self.module.module).__name__ if self.module else "unknown",
                     "bytes": sum(self.modules.values())}
            try:
                self.files = RunFiles(self.folder, rank, about)
            except OSError as error:
                self.broken = True
                sys.stderr.write(f"ddprun: nothing of this process is recorded: {error}; two processes with one rank "
                                 "cannot record into one folder\n")
                return False
            atexit.register(self.close)
            multiprocessing.util.Finalize(None, self.close, exitpriority=0)  # a forked child calls no atexit
        return not self.broken

    def write(self):
        if not self.open():
            return
        total = self.last - self.begin
        record = {"epoch": 1, "step": self.number, "samples": self.samples, "total": total}
        # The host only queues the work of a GPU: its clock says nothing about the parts.
        if self.module is not None and self.on_host:
            record.update(self.parts)
        if self.loss is not None:
            record["loss"] = self.loss
        if self.samples and total > 0:
            record["throughput"] = self.samples / total
        self.files.step(record)
        if self.trace is not None:
            self.files.trace += self.trace.end(self.number)
            self.trace = None

    def close(self):
        """Called when the program ends or destroys its process group."""
        if self.ended:
            self.begin_next()
        if self.files is not None:
            self.files.end()


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(one)


def watch_parent():
    """Ends this process when its parent ends. If torchrun is killed, its ranks would continue, and `ddprun compare`
    cannot end them, because they are not its children."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="ddprun-watch").start()
