"""What the ranks of test_c10d.py do. Run as a program, it is one rank of an interpreter of its own:
    steps.py NAME STORE RANK"""
import hashlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def same(tensor, expected):
    expected = torch.as_tensor(expected, dtype=tensor.dtype)
    assert torch.equal(tensor, expected), (tensor, expected)


def reductions(rank, count):
    total = sum(range(count))
    for dtype in (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bfloat16, torch.float16):
        tensor = torch.full((5,), rank, dtype=dtype)
        dist.all_reduce(tensor)
        same(tensor, [total] * 5)
    for op, expected in ((dist.ReduceOp.MAX, count - 1), (dist.ReduceOp.MIN, 0), (dist.ReduceOp.PRODUCT, 0),
                         (dist.ReduceOp.AVG, total / count)):
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor, op)
        same(tensor, [expected])
    for dtype in (torch.int8, torch.int64, torch.uint8):
        whole = torch.tensor([rank + 10, 3], dtype=dtype)
        dist.all_reduce(whole, dist.ReduceOp.AVG)
        same(whole, [10 + total // count, 3])
    signed = torch.tensor([-1 if rank == 0 else 0])
    dist.all_reduce(signed, dist.ReduceOp.AVG)
    same(signed, [0])  # towards 0, as NCCL does it
    flags = torch.tensor([rank == 0, False, True])
    dist.all_reduce(flags)
    same(flags, [True, False, True])
    both = torch.tensor([1 + 2j]) * rank
    dist.all_reduce(both)
    same(both, [total * (1 + 2j)])
    one = torch.tensor([float(rank)])
    dist.reduce(one, dst=1)
    same(one, [float(total if rank == 1 else rank)])


def moves(rank, count):
    tensor = torch.arange(4) * (rank + 1)
    dist.broadcast(tensor, src=1)
    same(tensor, [0, 2, 4, 6])
    whole = torch.empty(count * 2)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
    same(whole, [float(i) for i in range(count) for _ in range(2)])
    pieces = [torch.empty(i + 1) for i in range(count)]  # of different sizes
    dist.all_gather(pieces, torch.full((rank + 1,), float(rank)))
    for i, piece in enumerate(pieces):
        same(piece, [float(i)] * (i + 1))
    block = torch.empty(2)
    dist.reduce_scatter_tensor(block, torch.arange(2.0 * count))
    same(block, [count * 2.0 * rank, count * (2.0 * rank + 1)])
    objects = [None] * count
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": i} for i in range(count)], objects


def exchanges(rank, count):
    output = torch.empty(count)
    dist.all_to_all_single(output, torch.arange(float(count)) + 10 * rank)
    same(output, [10.0 * i + rank for i in range(count)])
    pieces = [torch.empty(i + 1) for i in range(count)]
    dist.all_to_all(pieces, [torch.full((rank + 1,), float(rank)) for _ in range(count)])
    for i, piece in enumerate(pieces):
        same(piece, [float(i)] * (i + 1))
    gathered = [torch.empty(2) for _ in range(count)] if rank == 1 else None
    dist.gather(torch.full((2,), float(rank)), gathered, dst=1)
    for i, piece in enumerate(gathered or []):
        same(piece, [float(i)] * 2)
    mine = torch.empty(3)
    dist.scatter(mine, [torch.full((3,), float(i)) for i in range(count)] if rank == 0 else None, src=0)
    same(mine, [float(rank)] * 3)
    # Both directions at once, and more than fits into the buffers of a connection.
    large, other = torch.full((500_000,), float(rank)), torch.empty(500_000)
    works = [dist.isend(large, (rank + 1) % count), dist.irecv(other, (rank - 1) % count)]
    for work in works:
        work.wait()
    same(other[-3:], [float((rank - 1) % count)] * 3)


def collectives(backend):
    def body(rank):
        rank.join(backend)
        reductions(rank.number, rank.count)
        moves(rank.number, rank.count)
        exchanges(rank.number, rank.count)
        tensor = torch.ones(3)
        work = dist.all_reduce(tensor, async_op=True)
        assert work.get_future().wait()[0] is tensor
        same(tensor, [float(rank.count)] * 3)
        dist.group.WORLD.monitored_barrier()
        dist.destroy_process_group()
        return "ok"

    return body


def groups(backend):
    def body(rank):
        for _ in range(2):  # destroy, and join again
            rank.join(backend)
            pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
            # Rank 1 is in both groups, which work at the same time.
            works = []
            for number, group in enumerate(pairs):
                if rank.number in (number, number + 1):
                    tensor = torch.full((1000,), float(rank.number))
                    works.append((dist.all_reduce(tensor, group=group, async_op=True), tensor, 2.0 * number + 1))
            for work, tensor, expected in works:
                work.wait()
                same(tensor, [expected] * 1000)
            dist.barrier()
            dist.destroy_process_group()
            rank.forget_port()
        return "ok"

    return body


def training(backend):
    """The digest of the weights after some steps of DDP, which is the same on all ranks."""
    def body(rank):
        rank.join(backend)
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 5))
        model = DistributedDataParallel(net, bucket_cap_mb=0.001)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        torch.manual_seed(1 + rank.number)
        for _ in range(10):
            optimizer.zero_grad()
            model(torch.randn(8, 20)).square().mean().backward()
            optimizer.step()
        dist.destroy_process_group()
        return hashlib.sha256(b"".join(weight.detach().numpy().tobytes() for weight in net.parameters())).hexdigest()

    return body


def callbacks(backend):
    """A Future's callbacks wait for a collective, whose callback waits for another one."""
    def body(rank):
        rank.join(backend)

        def sums(level):
            work = dist.all_reduce(torch.ones(3), async_op=True)
            if level == 0:
                return work.get_future().wait()[0]
            return work.get_future().then(lambda earlier: earlier.wait()[0] + sums(level - 1)).wait()

        same(sums(4), torch.full((3,), 10.0))

        first, last = (dist.all_reduce(torch.ones(1), async_op=True).get_future() for _ in range(2))
        same(first.then(lambda ended: ended.wait()[0] + last.wait()[0]).wait(), torch.full((1,), 4.0))

        received = torch.zeros(1)
        other = 1 - rank.number
        sent = dist.isend(torch.ones(1), other)
        both = dist.irecv(torch.zeros(1), other).get_future().then(lambda _: dist.irecv(received, other).wait())
        dist.send(torch.full((1,), 5.0), other)
        both.wait()
        sent.wait()
        same(received, torch.full((1,), 5.0))
        dist.barrier()
        return "ok"

    return body


def profiler(rank):
    """The profiler stops while a collective runs. An event that is open then, or that another thread ends, can end the
    process by a signal."""
    rank.join("ddprun_shm")
    if rank.number == 1:
        rank.wait_for_flag("stopped")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        work = dist.all_reduce(torch.ones(3), async_op=True)
    rank.set_flag("stopped")
    work.wait()
    events = [event for event in profile.events() if event.name == "ddprun_shm:all_reduce"]
    assert [event.is_async for event in events] == [False], events
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    for _ in range(100):  # backward() waits in C++
        loss = model(torch.ones(2, 4)).sum()
        with torch.autograd.profiler.profile(record_shapes=True):
            loss.backward()
    return "ok"


def dense(*shape):
    return torch.ones(*shape)


# (exception, words in its text, call)
WRONG = [
    (ValueError, ["sparse"], lambda: dist.all_reduce(torch.eye(3).to_sparse())),
    (ValueError, ["not contiguous"], lambda: dist.all_reduce(dense(4, 4)[:, 1])),
    (ValueError, ["BAND"], lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), dist.ReduceOp.BAND)),
    (TypeError, ["torch.uint16"], lambda: dist.all_reduce(torch.ones(3).to(torch.uint16))),
    (ValueError, ["meta"], lambda: dist.all_reduce(torch.ones(3, device="meta"))),
    (ValueError, ["3 elements"], lambda: dist.all_gather_into_tensor(dense(3), dense(2))),
    (ValueError, ["reduce_scatter", "elements"], lambda: dist.reduce_scatter_tensor(dense(2), dense(5))),
    (ValueError, ["rows"], lambda: dist.all_to_all_single(dense(4), dense(4), [1, 1], [2, 2])),
    (NotImplementedError, ["name the rank"], lambda: dist.recv(dense(3))),
    (dist.DistBackendError, ["root"], lambda: dist.group.WORLD.broadcast([dense(3)], _root(7)).wait()),
]


def _root(number):
    options = dist.BroadcastOptions()
    options.rootRank = number
    return options


class _Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor(float(index))


def forked_workers(rank):
    """The workers of a DataLoader are forks of a rank: their end changes nothing in its group."""
    rank.join("ddprun_shm")
    dist.all_reduce(torch.ones(3))
    loader = torch.utils.data.DataLoader(_Numbers(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    assert sum(batch.sum().item() for batch in loader) == 28
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    same(tensor, [float(rank.count)] * 3)
    return "ok"


def exit_without_destroy(rank):
    dist.all_reduce(torch.ones(3))
    DistributedDataParallel(torch.nn.Linear(2, 2))(torch.ones(1, 2)).sum().backward()
    dist.barrier()


def exit_in_flight(rank):
    """Rank 0 leaves while its collective waits for rank 1, which never calls it."""
    if rank == 0:
        dist.all_reduce(torch.ones(3), async_op=True).get_future()
    else:
        time.sleep(2)


if __name__ == "__main__":
    import ddprun  # noqa: F401: registers the backends

    name, store, number = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("ddprun_shm", init_method=f"file://{store}", rank=int(number), world_size=2)
    globals()[name](int(number))
    print("ready", flush=True)
