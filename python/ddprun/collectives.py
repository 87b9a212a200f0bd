"""The collectives of a group. They have the arguments of the functions of the same names in c10d::ProcessGroup."""

import functools

import torch

from . import library
from .tensors import (BYTES, check_same_dtype, is_integer_on_host, memory_of_all, number_of, op_of, stream_of,
                      table_of)
from .work import named

_NAMES = {library.ALLREDUCE: "all_reduce", library.BROADCAST: "broadcast", library.ALLGATHER: "all_gather",
          library.REDUCE_SCATTER: "reduce_scatter", library.BARRIER: "barrier"}


class Collectives:
    """A mixin of ProcessGroup, which has _rank, _size, _torch_name, _capabilities and _started(name, start, memory,
    used, results, finish). _started returns the Work of start(group), where `group` is the library's, and keeps `used`
    alive until the work has ended."""

    def _start(self, kind, calls, results, finish=None):
        """`calls`: (send, recv, count, dtype, op, root) of each collective, with tensors as send and recv."""
        memory = memory_of_all([tensor for call in calls for tensor in call[:2] if tensor is not None])
        table = table_of(calls, memory)
        return self._started(_NAMES[kind], lambda group: library.start(group, kind, table, len(calls)), memory,
                             (calls, results), results, finish)

    @named
    def allreduce(self, tensors, opts=None):
        op = op_of(opts.reduceOp) if opts is not None else library.SUM
        finish = None
        if op == library.AVG and all(is_integer_on_host(tensor) for tensor in tensors):  # the plugins average floats only
            op, finish = library.SUM, functools.partial(self._divide, tensors)
        calls = [(tensor, tensor, tensor.numel(), *number_of(tensor, op), 0) for tensor in tensors]
        return self._start(library.ALLREDUCE, calls, tensors, finish)

    def _divide(self, tensors):
        for tensor in tensors:
            tensor.div_(self._size, rounding_mode="trunc")

    allreduce_coalesced = allreduce

    @named
    def reduce(self, tensors, opts):
        """An allreduce. The other ranks than the root discard the result."""
        return self.allreduce(tensors if opts.rootRank == self._rank else [tensor.clone() for tensor in tensors], opts)

    @named
    def broadcast(self, tensors, opts):
        calls = [(None, tensor, tensor.nbytes, BYTES, 0, opts.rootRank) for tensor in tensors]
        return self._start(library.BROADCAST, calls, tensors)

    @named
    def barrier(self, opts=None):
        memory = library.HOST if self._capabilities & library.CAP_HOST else library.CUDA
        table = table_of([(None, None, 0, BYTES, 0, 0)], memory)
        return self._started("barrier", lambda group: library.start(group, library.BARRIER, table, 1), memory, (), [])

    def _allgather_base(self, output, tensor, opts=None):
        return self.allgather_into_tensor_coalesced([output], [tensor], opts)

    @named
    def allgather_into_tensor_coalesced(self, outputs, tensors, opts=None):
        calls = []
        for output, tensor in zip(outputs, tensors, strict=True):
            check_same_dtype("all_gather", output, tensor)
            if output.numel() != tensor.numel() * self._size:
                raise ValueError(f"all_gather: the output has {output.numel()} elements, expected {self._size} times "
                                 f"the {tensor.numel()} of the input")
            calls.append((tensor, output, tensor.nbytes, BYTES, 0, 0))
        return self._start(library.ALLGATHER, calls, outputs)

    @named
    def allgather(self, outputs, tensors, opts=None):
        pieces, tensor = outputs[0], tensors[0]
        check_same_dtype("all_gather", tensor, *pieces)
        if len(pieces) != self._size or pieces[self._rank].numel() != tensor.numel():
            raise ValueError(f"all_gather: {len(pieces)} outputs of {[piece.numel() for piece in pieces]} elements: "
                             f"expected {self._size}, and in number {self._rank} the {tensor.numel()} of the input")
        if any(piece.numel() != tensor.numel() for piece in pieces):
            return self._uneven_allgather(pieces, tensor)
        return self._allgather_pieces([pieces], [tensor], outputs)

    @named
    def allgather_coalesced(self, outputs, tensors, opts=None):
        """`outputs`: a list for each rank, of as many tensors as `tensors` has."""
        if len(outputs) != self._size or any(len(of_rank) != len(tensors) for of_rank in outputs):
            raise ValueError(f"all_gather_coalesced: {len(outputs)} lists of {[len(of_rank) for of_rank in outputs]} "
                             f"outputs: expected {self._size} of {len(tensors)}, as there are inputs")
        return self._allgather_pieces(list(zip(*outputs)), tensors, outputs)

    def _allgather_pieces(self, lists, tensors, results):
        """`lists`: for each tensor, the output tensors, one for each rank."""
        tensors = [tensor.contiguous() for tensor in tensors]
        wholes = [torch.empty((self._size, tensor.numel()), dtype=tensor.dtype, device=tensor.device)
                  for tensor in tensors]

        def finish():
            for pieces, whole in zip(lists, wholes):
                for piece, part in zip(pieces, whole, strict=True):
                    piece.copy_(part.view(piece.shape))

        calls = [(tensor, whole, tensor.nbytes, BYTES, 0, 0) for tensor, whole in zip(tensors, wholes)]
        return self._start(library.ALLGATHER, calls, results, finish)

    def _uneven_allgather(self, pieces, tensor):
        pieces[self._rank].copy_(tensor.view(pieces[self._rank].shape))
        calls = [(None, piece, piece.nbytes, BYTES, 0, root) for root, piece in enumerate(pieces)]
        return self._start(library.BROADCAST, calls, [pieces])

    def _reduce_scatter_base(self, output, tensor, opts):
        return self.reduce_scatter_tensor_coalesced([output], [tensor], opts)

    @named
    def reduce_scatter_tensor_coalesced(self, outputs, tensors, opts):
        op = op_of(opts.reduceOp)
        calls = []
        for output, tensor in zip(outputs, tensors, strict=True):
            check_same_dtype("reduce_scatter", output, tensor)
            if tensor.numel() != output.numel() * self._size:
                raise ValueError(f"reduce_scatter: the input has {tensor.numel()} elements, expected {self._size} times "
                                 f"the {output.numel()} of the output")
            calls.append((tensor, output, output.numel(), *number_of(output, op), 0))
        return self._start(library.REDUCE_SCATTER, calls, outputs)

    @named
    def reduce_scatter(self, outputs, tensors, opts):
        output, pieces = outputs[0], tensors[0]
        if len(pieces) != self._size or any(piece.numel() != output.numel() for piece in pieces):
            raise ValueError(f"reduce_scatter: {len(pieces)} inputs of {[piece.numel() for piece in pieces]} elements: "
                             f"expected {self._size} of {output.numel()}, as the output has")
        joined = torch.cat([piece.reshape(-1) for piece in pieces])
        return self.reduce_scatter_tensor_coalesced([output], [joined], opts)

    @named
    def alltoall_base(self, output, tensor, output_sizes, input_sizes, opts=None):
        """`..._sizes`: how many rows of the first dimension belong to each rank; empty: equally many."""
        def parts(whole, sizes, what):
            sizes = list(sizes) or [whole.size(0) // self._size] * self._size
            if len(sizes) != self._size or sum(sizes) != whole.size(0):
                raise ValueError(f"all_to_all: the {what} has {whole.size(0)} rows, which are not divided among "
                                 f"{self._size} ranks as {sizes}")
            return whole.split(sizes)

        check_same_dtype("all_to_all", output, tensor)
        return self._exchange("all_to_all", parts(tensor, input_sizes, "input"), parts(output, output_sizes, "output"),
                              [output])

    @named
    def alltoall(self, outputs, tensors, opts=None):
        return self._exchange("all_to_all", tensors, outputs, outputs)

    @named
    def gather(self, outputs, tensors, opts):
        to_root = [tensors[0] if rank == opts.rootRank else None for rank in range(self._size)]
        return self._exchange("gather", to_root, self._at_root(outputs, opts), outputs)

    def gather_single(self, output, tensor, opts):
        return self.gather([output.chunk(self._size)] if opts.rootRank == self._rank else [], [tensor], opts)

    @named
    def scatter(self, outputs, tensors, opts):
        from_root = [outputs[0] if rank == opts.rootRank else None for rank in range(self._size)]
        return self._exchange("scatter", self._at_root(tensors, opts), from_root, outputs)

    def _at_root(self, lists, opts):
        if opts.rootRank != self._rank:
            return [None] * self._size
        if not lists or len(lists[0]) != self._size:
            raise ValueError(f"{len(lists[0]) if lists else 'no'} tensors on the root: expected {self._size}")
        return lists[0]

    def _exchange(self, name, sent, received, results):
        """`sent` and `received`: for each rank, a tensor, or None if there is no data."""
        given = [tensor for tensor in (*sent, *received) if tensor is not None]
        check_same_dtype(name, *given)
        memory = memory_of_all(given)
        table = library.exchange_of(*([(tensor.data_ptr(), tensor.nbytes) if tensor is not None else (None, 0)
                                       for tensor in tensors] for tensors in (sent, received)),
                                    memory, stream_of(memory))
        return self._started(name, lambda group: library.start_exchange(group, table), memory, (given, table), results)

    # Names of PyTorch 2.15.
    all_gather_single, all_gather_single_coalesced = _allgather_base, allgather_into_tensor_coalesced
    reduce_scatter_single, reduce_scatter_single_coalesced = _reduce_scatter_base, reduce_scatter_tensor_coalesced
    all_to_all_single, gather_into_tensor = alltoall_base, gather_single
