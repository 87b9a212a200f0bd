"""Records the training steps of an unchanged PyTorch program, and selects its backend.

`ddprun compare` loads this module into the processes of a program (inject/sitecustomize.py). DDPRUN_RECORD is the run
folder. DDPRUN_TORCH_BACKEND is the backend that torch.distributed.init_process_group gets."""
import functools
import os
import sys
import traceback

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .record_files import write_cause
from .recorded_steps import Recording

recording = None  # of this process; None: it is not recorded


def log(*, loss=None, samples=None):
    """Records the loss of this rank in the current step (a number, or a tensor with one element), and the number of
    samples of this rank. Call it after forward, before the next step's forward. Does nothing if the program is not
    recorded."""
    if recording is None:
        return
    if loss is not None:
        recording.loss = float(loss.detach() if isinstance(loss, torch.Tensor) else loss)
    if samples is not None:
        recording.samples = int(samples)


def chosen_backend(name, asked):
    """The argument of init_process_group instead of `asked`, so that the program's device uses the backend `name`.
    Raises RuntimeError if it cannot."""
    place = f"ddprun: DDPRUN_TORCH_BACKEND={name}: "
    if name.startswith("ddprun_"):
        try:
            import ddprun
        except ImportError as error:
            raise RuntimeError(f"{place}the Python package ddprun cannot be imported: {error}") from None
    dist, has_gpu = torch.distributed, torch.cuda.is_available()
    if not dist.is_backend_available(name):
        known = ", ".join(filter(dist.is_backend_available, dist.Backend.backend_list))
        raise RuntimeError(f"{place}Torch has no such backend in this process; it has {known}")
    devices = dist.Backend.backend_capability.get(name, ["cpu"])
    pairs = dict(one.split(":", 1) for one in asked.lower().split(",")) if asked and ":" in asked else {}
    wants_gpu = has_gpu if asked is None else asked.lower() == "nccl" or (has_gpu and "cuda" in pairs)
    device = "cuda" if wants_gpu or "cpu" not in devices else "cpu"
    if device not in devices or (device == "cuda" and not has_gpu):
        raise RuntimeError(f"{place}it is for {', '.join(devices)}, and the program communicates on {device}"
                           + ("; this process has no GPU" if device == "cuda" and not has_gpu else ""))
    if asked is None and device == "cuda" and "cpu" not in devices:
        pairs = {"cpu": "gloo"}
    return ",".join(f"{key}:{value}" for key, value in {**pairs, device: name}.items()) if pairs else name


def wrap(owner, name, make):
    """Replaces the function owner.name by make(owner.name)."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


def wrap_everywhere(name, make):
    """The same for a function of torch.distributed, in all modules of PyTorch that have imported it."""
    original = getattr(torch.distributed, name)
    made = functools.wraps(original)(make(original))
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch.") and vars(module).get(name) is original:
            setattr(module, name, made)


def wrap_process_group():
    name = os.environ.get("DDPRUN_TORCH_BACKEND")

    def init(original):
        def init_process_group(backend=None, *args, **kwargs):
            original(chosen_backend(name, backend) if name else backend, *args, **kwargs)
            if recording:
                recording.joined()
        return init_process_group

    def destroy(original):
        def destroy_process_group(group=None):
            if recording and (group is None or group is torch.distributed.group.WORLD):
                recording.close()
            original(group)
        return destroy_process_group

    wrap_everywhere("init_process_group", init)
    wrap_everywhere("destroy_process_group", destroy)


def wrap_training():
    def forward(original):
        def ddp_forward(self, *inputs, **kwargs):
            if not (torch.is_grad_enabled() and self.training):
                result = original(self, *inputs, **kwargs)
                recording.evaluated()
                return result
            recording.forward_begins(self, inputs, kwargs)
            result = original(self, *inputs, **kwargs)
            recording.mark("forward")
            return result
        return ddp_forward

    def train(original):
        def ddp_train(self, mode=True):
            recording.trains(mode)
            return original(self, mode)
        return ddp_train

    def backward(original):
        def timed_backward(tensors, *args, **kwargs):
            if recording.depth > 0:  # activation checkpointing runs backward within backward
                return original(tensors, *args, **kwargs)
            recording.depth += 1
            handle = recording.backward_begins(tensors)
            try:
                return original(tensors, *args, **kwargs)
            finally:
                recording.depth -= 1
                if handle is not None:
                    handle.remove()
                recording.backward_ends()
        return timed_backward

    wrap(torch.nn.parallel.DistributedDataParallel, "forward", forward)
    wrap(torch.nn.parallel.DistributedDataParallel, "train", train)
    wrap(torch.autograd, "backward", backward)
    register_optimizer_step_pre_hook(lambda one, *_: recording.optimizer_begins(one))
    register_optimizer_step_post_hook(lambda one, *_: recording.optimizer_ends(one))


def note_failures(folder):
    def hook(original):
        def excepthook(kind, error, trace):
            write_cause(folder, "".join(traceback.format_exception_only(kind, error)))
            original(kind, error, trace)
        return excepthook
    wrap(sys, "excepthook", hook)


def install():
    """Call it once in a process, after `import torch`."""
    folder = os.environ.get("DDPRUN_RECORD")
    wrap_process_group()
    if not folder:
        return

    def start():
        global recording
        recording = Recording(folder, int(os.environ.get("DDPRUN_RECORD_PARITY", 0)))
    start()
    os.register_at_fork(after_in_child=start)
    wrap_training()
    note_failures(folder)
