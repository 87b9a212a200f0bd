"""The declarations of ddprun/plugin/comm_plugin.h that library.py (the caller) and as_plugin.py (a plugin) share."""
from ctypes import CFUNCTYPE, Structure, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

OK, INVALID, UNSUPPORTED, TIMEOUT, PEER_LOST, ABORTED, MISMATCH, NO_MEMORY, INTERNAL = range(9)

Allgather = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_uint64, c_void_p)


class Option(Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class Collective(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("op", c_int32), ("root", c_int32),
                ("memory", c_int32), ("canonical_order", c_int32), ("send", c_void_p), ("recv", c_void_p),
                ("count", c_uint64), ("stream", c_void_p)]


class Failure(Exception):
    """A status that is not OK, with its one-line message."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status
