"""Where the ranks of a group find each other: c10d's Store."""
import ctypes
import itertools
import os
import time

import torch.distributed as dist

from . import library
from .work import error_of


class Meeting:
    """`who` names the group in messages. `timeout`: how long a rank waits for the others, and for a collective."""

    def __init__(self, store, rank, size, who, timeout):
        self._store, self._rank, self._size, self._who, self._timeout = store, rank, size, who, timeout
        self._numbers = itertools.count(1)
        self._error = None
        self._stopped = False

    def stop(self):
        """Ends a join() of another thread."""
        self._stopped = True

    def join(self, plugin, options, device):
        """The library's group. All ranks call it. Raises DistError."""
        entries = (library.Option * len(options.plugin))(
            *((name.encode(), value.encode()) for name, value in options.plugin))
        allgather = library.Allgather(self._allgather)  # lives as long as the call
        asked = library.GroupOptions(
            struct_size=ctypes.sizeof(library.GroupOptions), rank=self._rank, size=self._size, device=device,
            timeout_ms=min(int(self._timeout.total_seconds() * 1000), 2**32 - 1),
            deterministic=options.deterministic, check=options.check, option_count=len(entries), options=entries,
            backend=plugin.encode(), algorithm=options.algorithm.encode(),
            address=os.environ.get("DDPRUN_ADDRESS", "").encode(), name=None, context=None, allgather=allgather)
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
        except BaseException as error:  # noqa: BLE001: it must not leave a callback of C; join() raises it
            self._error = error
            return library.PEER_LOST

    def _gather(self, mine):
        number = next(self._numbers)
        self._store.set(f"{number}/{self._rank}", mine)
        latest = time.monotonic() + self._timeout.total_seconds()
        return [self._get(f"{number}/{rank}", rank, latest) for rank in range(self._size)]

    def _get(self, key, rank, latest):
        # Not Store.wait: it would keep the store's connection, which other threads of this rank need, and Ctrl-C waiting.
        pause = 0.001
        while not self._store.check([key]):
            if self._stopped:
                raise dist.DistBackendError(f"{self._who}: aborted: the process group was destroyed")
            if time.monotonic() >= latest:
                raise dist.DistStoreError(
                    f"{self._who}: rank {self._rank}: joining: rank {rank} did not come within "
                    f"{self._timeout.total_seconds():g} s: look at the output of rank {rank}")
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return self._store.get(key)
