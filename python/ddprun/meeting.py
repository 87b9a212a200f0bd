"""The rendezvous of the ranks of a group, over the Store of torch.distributed."""
import ctypes
import itertools
import os
import socket
import time

import torch.distributed as dist

from . import library
from .work import error_of


def own_address():
    """The IP address by which the ranks on other hosts reach this host: DDPRUN_ADDRESS, or that of the interface that
    leads to MASTER_ADDR. "" if neither is known."""
    given, master = os.environ.get("DDPRUN_ADDRESS", ""), os.environ.get("MASTER_ADDR", "")
    if given or not master:
        return given
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as end:
            end.connect(place)  # sends nothing
            return end.getsockname()[0]
    except OSError:
        return ""


class Meeting:
    """`who` names the group in messages. `timeout`, a timedelta, is for joining, and for each collective."""

    def __init__(self, store, rank, size, who, timeout):
        self._store, self._rank, self._size, self._who, self._timeout = store, rank, size, who, timeout
        self._numbers, self._barriers = itertools.count(1), itertools.count(1)
        self._error = None
        self._stopped = False

    def stop(self):
        """Ends a join() that runs in another thread."""
        self._stopped = True

    def join(self, plugin, options, device):
        """Joins the ranks and returns the library's group. All ranks call it. `device`: a CUDA ordinal, or -1 for host
        memory. Raises DistError."""
        entries = (library.Option * len(options.plugin))(
            *((name.encode(), value.encode()) for name, value in options.plugin))
        allgather = library.Allgather(self._allgather)  # lives as long as the call
        asked = library.GroupOptions(
            struct_size=ctypes.sizeof(library.GroupOptions), rank=self._rank, size=self._size, device=device,
            timeout_ms=min(int(self._timeout.total_seconds() * 1000), 2**32 - 1),
            deterministic=options.deterministic, check=options.check, option_count=len(entries), options=entries,
            backend=plugin.encode(), algorithm=options.algorithm.encode(),
            address=own_address().encode(), name=None, context=None, allgather=allgather)
        try:
            return library.create(asked)
        except library.Failure as failure:
            error, self._error = self._error, None
            raise error or error_of(failure) from None

    def _allgather(self, _, send, count, recv):
        try:
            values = self._gather(ctypes.string_at(send, count))
            for rank, value in enumerate(values):
                if len(value) != count:
                    raise dist.DistBackendError(f"{self._who}: rank {rank} sent {len(value)} bytes to join, rank "
                                                f"{self._rank} sent {count}: the ranks run different versions")
            ctypes.memmove(recv, b"".join(values), count * self._size)
            return library.OK
        except BaseException as error:  # noqa: BLE001: C called this, so it must not raise; join() does
            self._error = error
            return library.PEER_LOST

    def _gather(self, mine):
        number = next(self._numbers)
        self._store.set(f"{number}/{self._rank}", mine)
        latest = time.monotonic() + self._timeout.total_seconds()
        values = []
        for rank in range(self._size):
            values.append(self._get(f"{number}/{rank}", latest))
            if values[-1] is None:
                raise dist.DistStoreError(
                    f"{self._who}: rank {self._rank}: joining: rank {rank} did not come within "
                    f"{self._timeout.total_seconds():g} s: look at the output of rank {rank}")
        return values

    def monitored_barrier(self, timeout, wait_all_ranks):
        """Rank 0 waits for the other ranks, and raises an error that names the first missing rank, or all. The messages
        are those of PyTorch's Gloo. It uses only the store, so it works while a collective hangs. `timeout`: a
        timedelta."""
        place = f"barrier {next(self._barriers)}/"
        latest = time.monotonic() + timeout.total_seconds()
        if self._rank > 0:
            self._store.set(f"{place}{self._rank}", b"here")
            answer = self._get(f"{place}all", latest + timeout.total_seconds())
            if answer != b"here":
                raise dist.DistNetworkError(
                    f"{self._who}: Rank {self._rank} successfully reached monitoredBarrier, but received errors while "
                    f"waiting for send/recv from rank 0: {answer.decode() if answer else 'rank 0 did not come'}")
            return
        missing = []
        for rank in range(1, self._size):
            if (wait_all_ranks or not missing) and self._get(f"{place}{rank}", latest) is None:
                missing.append(str(rank))
        ranks = ("Ranks " if len(missing) > 1 else "Rank ") + ", ".join(missing)
        why = f"{ranks} failed to pass monitoredBarrier in {timeout.total_seconds() * 1000:g} ms"
        self._store.set(f"{place}all", why if missing else "here")
        if missing:
            raise dist.DistNetworkError(f"{self._who}: Rank 0 timed out in monitoredBarrier: {why}")

    def _get(self, key, latest):
        """The value of `key`, or None if it is not set before `latest`, a time of time.monotonic()."""
        # Not Store.wait: until it returns, other threads of this rank cannot use the store, and Ctrl-C has no effect.
        pause = 0.001
        while not self._has(key):
            if self._stopped:
                raise dist.DistBackendError(f"{self._who}: aborted: the process group was destroyed")
            if time.monotonic() >= latest:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return self._store.get(key)

    def _has(self, key):
        try:
            return self._store.check([key])
        except dist.DistNetworkError as error:
            raise dist.DistStoreError(f"{self._who}: rank {self._rank}: joining: the store is gone, which rank 0 has "
                                      f"under torchrun and env://: look at the output of rank 0 ({error})") from None
