"""Ranks of a test: forks of the test's process, which has loaded PyTorch and started no thread. None outlives a test."""
import ctypes
import datetime
import os
import pathlib
import pickle
import selectors
import signal
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Raised:
    """An exception that has ended a rank."""

    def __init__(self, error):
        self.kind, self.text = type(error).__name__, str(error)
        self.trace = "".join(traceback.format_exception(error))

    def __repr__(self):
        return f"{self.kind}: {self.text}\n{self.trace}"


class Died:
    """A rank that a signal has ended, or that left without an answer."""

    def __init__(self, status):
        self.status = os.waitstatus_to_exitcode(status)

    def __repr__(self):
        return f"exit code {self.status}"


class Rank:
    def __init__(self, number, count, folder, body):
        self.number, self.count, self.folder = number, count, folder
        self.answer = b""
        self.result = None
        self.pipe, into = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            try:
                if os.getppid() == parent:
                    self._run(body, into)
            finally:
                os._exit(1)  # never back into the test, of which this process is a copy
        os.close(into)

    def _run(self, body, into):
        output = os.open(f"{self.folder}/output{self.number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        torch.set_num_threads(1)
        try:
            try:
                result = body(self)
            except BaseException as error:  # noqa: BLE001: the test judges it
                result = Raised(error)
        except KeyboardInterrupt as error:  # Python raises it late, where the body's own error is handled
            result = Raised(error)
        self.set_flag(f"done{self.number}")
        if hasattr(self, "store") and self.number == 0:  # the others may still need it, to learn of the same error
            latest = time.monotonic() + 5
            while not all(os.path.exists(f"{self.folder}/done{number}") for number in range(self.count)):
                if time.monotonic() > latest:
                    break
                time.sleep(0.01)
        with os.fdopen(into, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)

    def join(self, backend, timeout=20, **options):
        """init_process_group. Rank 0 gets the port from the kernel, and writes it into a file for the others."""
        timeout = datetime.timedelta(seconds=timeout)
        port_file = f"{self.folder}/port"
        if self.number == 0:
            self.store = dist.TCPStore("127.0.0.1", 0, None, True, timeout, wait_for_workers=False)
            with open(port_file + ".new", "w") as file:
                file.write(str(self.store.port))
            os.rename(port_file + ".new", port_file)
        else:
            while not os.path.exists(port_file):
                time.sleep(0.01)
            with open(port_file) as file:
                self.store = dist.TCPStore("127.0.0.1", int(file.read()), None, False, timeout)
        dist.init_process_group(backend, store=self.store, rank=self.number, world_size=self.count, timeout=timeout,
                                **options)

    def forget_port(self):
        """After the end of a process group, before the next join."""
        self.ends = getattr(self, "ends", 0) + 1
        self.set_flag(f"end{self.ends}-{self.number}")
        for number in range(self.count):
            self.wait_for_flag(f"end{self.ends}-{number}")
        if self.number == 0:
            os.remove(f"{self.folder}/port")
            self.set_flag(f"forgotten{self.ends}")
        self.wait_for_flag(f"forgotten{self.ends}")

    def set_flag(self, what):
        """For the test, and for the other ranks."""
        open(f"{self.folder}/{what}", "w").close()

    def wait_for_flag(self, what):
        while not os.path.exists(f"{self.folder}/{what}"):
            time.sleep(0.01)


def run(body, count=2, deadline=120, watch=None):
    """body(rank) in each rank; a list of what they returned, or Raised or Died. `watch(ranks, folder)` runs meanwhile."""
    with tempfile.TemporaryDirectory(prefix="ddprun-test-") as folder:
        sys.stdout.flush()
        sys.stderr.flush()
        ranks = [Rank(number, count, folder, body) for number in range(count)]
        late = []
        try:
            if watch is not None:
                watch(ranks, folder)
            late = _collect(ranks, time.monotonic() + deadline)
        finally:
            for rank in ranks:
                if rank.result is None:
                    os.kill(rank.pid, signal.SIGKILL)
                status = os.waitpid(rank.pid, 0)[1]
                rank.result = pickle.loads(rank.answer) if rank.answer else Died(status)
                os.close(rank.pipe)
        if late:
            outputs = "".join(pathlib.Path(folder, f"output{rank.number}").read_text(errors="replace") for rank in ranks)
            raise AssertionError(f"ranks {late} did not end within {deadline} s\n{outputs}")
        return [rank.result for rank in ranks]


def _collect(ranks, latest):
    """Reads the answers of the ranks until all have ended; the numbers of those that have not in time."""
    with selectors.DefaultSelector() as selector:
        for rank in ranks:
            selector.register(rank.pipe, selectors.EVENT_READ, rank)
        while selector.get_map() and (left := latest - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                piece = os.read(key.fd, 1 << 16)
                key.data.answer += piece
                if not piece:
                    selector.unregister(key.fd)
                    key.data.result = ()
        return [key.data.number for key in selector.get_map().values()]
