"""ddprun's plugins as backends of torch.distributed: `ddprun_shm`, `ddprun_gloo`, and one for each other plugin."""
import atexit
import functools
import os
import sys
import weakref

import torch
import torch.distributed as dist

from . import callbacks, interrupts, library
from .collectives import Collectives
from .meeting import Meeting
from .options import Options
from .peers import Channel
from .tensors import BYTES, memory_of, table_of
from .work import Work, error_of, named, profiled

PREFIX = "ddprun_"
_MANY = 100  # works in flight; above this, release those that have ended

_groups = weakref.WeakSet()
_is_traced = True  # if torch.compile is loaded; importing it takes seconds
_plugins = {}  # by the name of the backend in Torch


def register():
    """Registers a backend of torch.distributed for each communication plugin in the search path."""
    for name in library.backends():
        if name == "c10d":  # calls torch.distributed itself
            continue
        torch_name = PREFIX + name.replace("-", "_")
        _plugins[torch_name] = name
        make = functools.partial(_make, name, torch_name)
        # A plugin is loaded when it is first used. Whether it supports the device is checked then.
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
    callbacks.finish(1)
    library.finish()


def _capabilities_of(plugin):
    try:
        return library.capabilities(plugin)
    except library.Failure as failure:
        raise error_of(failure) from None


def _stay_out_of_compilers():
    """Compiled models call this package too. torch.compile must not trace these calls."""
    global _is_traced
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None and hasattr(rules, "add"):
        rules.add(__package__)
        _is_traced = False


def _abort_all():
    for group in list(_groups):
        group.abort()


class ProcessGroup(Collectives, dist.ProcessGroup):
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
        self._inflight = {}  # keeps the buffers of works in flight alive
        interrupts.watch(_abort_all)
        self._capabilities = _capabilities_of(plugin)
        kinds = {"cpu": library.CAP_HOST, "cuda": library.CAP_CUDA}
        self._devices = [device for device, needed in kinds.items() if self._capabilities & needed]
        _groups.add(self)
        if self._capabilities & library.CAP_HOST:
            self._handle(library.HOST)

    # Properties that torch.distributed reads.
    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def name(self):
        return self._torch_name

    getRank, getSize, getBackendName = rank, size, name

    # A group in Python has no backend in C++ to store these two.
    def setGroupName(self, name):
        self._group_name = name

    def getGroupName(self):
        return self._group_name

    def setGroupDesc(self, text):
        self._group_desc = text

    def getGroupDesc(self):
        return self._group_desc

    # PyTorch asks the group for its backend on a device, and then asks that backend what it supports.
    supports_coalescing = supports_splitting = supports_shrinking = supports_tensor_alloc = False

    @property
    def _device_types(self):
        # While PyTorch 2.15 makes a group, it reads this to attach a recorder, which needs a backend in C++.
        if self not in dist.distributed_c10d._world.pg_map:
            return []
        return [torch.device(device) for device in self._devices]

    def _get_backend(self, device):
        if torch.device(device).type not in self._devices:
            raise RuntimeError(f"{self._torch_name}: no backend for {device}: expected {' or '.join(self._devices)}")
        return self

    get_backend = _get_backend

    def _start_coalescing(self, device):
        raise NotImplementedError(f"{self._torch_name}: coalescing of different calls is not supported: use the "
                                  "..._coalesced functions")

    _end_coalescing = start_coalescing = end_coalescing = _start_coalescing

    def set_timeout(self, timeout):
        raise NotImplementedError(f"{self._torch_name}: the timeout of a group stays: give it to init_process_group or "
                                  "new_group")

    _add_ephemeral_timeout = set_timeout

    def _handle(self, memory):
        handle = self._handles.get(memory)
        if handle is None:
            handle = self._handles[memory] = self._join(memory)
        return handle

    def _join(self, memory):
        device = torch.cuda.current_device() if memory == library.CUDA else -1
        return self._meeting.join(self._plugin_for(memory), self._options, device)

    def _plugin_for(self, memory):
        """The plugin for this kind of memory. With "cpu:ddprun_shm,cuda:ddprun_nccl" there are two. PyTorch uses one
        group in Python for all devices, and stores the requested backends in pg_backend_config."""
        device, needed = ("cuda", library.CAP_CUDA) if memory == library.CUDA else ("cpu", library.CAP_HOST)
        if self._capabilities & needed:
            return self._plugin
        asked = dist.distributed_c10d._world.pg_backend_config.get(self, "")
        by_device = dict(entry.split(":") for entry in asked.split(",") if ":" in entry)
        plugin = _plugins.get(by_device.get(device))
        if plugin is None or not _capabilities_of(plugin) & needed:
            raise dist.DistBackendError(
                f"{self._torch_name}: rank {self._rank}: this group ({asked or self._torch_name}) has no backend of "
                f"ddprun for {device}: move the tensor, or name one for each device: "
                "\"cpu:ddprun_shm,cuda:ddprun_nccl\"")
        return plugin

    def _started(self, name, start, memory, used, results, finish=None):
        if _is_traced:
            _stay_out_of_compilers()
        try:
            handle = self._handle(memory)
            if memory == library.CUDA and not self._capabilities & library.CAP_STREAM_ORDERED:
                torch.cuda.current_stream().synchronize()  # such a plugin reads the tensors immediately
            with profiled(f"{self._torch_name}:{name}"):
                work = Work(start(handle), results, finish, self._forget)
        except library.Failure as failure:
            raise error_of(failure) from None
        if len(self._inflight) >= _MANY:  # the program may never wait for them
            for earlier, _ in list(self._inflight.values()):
                earlier.is_completed()
        self._inflight[id(work)] = (work, used)
        return work

    def _forget(self, work):
        self._inflight.pop(id(work), None)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """As torch.distributed.monitored_barrier, only for "gloo" before PyTorch 2.15. `timeout`: a timedelta."""
        self._meeting.monitored_barrier(self._timeout if timeout is None else timeout, wait_all_ranks)

    def send(self, tensors, peer, tag=0):
        return self._to_peer(tensors, self._rank, peer, tag)

    def recv(self, tensors, peer, tag=0):
        return self._to_peer(tensors, peer, self._rank, tag)

    def recv_anysource(self, tensors, tag=0):
        raise NotImplementedError(f"{self._torch_name}: rank {self._rank}: recv() without a source is not supported: name "
                                  "the rank")

    @named
    def _to_peer(self, tensors, sender, receiver, tag):
        tensor = tensors[0]
        if memory_of(tensor) != library.HOST:
            raise ValueError(f"send and recv of a tensor on {tensor.device}: expected one on cpu")
        key = (sender, receiver, tag)
        is_sender = sender == self._rank
        if key not in self._channels:
            self._channels[key] = Channel(
                self._plugin, self._options, dist.PrefixStore("/".join(map(str, key)), self._store),
                f"{self._who}: send from rank {sender} to rank {receiver}", self._timeout, is_sender,
                receiver if is_sender else sender)
        table = table_of([(None, tensor, tensor.nbytes, BYTES, 0, 0)], library.HOST)
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
        """Writes the last 512 collectives of this rank to collectives-rank<N>.json in `folder`, which must exist."""
        for handle in self._handles.values():
            library.write_collectives(handle, os.fspath(folder), reason)
