"""A collective that has been started, as torch.distributed's Work."""
import contextlib
import ctypes
import functools
import itertools
import threading

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work as _Work

from . import library

# How long a wait stays in the library before Python looks for signals, such as Ctrl-C.
SLICE_MS = 100

_ids = itertools.count(1)
_awaited = {}  # by the id that the library passes back: the works that have a Future


def error_of(failure):
    """The exception of torch.distributed for a failure of the library."""
    lost = failure.status in (library.TIMEOUT, library.PEER_LOST)
    return (dist.DistNetworkError if lost else dist.DistBackendError)(str(failure))


_known = threading.local()


def _keep_thread_state():
    """Python makes a thread state for each call of a thread of C, which takes 20 us. An Ensure without a Release keeps
    the first one, as long as the thread lives."""
    if not hasattr(_known, "kept"):
        _known.kept = ctypes.pythonapi.PyGILState_Ensure()


def named(method):
    """A wrong argument is an error that names the backend and the rank."""
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
    """An event of PyTorch's profiler, if it runs, for what this thread does. Not until the collective has ended: an event
    that is open when the profiler stops, or that another thread ends at that time, ends the process by a signal. With
    Gloo's backend this can happen."""
    return torch.autograd.profiler.record_function(name) if torch.autograd._profiler_enabled() else contextlib.nullcontext()


@library.Done
def _on_end(number):
    _keep_thread_state()
    work = _awaited.pop(number, None)
    if work is not None:
        work._complete_future()


def seconds_of(timeout):
    """None: no limit."""
    return timeout.total_seconds() if timeout is not None and timeout.total_seconds() > 0 else None


class StartedWork(_Work):
    """What the works of this package have in common. `tensors` are its results, and what it needs in memory."""

    def __init__(self, tensors):
        super().__init__()
        self._tensors = tensors
        self._error = None
        self._begun = self._future = None

    def _make_future(self):
        """It ends when self._begun does."""
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
    """Collectives. `finish` moves the results to where the caller wants them, once the collective has ended well."""

    def __init__(self, handle, tensors, finish=None, on_end=None):
        super().__init__(tensors)
        self._handle = handle
        self._finish = finish
        self._on_end = on_end
        self._lock = threading.Lock()
        self._ended = False

    def _end(self):
        """The work has ended: finish it, once, in whatever thread comes first."""
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
        # Nothing of the library uses it any more: the group keeps a work until it has ended.
        if library is not None and self._handle is not None:
            library.release(self._handle)
