"""send and recv: for each direction and tag, a communicator of two ranks and its thread.

The communicator of the whole group runs one collective after the other, and all ranks take part in each. But two ranks
may send to each other at the same time, while a third rank computes. So they need communicators of their own, as in
PyTorch's NCCL backend. The first send and recv between the two ranks create them.
"""
import queue
import threading

import torch.distributed as dist

from . import callbacks, library
from .meeting import Meeting
from .work import SLICE_MS, StartedWork, error_of, seconds_of


class PeerWork(StartedWork):
    """A send or a recv that has been started."""

    def __init__(self, tensors, peer):
        super().__init__(tensors)
        self._peer = peer
        self._ended = threading.Event()
        self._make_future()

    def end(self, error=None):
        self._error = error
        self._ended.set()
        callbacks.run(self._begun.set_result, None)

    def wait(self, timeout=None):
        seconds = seconds_of(timeout)
        if not self._ended.wait(seconds):
            raise dist.DistNetworkError(f"ddprun: wait() of a send or recv with rank {self._peer}: timeout: it has not "
                                        f"ended within {seconds:g} s")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self):
        return self._ended.is_set()

    def get_future(self):
        return self._future

    def source_rank(self):
        return self._peer

    _source_rank = source_rank


class Channel:
    """Sends from one rank to another, with one tag, in order."""

    def __init__(self, plugin, options, store, who, timeout, is_sender, peer):
        self._plugin, self._options, self._peer = plugin, options, peer
        self._meeting = Meeting(store, 0 if is_sender else 1, 2, who, timeout)
        self._jobs = queue.SimpleQueue()
        self._group = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"ddprun: {who}", daemon=True)
        self._thread.start()

    def submit(self, start, tensors):
        """`start(group)` starts and returns a work of the library, which uses `tensors`."""
        work = PeerWork(tensors, self._peer)
        self._jobs.put((work, start))
        return work

    def close(self):
        self._closed = True
        self._meeting.stop()
        if self._group is not None:
            library.abort(self._group)
        self._jobs.put(None)
        self._thread.join()

    def _run(self):
        while (job := self._jobs.get()) is not None:
            work, start = job
            try:
                self._carry_out(start)
                work.end()
            except library.Failure as failure:
                work.end(error_of(failure))
            except Exception as error:  # noqa: BLE001: it belongs to the caller of wait()
                work.end(error)
        if self._group is not None:
            library.destroy(self._group)

    def _carry_out(self, start):
        if self._group is None:
            self._group = self._meeting.join(self._plugin, self._options, -1)
        if self._closed:
            raise dist.DistBackendError("ddprun: aborted: the process group was destroyed")
        handle = start(self._group)
        try:
            while not library.wait(handle, SLICE_MS):
                pass
            library.check_result(handle)
        finally:
            library.release(handle)
