"""The functions of libddprun_c in Python. ddprun/ddprun.h describes them."""
import ctypes
import os
import pathlib
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

from .abi import OK, PEER_LOST, TIMEOUT, Allgather, Collective, Failure, Option

ALLREDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, BARRIER = range(5)
SUM, MIN, MAX, PRODUCT, AVG = range(5)
HOST, CUDA = range(2)
CAP_HOST, CAP_CUDA, CAP_STREAM_ORDERED = 1 << 0, 1 << 1, 1 << 3

Done = CFUNCTYPE(None, c_void_p)


class BackendInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("capabilities", c_uint64), ("name", c_char_p),
                ("version", c_char_p), ("library", c_char_p)]


class GroupOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("rank", c_int32), ("size", c_int32), ("device", c_int32),
                ("timeout_ms", c_uint32), ("deterministic", c_int32), ("check", c_int32), ("option_count", c_uint32),
                ("options", POINTER(Option)), ("backend", c_char_p), ("algorithm", c_char_p), ("address", c_char_p),
                ("name", c_char_p), ("context", c_void_p), ("allgather", Allgather)]


class Block(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_uint64)]


class Exchange(Structure):
    _fields_ = [("struct_size", c_uint32), ("memory", c_int32), ("send", POINTER(Block)), ("recv", POINTER(Block)),
                ("stream", c_void_p)]


def _path():
    """The path of the library: DDPRUN_LIBRARY, else in the prefix that this package is in."""
    given = os.environ.get("DDPRUN_LIBRARY")
    if given:
        return given
    package = pathlib.Path(__file__).absolute().parent  # links stay: a build folder has one
    path = package.parents[2] / "libddprun_c.so.1"
    if path.is_file():
        return str(path)
    raise ImportError(f"ddprun: libddprun_c.so.1 is not in {path.parent}: "
                      "install ddprun again, or set DDPRUN_LIBRARY to the path of the file")


def _load():
    path = _path()
    try:
        # Calls through the first release the GIL. Calls through the second never block, and keep it.
        library, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        _declare(library, quick)
    except OSError as error:
        raise ImportError(f"ddprun: {path} cannot be loaded: {error}") from error
    except AttributeError as error:
        raise ImportError(f"ddprun: {path} is of another version than this package: {error}") from error
    return library, quick


def _declare(library, quick):
    handle = c_void_p
    status_functions = {
        "backend": [c_char_p, POINTER(BackendInfo)],
        "group_create": [POINTER(GroupOptions), POINTER(handle)],
        "group_write_collectives": [handle, c_char_p, c_char_p],
        "start_exchange": [handle, POINTER(Exchange), POINTER(handle)],
        "start": [handle, c_int32, POINTER(Collective), c_uint32, POINTER(handle)],
    }
    for name, arguments in status_functions.items():
        function = getattr(library, "ddprun_" + name)
        function.argtypes, function.restype = arguments, c_int32
    for name, arguments in {"group_destroy": [handle], "group_abort": [handle], "finish": []}.items():
        function = getattr(library, "ddprun_" + name)
        function.argtypes, function.restype = arguments, None
    library.ddprun_then.argtypes, library.ddprun_then.restype = [handle, Done, c_void_p], None
    library.ddprun_wait.argtypes, library.ddprun_wait.restype = [handle, c_uint32], c_int32
    quick.ddprun_result.argtypes, quick.ddprun_result.restype = [handle, c_void_p], c_int32
    quick.ddprun_release.argtypes, quick.ddprun_release.restype = [handle], None
    for name in ("version", "error", "backends"):
        function = getattr(quick, "ddprun_" + name)
        function.argtypes, function.restype = [], c_char_p


_library, _quick = _load()
wait, release, then = _library.ddprun_wait, _quick.ddprun_release, _library.ddprun_then
destroy, abort, finish = _library.ddprun_group_destroy, _library.ddprun_group_abort, _library.ddprun_finish


def version():
    return _quick.ddprun_version().decode()


def backends():
    """The names of the communication plugins in the search path."""
    return _quick.ddprun_backends().decode().split()


def _error():
    return _quick.ddprun_error().decode(errors="replace")


def _check(status):
    if status != OK:
        raise Failure(status, _error())


def capabilities(name):
    """Loads a plugin and returns its CAP_ bits."""
    info = BackendInfo(ctypes.sizeof(BackendInfo))
    _check(_library.ddprun_backend(name.encode(), byref(info)))
    return info.capabilities


def create(options):
    group = c_void_p()
    _check(_library.ddprun_group_create(byref(options), byref(group)))
    return group


def start(group, kind, calls, count):
    work = c_void_p()
    _check(_library.ddprun_start(group, kind, calls, count, byref(work)))
    return work


def exchange_of(send, recv, memory, stream):
    """`send` and `recv`: (address, size in bytes) for each rank. `stream`: a cudaStream_t, or None."""
    blocks = (Block * len(send))(*send), (Block * len(recv))(*recv)
    return Exchange(ctypes.sizeof(Exchange), memory, *blocks, stream)


def start_exchange(group, exchange):
    work = c_void_p()
    _check(_library.ddprun_start_exchange(group, byref(exchange), byref(work)))
    return work


def check_result(work):
    """Raises Failure if the work has failed."""
    _check(_quick.ddprun_result(work, None))


def write_collectives(group, folder, reason):
    _check(_library.ddprun_group_write_collectives(group, folder.encode(), reason.encode()))
