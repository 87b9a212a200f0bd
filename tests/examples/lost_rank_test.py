#!/usr/bin/env python3
"""lost_rank_test.py LIBRARY: a rank is killed while three others wait in an allreduce and one computes. Each of the
others names the killed rank, also without the help of the one that computes. Calls the C table of the plugin."""
import ctypes as c
import multiprocessing
import sys

RANKS, COMPUTES, COUNT, PEER_LOST, PATIENCE = 5, 1, 100_000, 4, 30
Gather = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_uint64, c.c_void_p)


def struct(kind, /, **fields):
    return type(kind, (c.Structure,), {"_fields_": [("struct_size", c.c_uint32), *fields.items()]})


# The structs of ddprun/plugin/comm_plugin.h
Host = struct("Host", rank=c.c_int32, size=c.c_int32, device=c.c_int32, deadline_ms=c.c_uint32,
              deterministic=c.c_int32, algorithm=c.c_char_p, options=c.c_void_p, option_count=c.c_uint32,
              error_size=c.c_uint32, error=c.c_char_p, context=c.c_void_p, abort_flag=c.POINTER(c.c_int32),
              log=c.c_void_p, allgather=Gather, address=c.c_char_p)
Collective = struct("Collective", dtype=c.c_int32, op=c.c_int32, root=c.c_int32, memory=c.c_int32, reserved=c.c_int32,
                    send=c.c_void_p, recv=c.c_void_p, count=c.c_uint64, stream=c.c_void_p)
Start = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(Collective), c.POINTER(c.c_void_p))
Plugin = struct("Plugin", abi=c.c_uint32, name=c.c_char_p, version=c.c_char_p, library=c.c_char_p,
                capabilities=c.c_uint64, algorithms=c.c_void_p, algorithm_count=c.c_uint32, reserved=c.c_uint32,
                create=c.CFUNCTYPE(c.c_int32, c.POINTER(Host), c.POINTER(c.c_void_p)), destroy=c.c_void_p,
                allreduce=Start, broadcast=c.c_void_p, allgather=c.c_void_p, barrier=c.c_void_p,
                wait=c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_uint32, c.c_void_p), abort=c.c_void_p,
                last_error=c.CFUNCTYPE(c.c_char_p, c.c_void_p))


def run_rank(path, rank, parent):
    table = Plugin.in_dll(c.CDLL(path), "ddprun_comm_plugin_v1")

    @Gather
    def gather(_, send, size, recv):
        parent.send(c.string_at(send, size))
        c.memmove(recv, b"".join(parent.recv()), size * RANKS)
        return 0

    error, flag, comm = c.create_string_buffer(500), c.c_int32(0), c.c_void_p()
    host = Host(c.sizeof(Host), rank, RANKS, -1, 1000 * PATIENCE, 0, b"auto", None, 0, 500, c.cast(error, c.c_char_p),
                None, c.pointer(flag), None, gather, b"")
    if table.create(host, c.byref(comm)) != 0:
        sys.exit(f"rank {rank}: create: {error.value.decode()}")
    data = (c.c_float * COUNT)()
    address = c.cast(data, c.c_void_p)

    def allreduce():
        call = Collective(c.sizeof(Collective), 2, 0, 0, 0, 0, address, address, COUNT, None)
        request = c.c_void_p()
        status = table.allreduce(comm, call, c.byref(request))
        return status if status != 0 else table.wait(comm, request, 1000 * PATIENCE, None)

    if allreduce() != 0:
        sys.exit(f"rank {rank}: allreduce: {table.last_error(comm).decode()}")
    parent.send("ready")
    parent.recv()
    parent.send((allreduce(), table.last_error(comm).decode()))
    parent.recv()  # keeps its communicator until the end


def received(connection, rank):
    if not connection.poll(PATIENCE + 10):
        sys.exit(f"rank {rank} does not answer")
    return connection.recv()


def check(path, killed):
    pipes = [multiprocessing.Pipe() for _ in range(RANKS)]
    ranks = [multiprocessing.Process(target=run_rank, args=(path, rank, pipes[rank][1]), daemon=True)
             for rank in range(RANKS)]
    for process in ranks:
        process.start()
    ours = [ours for ours, _ in pipes]
    try:
        while (all_of_them := [received(ours[rank], rank) for rank in range(RANKS)])[0] != "ready":
            for connection in ours:
                connection.send(all_of_them)
        waiting = [rank for rank in range(RANKS) if rank not in (killed, COMPUTES)]
        for rank in waiting:
            ours[rank].send("go")
        ranks[killed].kill()
        for rank in waiting + [COMPUTES]:
            if rank == COMPUTES:
                ours[rank].send("go")
            status, text = received(ours[rank], rank)
            if status != PEER_LOST or f"rank {killed} " not in text:
                sys.exit(f"rank {killed} was killed, but rank {rank} reports status {status}: {text}")
    finally:
        for process in ranks:
            process.kill()
            process.join()


for last_or_middle in (RANKS - 1, 2):
    check(sys.argv[1], last_or_middle)
