"""What the library needs of a tensor and a ReduceOp: the kind of memory, and the numbers of dtype and operation."""
import ctypes

import torch
import torch.distributed as dist

from . import library

_DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3, torch.int8: 4, torch.int16: 5,
           torch.int32: 6, torch.int64: 7, torch.uint8: 8}
BYTES = _DTYPES[torch.uint8]  # to copy elements of any dtype
_OPS = {dist.ReduceOp.SUM: library.SUM, dist.ReduceOp.MIN: library.MIN, dist.ReduceOp.MAX: library.MAX,
        dist.ReduceOp.PRODUCT: library.PRODUCT, dist.ReduceOp.AVG: library.AVG}
_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
_CALL_SIZE = ctypes.sizeof(library.Collective)
# `or` and `and` of the bytes 0 and 1
_BOOL_OPS = {library.SUM: library.MAX, library.MAX: library.MAX, library.PRODUCT: library.MIN, library.MIN: library.MIN}


def memory_of(tensor):
    if tensor.layout != torch.strided:
        raise ValueError(f"a tensor of layout {tensor.layout}: expected a dense one")
    if not tensor.is_contiguous():
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} and strides {tensor.stride()} is not contiguous: "
                         "pass tensor.contiguous()")
    if tensor.device.type == "cpu":
        return library.HOST
    if tensor.device.type == "cuda":
        return library.CUDA
    raise ValueError(f"a tensor on {tensor.device}: expected one on cpu or cuda")


def memory_of_all(tensors):
    memories = {memory_of(tensor) for tensor in tensors}
    if len(memories) > 1:
        raise ValueError("tensors on cpu and on cuda in one call: expected one device")
    return memories.pop() if memories else library.HOST


def op_of(op):
    for known, number in _OPS.items():
        if op == known:
            return number
    raise ValueError(f"{getattr(op, 'op', op)}: expected SUM, MIN, MAX, PRODUCT or AVG")


def number_of(tensor, op):
    """The library's (dtype, op) for a reduction."""
    if tensor.dtype == torch.bool and op in _BOOL_OPS:
        return BYTES, _BOOL_OPS[op]
    if tensor.dtype not in _DTYPES:
        raise TypeError(f"reductions of {tensor.dtype} are not supported: convert the tensor first")
    return _DTYPES[tensor.dtype], op


def is_integer_on_host(tensor):
    return tensor.device.type == "cpu" and tensor.dtype in _INTEGERS


def check_same_dtype(what, *tensors):
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) > 1:
        raise TypeError(f"{what}: tensors of {' and '.join(sorted(map(str, dtypes)))}: expected one dtype")


def stream_of(memory):
    return torch.cuda.current_stream().cuda_stream if memory == library.CUDA else None


def table_of(calls, memory):
    """`calls` as an array of structs of the library. Each call is (send, recv, count, dtype, op, root): send and recv
    are tensors or None, and count is in elements of dtype."""
    table = (library.Collective * len(calls))()
    for at, (send, recv, count, dtype, op, root) in zip(table, calls):
        at.struct_size, at.dtype, at.op, at.root, at.memory, at.count = _CALL_SIZE, dtype, op, root, memory, count
        at.send = send.data_ptr() if send is not None else None
        at.recv = recv.data_ptr() if recv is not None else None
        at.stream = stream_of(memory)
    return table
