"""ddprun's communication plugins as backends of torch.distributed.

    import ddprun                                  # not needed where the package is installed
    torch.distributed.init_process_group("ddprun_shm")

docs/pytorch.md says what the backends can do, and how they are set.
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
