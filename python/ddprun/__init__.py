"""ddprun's communication plugins as backends of torch.distributed.

    torch.distributed.init_process_group("ddprun_shm")     # instead of "gloo"

`import torch` imports this package by itself, if its folder is in PYTHONPATH. docs/pytorch.md describes the backends
and their options.
"""
import warnings

# Torch must be there before .c10d: it may load that module itself, by its entry point.
import torch  # noqa: F401

from .recording import log

try:
    from .c10d import register
    from .library import backends, version
except ImportError as error:  # Torch imports this package, and must work without it
    warnings.warn(f"{error}; torch.distributed has no ddprun backends", stacklevel=2)
else:
    register()
    __version__ = version()

__all__ = ["backends", "log", "register", "version"]
