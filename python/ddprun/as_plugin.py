"""A backend of torch.distributed as a communication plugin of ddprun: the functions of ddprun/plugin/comm_plugin.h.

The plugin python/comm_c10d runs this file in its own Python interpreter, with abi.py but without the rest of the
package, and calls fill(). The file adds as little as possible, so that `ddprun conformance` tests the backend
(docs/pytorch.md has the exceptions).
"""
import ctypes
import functools
import importlib
import itertools
import pathlib
import runpy
import time
import types
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_int32, c_uint32, c_uint64, c_void_p
from datetime import timedelta

abi = types.SimpleNamespace(**runpy.run_path(str(pathlib.Path(__file__).with_name("abi.py"))))
Allgather, Collective, Failure, Option = abi.Allgather, abi.Collective, abi.Failure, abi.Option
OK, INVALID, UNSUPPORTED, TIMEOUT = abi.OK, abi.INVALID, abi.UNSUPPORTED, abi.TIMEOUT
PEER_LOST, ABORTED, INTERNAL = abi.PEER_LOST, abi.ABORTED, abi.INTERNAL

# Texts in a backend's errors, and their status. The first match counts.
STATUS_OF = (("closed by peer", PEER_LOST), ("reset by peer", PEER_LOST), ("Broken pipe", PEER_LOST),
             ("imed out", TIMEOUT), ("imeout", TIMEOUT), ("Invalid scalar type", UNSUPPORTED))
SLICE = 0.05  # seconds between two checks of the host's abort flag in a wait
MEETING = 256  # bytes from each rank in an allgather of create


class Host(Structure):
    _fields_ = [("struct_size", c_uint32), ("rank", c_int32), ("size", c_int32), ("device", c_int32),
                ("deadline_ms", c_uint32), ("deterministic", c_int32), ("algorithm", c_char_p),
                ("options", POINTER(Option)), ("option_count", c_uint32), ("error_size", c_uint32),
                ("error", c_void_p), ("context", c_void_p), ("abort_flag", c_void_p), ("log", c_void_p),
                ("allgather", Allgather), ("address", c_char_p)]


class Execution(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("algorithm", c_void_p), ("transport", c_void_p)]


Create = CFUNCTYPE(c_int32, POINTER(Host), POINTER(c_void_p))
Start = CFUNCTYPE(c_int32, c_void_p, POINTER(Collective), POINTER(c_void_p))
Wait = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_uint32, POINTER(Execution))
Test = CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(c_int32))
Nothing = CFUNCTYPE(None, c_void_p)
Text = CFUNCTYPE(c_void_p, c_void_p)


class Table(Structure):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("name", c_char_p), ("version", c_char_p),
                ("library", c_char_p), ("capabilities", c_uint64), ("algorithms", c_void_p),
                ("algorithm_count", c_uint32), ("reserved", c_uint32), ("create", Create), ("destroy", Nothing),
                ("allreduce", Start), ("broadcast", Start), ("allgather", Start), ("barrier", Start), ("wait", Wait),
                ("abort", Nothing), ("last_error", Text), ("reduce_scatter", Start), ("test", Test)]


def line_of(error):
    """The first line of an error's message, which may continue with a stack trace."""
    text = str(error).strip() or type(error).__name__
    return "".join(c if c.isprintable() else " " for c in text.splitlines()[0])


def status_of(error):
    text = str(error)
    return getattr(error, "status", next((status for words, status in STATUS_OF if words in text), INTERNAL))


@functools.lru_cache(256)
def tensor_at(address, count, dtype):
    """A tensor of `count` elements over the memory at `address`, which the caller owns. No copy."""
    if count == 0:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer((c_char * (count * dtype.itemsize)).from_address(address), dtype=dtype)


def meet(host, mine):
    """Gathers the text `mine` of each rank, at most 255 bytes. Returns the texts in rank order."""
    send = ctypes.create_string_buffer(mine.encode()[:MEETING - 1], MEETING)
    recv = ctypes.create_string_buffer(MEETING * host.size)
    status = host.allgather(host.context, send, MEETING, recv)
    if status != OK:
        raise Failure(status, "the ranks cannot meet")
    return [recv[i * MEETING:(i + 1) * MEETING].split(b"\0")[0].decode(errors="replace") for i in range(host.size)]


def store_of(host, timeout):
    """A store that rank 0 hosts. Rank 0 sends its address and port, "127.0.0.1 1234", or why it failed."""
    if host.size == 1:
        return c10d.HashStore()
    store, place = None, ""
    if host.rank == 0:
        try:
            address = (host.address or b"").decode() or "127.0.0.1"
            store = c10d.TCPStore(address, 0, None, True, timeout, False)
            place = f"{address} {store.port}"
        except Exception as error:
            place = "! " + line_of(error)
    address, port = meet(host, place)[0].split(" ", 1)
    if address == "!":
        raise Failure(INTERNAL, "rank 0: " + port)
    trouble = ""
    try:
        store = store or c10d.TCPStore(address, int(port), None, False, timeout, False)
    except Exception as error:
        trouble = line_of(error)
    for rank, text in enumerate(meet(host, trouble)):  # also: rank 0 must not leave before all have connected
        if text:
            raise Failure(INTERNAL, f"rank {rank}: {text}")
    return store


def process_group(name, host, store, timeout):
    if name != "gloo":
        plugin = c10d.Backend._plugins.get(name.upper())
        if plugin is None:
            raise Failure(INVALID, f"{name}: torch.distributed has no such backend; import the module that registers "
                                   "it: option module")
        if not plugin.extended_api:
            return plugin.creator_fn(store, host.rank, host.size, timeout)
        of_group = c10d.distributed_c10d._DistributedBackendOptions()
        of_group.store, of_group.timeout, of_group.group_id = store, timeout, "ddprun"
        of_group.group_rank, of_group.group_size = host.rank, host.size
        of_group.global_ranks_in_group = list(range(host.size))
        return plugin.creator_fn(of_group, None)
    options = c10d.ProcessGroupGloo._Options()
    options._timeout = timeout
    address = (host.address or b"").decode()
    options._devices = [c10d.ProcessGroupGloo.create_device(hostname=address) if address else
                        c10d.ProcessGroupGloo.create_default_device()]
    options._threads = 2  # as in init_process_group
    return c10d.ProcessGroupGloo(store, host.rank, host.size, options)


class Communicator:
    def __init__(self, host):
        options = {host.options[i].key.decode(): host.options[i].value.decode() for i in range(host.option_count)}
        self.name = options.get("backend", "gloo")
        self.error = ctypes.create_string_buffer(b"no call has failed")
        self.transport = ctypes.create_string_buffer(self.name.encode())
        self.deadline = host.deadline_ms
        self.aborted, self.flag = False, c_int32.from_address(host.abort_flag)
        self.size = host.size
        self.requests, self.numbers = {}, itertools.count(1)
        if options.get("module"):
            importlib.import_module(options["module"])
        timeout = timedelta(milliseconds=host.deadline_ms)
        self.store = c10d.PrefixStore("ddprun", store_of(host, timeout))  # a group need not keep it
        self.group = process_group(self.name, host, self.store, timeout)

    def check_aborted(self):
        if self.aborted or self.flag.value:
            self.abort()
            raise Failure(ABORTED, "aborted")

    def abort(self):
        self.aborted = True
        self.group.abort()

    def start(self, kind, call):
        self.check_aborted()
        dtype, count = DTYPES[call.dtype], call.count
        if kind == "barrier":
            options, tensors = c10d.BarrierOptions(), ()
        elif kind == "broadcast":
            options, tensors = c10d.BroadcastOptions(), ([tensor_at(call.recv, count, dtype)],)
            options.rootRank, options.rootTensor = call.root, 0
        elif kind == "allreduce":
            options, tensors = c10d.AllreduceOptions(), ([tensor_at(call.recv, count, dtype)],)
            options.reduceOp = OPS[call.op]
            if call.send != call.recv:  # c10d has it in place only
                ctypes.memmove(call.recv, call.send, count * dtype.itemsize)
        elif kind == "allgather":
            options = torch._C._distributed_c10d.AllgatherOptions()
            tensors = tensor_at(call.recv, count * self.size, dtype), tensor_at(call.send, count, dtype)
        else:
            options = c10d.ReduceScatterOptions()
            tensors = tensor_at(call.recv, count, dtype), tensor_at(call.send, count * self.size, dtype)
            options.reduceOp = OPS[call.op]
        options.timeout = timedelta(milliseconds=self.deadline)
        work = getattr(self.group, METHODS.get(kind, kind))(*tensors, options)
        number = next(self.numbers)
        self.requests[number] = work, tensors, time.monotonic() + self.deadline / 1000
        return number

    def wait(self, number, timeout_ms):
        work, tensors, until = self.requests.pop(number)
        until = min(until, time.monotonic() + timeout_ms / 1000)
        while True:
            left = until - time.monotonic()
            try:
                work.wait(timedelta(seconds=max(min(left, SLICE), 0.001)))
                return
            except Exception as error:
                if str(error) != "Operation timed out!":  # the end of the slice; a failed work may say: not completed
                    self.check_aborted()
                    raise
            self.check_aborted()
            if left <= 0:
                raise Failure(TIMEOUT, "the collective did not end in time")


METHODS = {"allgather": "_allgather_base", "reduce_scatter": "_reduce_scatter_base"}
communicators = {}
handles = itertools.count(1)


def guarded(function):
    """Converts exceptions of `function` to a status: none may cross the ABI boundary."""
    @functools.wraps(function)
    def call(handle, *arguments):
        communicator = communicators[handle]
        try:
            function(communicator, *arguments)
            return OK
        except Exception as error:
            communicator.error = ctypes.create_string_buffer(line_of(error).encode(errors="replace"))
            return status_of(error)
    return call


def create(host, out):
    try:
        handle = next(handles)
        communicators[handle] = Communicator(host.contents)
        out[0] = handle
        return OK
    except Exception as error:
        text = line_of(error).encode(errors="replace")[:host.contents.error_size - 1] + b"\0"
        ctypes.memmove(host.contents.error, text, len(text))
        return status_of(error)


def destroy(handle):
    communicator = communicators.pop(handle)
    if communicator.requests and not communicator.aborted:
        communicator.abort()  # otherwise the group waits for them when it is freed


def starter(kind):
    @guarded
    def start(communicator, call, request):
        request[0] = communicator.start(kind, call.contents)
    return Start(start)


@guarded
def wait(communicator, request, timeout_ms, execution):
    communicator.wait(request, timeout_ms)
    if execution:
        execution.contents.algorithm = ctypes.addressof(ALGORITHM)
        execution.contents.transport = ctypes.addressof(communicator.transport)


@guarded
def test(communicator, request, done):
    done[0] = communicator.requests[request][0].is_completed()


def fill(table, trouble):
    """Fills in the ddprun_comm_plugin at the address `table`. Writes to the address `trouble`, of 256 bytes, why
    torch.distributed cannot be used, or "" if it can."""
    global torch, c10d, DTYPES, OPS, ALGORITHM, kept
    try:
        import torch
        import torch.distributed as c10d
        DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32,
                  torch.int64, torch.uint8)
        kinds = c10d.ReduceOp
        OPS = (kinds.SUM, kinds.MIN, kinds.MAX, kinds.PRODUCT, kinds.AVG)
    except Exception as error:
        text = line_of(error).encode(errors="replace")[:255] + b"\0"
        ctypes.memmove(trouble, text, len(text))
        return
    ctypes.memset(trouble, 0, 1)
    ALGORITHM = ctypes.create_string_buffer(b"c10d")
    kept = Table.from_address(table)  # which keeps the functions, too
    kept.create, kept.destroy = Create(create), Nothing(destroy)
    for kind in ("allreduce", "broadcast", "allgather", "barrier", "reduce_scatter"):
        setattr(kept, kind, starter(kind))
    kept.wait, kept.test = Wait(wait), Test(test)
    kept.abort = Nothing(lambda handle: communicators[handle].abort())
    kept.last_error = Text(lambda handle: ctypes.addressof(communicators[handle].error))


if __name__ == "__main__":
    # Prints the path of libpython, and that of the Python program, which may be in a venv.
    import sys
    import sysconfig
    folder, version = sysconfig.get_config_vars("LIBDIR", "LDVERSION")
    print(f"{folder}/libpython{version}.so.1.0", sys.executable, sep="\n")
