"""ddprun's plugins as backends of torch.distributed: `ddprun_shm`, `ddprun_gloo`, and one for each other plugin."""
import atexit
import ctypes
import functools
import os
import weakref

import torch
import torch.distributed as dist

from . import library
from .meeting import Meeting
from .options import Options
from .peers import Channel
from .work import Work, error_of

PREFIX = "ddprun_"

_DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3, torch.int8: 4, torch.int16: 5,
           torch.int32: 6, torch.int64: 7, torch.uint8: 8}
_BYTES = _DTYPES[torch.uint8]
_OPS = {dist.ReduceOp.SUM: library.SUM, dist.ReduceOp.MIN: library.MIN, dist.ReduceOp.MAX: library.MAX,
        dist.ReduceOp.PRODUCT: library.PRODUCT, dist.ReduceOp.AVG: library.AVG}
_CALL_SIZE = ctypes.sizeof(library.Collective)

_groups = weakref.WeakSet()


def register():
    """Registers a backend of torch.distributed for each communication plugin in the search path."""
    for name in library.backends():
        torch_name = PREFIX + name.replace("-", "_")
        make = functools.partial(_make, name, torch_name)
        # A plugin is not loaded before it is used, so the memory that it takes is checked then.
        if not hasattr(dist.Backend, torch_name.upper()):
            dist.Backend.register_backend(torch_name, make, extended_api=True,
                                          devices=["cuda"] if name == "nccl" else ["cpu", "cuda"])


def _make(name, torch_name, given, pg_options):
    options = Options.from_environment().updated(pg_options, torch_name)
    return ProcessGroup(name, torch_name, given, options)


@atexit.register
def _close_all():
    for group in list(_groups):
        group.shutdown()
    library.finish()


def _stream_of(memory):
    return torch.cuda.current_stream().cuda_stream if memory == library.CUDA else None


def _table_of(calls, memory):
    table = (library.Collective * len(calls))()
    for at, (send, recv, count, dtype, op, root) in zip(table, calls):
        at.struct_size, at.dtype, at.op, at.root, at.memory, at.count = _CALL_SIZE, dtype, op, root, memory, count
        at.send = send.data_ptr() if send is not None else None
        at.recv = recv.data_ptr() if recv is not None else None
        at.stream = _stream_of(memory)
    return table


class ProcessGroup(dist.ProcessGroup):
    """The ranks of one group over one plugin."""

    def __init__(self, plugin, torch_name, given, options):
        super().__init__(given.group_rank, given.group_size)
        self._plugin = plugin
        self._torch_name = torch_name
        self._rank, self._size = given.group_rank, given.group_size
        self._options = options
        ranks = list(given.global_ranks_in_group)
        world = "" if not ranks else " of ranks " + ", ".join(map(str, ranks))
        self._who = torch_name + world
        self._store = given.store
        self._timeout = options.timeout or given.timeout
        self._meeting = Meeting(given.store, self._rank, self._size, self._who, self._timeout)
        self._channels = {}  # by sender, receiver and tag
        self._handles = {}  # by kind of memory
        self._inflight = {}  # works whose buffers the library may use, though nobody else keeps them
        try:
            self._capabilities = library.capabilities(plugin)
        except library.Failure as failure:
            raise error_of(failure) from None
        _groups.add(self)
        if self._capabilities & library.CAP_HOST:
            self._handle(library.HOST)

    # What torch.distributed asks about a group.
    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def name(self):
        return self._torch_name

    getRank, getSize, getBackendName = rank, size, name

    def execution_of_last(self):
        return self._last.execution()

    def _handle(self, memory):
        handle = self._handles.get(memory)
        if handle is None:
            handle = self._handles[memory] = self._join(memory)
        return handle

    def _join(self, memory):
        if not self._capabilities & (library.CAP_CUDA if memory == library.CUDA else library.CAP_HOST):
            raise dist.DistBackendError(f"{self._torch_name}: rank {self._rank}: this backend takes "
                                        f"{'host' if memory == library.CUDA else 'CUDA'} memory only: move the tensor, "
                                        "or choose another backend for its device")
        device = torch.cuda.current_device() if memory == library.CUDA else -1
        return self._meeting.join(self._plugin, self._options, device)

    def _memory_of(self, tensor):
        if tensor.layout != torch.strided:
            raise ValueError(f"{self._torch_name}: a tensor of layout {tensor.layout}: expected a dense one")
        if not tensor.is_contiguous():
            raise ValueError(f"{self._torch_name}: a tensor of shape {tuple(tensor.shape)} and strides "
                             f"{tensor.stride()} is not contiguous: pass tensor.contiguous()")
        if tensor.device.type == "cpu":
            return library.HOST
        if tensor.device.type == "cuda":
            return library.CUDA
        raise ValueError(f"{self._torch_name}: a tensor on {tensor.device}: expected one on cpu or cuda")

    def _number_of(self, tensor, op):
        dtype = _DTYPES.get(tensor.dtype)
        if dtype is None and tensor.dtype == torch.bool and op in (library.SUM, library.MAX):
            return _BYTES, library.MAX  # or
        if dtype is None and tensor.dtype == torch.bool and op in (library.PRODUCT, library.MIN):
            return _BYTES, library.MIN  # and
        if dtype is None:
            raise TypeError(f"{self._torch_name}: reductions of {tensor.dtype}: not supported")
        return dtype, op

    def _op_of(self, opts):
        op = opts.reduceOp
        for known, number in _OPS.items():
            if op == known:
                return number
        raise ValueError(f"{self._torch_name}: ReduceOp {op}: expected SUM, MIN, MAX, PRODUCT or AVG")

    def _start(self, kind, memory, calls, tensors, finish=None):
        """`calls`: (send, recv, count, dtype, op, root) of each collective, with tensors as send and recv."""
        table = _table_of(calls, memory)
        return self._started(lambda group: library.start(group, kind, table, len(calls)), memory, (calls, tensors),
                             tensors, finish)

    def _started(self, start, memory, used, tensors, finish=None):
        """The work of start(group). `used` stays until it has ended."""
        try:
            work = Work(start(self._handle(memory)), tensors, finish, self._forget)
        except library.Failure as failure:
            raise error_of(failure) from None
        self._inflight[id(work)] = (work, used)
        self._last = work
        return work

    def _forget(self, work):
        self._inflight.pop(id(work), None)

    # The collectives. Each takes what c10d::ProcessGroup's function of the same name takes.
    def allreduce(self, tensors, opts=None):
        op = self._op_of(opts) if opts is not None else library.SUM
        memory = library.HOST
        calls = []
        for tensor in tensors:
            memory = self._memory_of(tensor)
            calls.append((tensor, tensor, tensor.numel(), *self._number_of(tensor, op), 0))
        return self._start(library.ALLREDUCE, memory, calls, tensors)

    allreduce_coalesced = allreduce

    def broadcast(self, tensors, opts):
        calls = [(None, tensor, tensor.nbytes, _BYTES, 0, opts.rootRank) for tensor in tensors]
        return self._start(library.BROADCAST, self._memory_of(tensors[0]), calls, tensors)

    def barrier(self, opts=None):
        memory = library.HOST if self._capabilities & library.CAP_HOST else library.CUDA
        return self._start(library.BARRIER, memory, [(None, None, 0, _BYTES, 0, 0)], [torch.empty(0)])

    def _allgather_base(self, output, tensor, opts=None):
        return self.allgather_into_tensor_coalesced([output], [tensor], opts)

    def allgather_into_tensor_coalesced(self, outputs, tensors, opts=None):
        calls = []
        for output, tensor in zip(outputs, tensors):
            self._memory_of(output)
            if output.nbytes != tensor.nbytes * self._size:
                raise ValueError(f"{self._torch_name}: all_gather: the output has {output.numel()} elements, expected "
                                 f"{self._size} times the {tensor.numel()} of the input")
            calls.append((tensor, output, tensor.nbytes, _BYTES, 0, 0))
        return self._start(library.ALLGATHER, self._memory_of(tensors[0]), calls, outputs)

    def allgather(self, outputs, tensors, opts=None):
        pieces, tensor = outputs[0], tensors[0]
        if any(piece.numel() != tensor.numel() for piece in pieces):
            return self._uneven_allgather(pieces, tensor)
        all_of_them = torch.empty((self._size, tensor.numel()), dtype=tensor.dtype, device=tensor.device)

        def finish():
            for piece, part in zip(pieces, all_of_them):
                piece.copy_(part.view(piece.shape))

        tensor = tensor.contiguous()
        calls = [(tensor, all_of_them, tensor.nbytes, _BYTES, 0, 0)]
        return self._start(library.ALLGATHER, self._memory_of(tensor), calls, outputs, finish)

    def _uneven_allgather(self, pieces, tensor):
        pieces[self._rank].copy_(tensor)
        calls = [(None, piece, piece.nbytes, _BYTES, 0, root) for root, piece in enumerate(pieces)]
        for piece in pieces:
            self._memory_of(piece)
        return self._start(library.BROADCAST, self._memory_of(tensor), calls, [pieces])

    def _reduce_scatter_base(self, output, tensor, opts):
        return self.reduce_scatter_tensor_coalesced([output], [tensor], opts)

    def reduce_scatter_tensor_coalesced(self, outputs, tensors, opts):
        op = self._op_of(opts)
        calls = []
        for output, tensor in zip(outputs, tensors):
            self._memory_of(output)
            if tensor.numel() != output.numel() * self._size:
                raise ValueError(f"{self._torch_name}: reduce_scatter: the input has {tensor.numel()} elements, "
                                 f"expected {self._size} times the {output.numel()} of the output")
            calls.append((tensor, output, output.numel(), *self._number_of(output, op), 0))
        return self._start(library.REDUCE_SCATTER, self._memory_of(tensors[0]), calls, outputs)

    def reduce_scatter(self, outputs, tensors, opts):
        output, pieces = outputs[0], tensors[0]
        if any(piece.numel() != output.numel() for piece in pieces):
            raise ValueError(f"{self._torch_name}: reduce_scatter: the inputs must have as many elements as the output")
        joined = torch.cat([piece.reshape(-1) for piece in pieces])
        return self.reduce_scatter_tensor_coalesced([output], [joined], opts)

    def reduce(self, tensors, opts):
        """An allreduce; only the root keeps the result."""
        if opts.rootRank == self._rank:
            return self.allreduce(tensors, opts)
        return self.allreduce([tensor.clone() for tensor in tensors], opts)

    def alltoall_base(self, output, tensor, output_sizes, input_sizes, opts=None):
        """`..._sizes`: the rows of the first dimension for each rank; empty: as many for each."""
        def parts(whole, sizes, what):
            self._memory_of(whole)
            sizes = list(sizes) or [whole.size(0) // self._size] * self._size
            if len(sizes) != self._size or sum(sizes) != whole.size(0):
                raise ValueError(f"{self._torch_name}: all_to_all: the {what} has {whole.size(0)} rows, which are not "
                                 f"divided among {self._size} ranks as {sizes}")
            return whole.split(sizes)

        return self._exchange(parts(tensor, input_sizes, "input"), parts(output, output_sizes, "output"), [output])

    def alltoall(self, outputs, tensors, opts=None):
        return self._exchange(tensors, outputs, outputs)

    def gather(self, outputs, tensors, opts):
        nothing = [None] * self._size
        to_root = [tensors[0] if rank == opts.rootRank else None for rank in range(self._size)]
        return self._exchange(to_root, outputs[0] if self._rank == opts.rootRank else nothing, outputs)

    def scatter(self, outputs, tensors, opts):
        nothing = [None] * self._size
        from_root = [outputs[0] if rank == opts.rootRank else None for rank in range(self._size)]
        return self._exchange(tensors[0] if self._rank == opts.rootRank else nothing, from_root, outputs)

    def _exchange(self, sent, received, results):
        """`sent` and `received`: a tensor for each rank, or None for no data."""
        given = [tensor for tensor in (*sent, *received) if tensor is not None]
        memory = [self._memory_of(tensor) for tensor in given][0]
        table = library.exchange_of(*([(tensor.data_ptr(), tensor.nbytes) if tensor is not None else (None, 0)
                                       for tensor in tensors] for tensors in (sent, received)),
                                    memory, _stream_of(memory))
        return self._started(lambda group: library.start_exchange(group, table), memory, (given, table), results)

    def send(self, tensors, peer, tag=0):
        return self._to_peer(tensors, self._rank, peer, tag)

    def recv(self, tensors, peer, tag=0):
        return self._to_peer(tensors, peer, self._rank, tag)

    def recv_anysource(self, tensors, tag=0):
        raise dist.DistBackendError(f"{self._torch_name}: recv() without a source: not supported: name the rank")

    def _to_peer(self, tensors, sender, receiver, tag):
        tensor = tensors[0]
        if self._memory_of(tensor) != library.HOST:
            raise dist.DistBackendError(f"{self._torch_name}: send and recv of a tensor on {tensor.device}: expected one "
                                        "on cpu")
        key = (sender, receiver, tag)
        is_sender = sender == self._rank
        if key not in self._channels:
            self._channels[key] = Channel(
                self._plugin, self._options, dist.PrefixStore("/".join(map(str, key)), self._store),
                f"{self._who}: send from rank {sender} to rank {receiver}", self._timeout, is_sender,
                receiver if is_sender else sender)
        table = _table_of([(None, tensor, tensor.nbytes, _BYTES, 0, 0)], library.HOST)
        return self._channels[key].submit(lambda group: library.start(group, library.BROADCAST, table, 1), tensors)

    # The end of the group.
    def abort(self):
        for handle in self._handles.values():
            library.abort(handle)

    def shutdown(self):
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()
        handles, self._handles = self._handles, {}
        for handle in handles.values():
            library.destroy(handle)
        _groups.discard(self)

    def write_collectives(self, folder, reason="asked for"):
        """Writes collectives-rank<N>.json with the last collectives of this rank into the folder."""
        for handle in self._handles.values():
            library.write_collectives(handle, os.fspath(folder), reason)
