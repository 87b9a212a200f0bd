"""Collectives that have been started, as Work objects of torch.distributed."""
import contextlib
import ctypes
import functools
import itertools
import threading

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work as _Work

from . import callbacks, library

# How long a wait stays in the library before Python looks for signals, such as Ctrl-C.
SLICE_MS = 100

_ids = itertools.count(1)
_awaited = {}  # by the id that the library passes back: the works that have a Future


def error_of(failure):
    """The exception of torch.distributed for a library.Failure."""
    lost = failure.status in (library.TIMEOUT, library.PEER_LOST)
    return (dist.DistNetworkError if lost else dist.DistBackendError)(str(failure))


_known = threading.local()


def _keep_thread_state():
    """When a thread of C calls Python, Python creates a thread state, which takes 20 us. An Ensure without a Release
    keeps this state until the thread ends."""
    if not hasattr(_known, "kept"):
        _known.kept = ctypes.pythonapi.PyGILState_Ensure()


def named(method):
    """Adds the backend and the rank to the message of a TypeError or ValueError."""
    @functools.wraps(method)
    def checked(self, *arguments, **options):
        try:
            return method(self, *arguments, **options)
        except (TypeError, ValueError) as error:
            start = f"{self._torch_name}: rank {self._rank}: "
            if str(error).startswith(start):
                raise
            raise type(error)(start + str(error)) from None

    return checked


def profiled(name):
    """If PyTorch's profiler runs, an event for the start of a collective in this thread. It does not last until the
    collective ends: the process may abort if the event is open when the profiler stops, or if another thread ends it at
    that time. This can happen with PyTorch's Gloo."""
    return torch.autograd.profiler.record_function(name) if torch.autograd._profiler_enabled() else contextlib.nullcontext()


@library.Done
def _on_end(number):
    _keep_thread_state()
    work = _awaited.pop(number, None)
    if work is not None:
        callbacks.run(work._complete_future)


def seconds_of(timeout):
    """The seconds of a timedelta; None: no limit."""
    return timeout.total_seconds() if timeout is not None and timeout.total_seconds() > 0 else None


class StartedWork(_Work):
    """The base class of the works of this package. `tensors`: the results, which it keeps alive."""

    def __init__(self, tensors):
        super().__init__()
        self._tensors = tensors
        self._error = None
        self._begun = self._future = None

    def _make_future(self):
        """Creates the Future, which completes when self._begun does."""
        self._begun = torch.futures.Future()
        # A Future of Python holds an exception as a value; only one that a callback raises is an error in C++.
        self._future = self._begun.then(self._value)

    def _value(self, _):
        if self._error is not None:
            raise self._error
        return self._tensors

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error if self.is_completed() else None

    def synchronize(self):
        self.wait()

    def result(self):
        self.wait()
        return self._tensors


class Work(StartedWork):
    """Collectives. `finish` copies the results to the output tensors after the collective has succeeded."""

    def __init__(self, handle, tensors, finish=None, on_end=None):
        super().__init__(tensors)
        self._handle = handle
        self._finish = finish
        self._on_end = on_end
        self._lock = threading.Lock()
        self._ended = False

    def _end(self):
        """Called when the work has ended, by any thread. The first call finishes it."""
        with self._lock:
            if self._ended:
                return
            try:
                library.check_result(self._handle)
                if self._finish is not None:
                    self._finish()
            except library.Failure as failure:
                self._error = error_of(failure)
            self._ended = True
            self._finish = None
            if self._on_end is not None:
                self._on_end(self)

    def wait(self, timeout=None):
        seconds = seconds_of(timeout)
        left = None if seconds is None else int(seconds * 1000)
        while not self._ended and not library.wait(self._handle, SLICE_MS if left is None else min(left, SLICE_MS)):
            if left is None:
                continue
            left -= SLICE_MS
            if left <= 0:
                raise dist.DistNetworkError(f"ddprun: wait() of a collective: timeout: it has not ended within "
                                            f"{seconds:g} s")
        self._end()
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self):
        if not self._ended and library.wait(self._handle, 0):
            self._end()
        return self._ended

    def get_future(self):
        with self._lock:
            if self._future is not None:
                return self._future
            self._make_future()
        number = next(_ids)
        _awaited[number] = self
        library.then(self._handle, _on_end, number)
        return self._future

    def _complete_future(self):
        self._end()
        self._begun.set_result(None)

    def __del__(self):
        # The library no longer uses it: the group keeps a reference to this object until the work has ended.
        if library is not None and self._handle is not None:
            library.release(self._handle)
