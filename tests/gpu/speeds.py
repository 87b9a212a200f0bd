"""The checks that time: training against PyTorch, allreduce against the loop of nccl-tests."""

import json
import math
import statistics
import sys
import tempfile

from machine import HERE, LIMIT, Result
from comparison import ratio_of
from running import run, run_together
from systems import train

SPEED_WANTED = 1.1  # times PyTorch's images per second
BUSBW_WANTED = 0.98  # times that of the loop


SPEED = """
experiment.seed = 1
launch.device = "cuda"
strategy.kind = "single"
model.name = "resnet18"
optimizer.name = "sgd"
optimizer.lr = 0.01
optimizer.momentum = 0.9
train.steps = {steps}
train.evaluate = false
train.amp = "bf16"
train.channels_last = true
[data]
name = "synthetic"
options = {{ shape = "3x224x224", classes = 10, samples = {samples} }}
batch_size = {batch}
workers = "auto"
"""


def speed(machine):
    """ResNet-18 at 224 x 224 on one GPU, by turns with PyTorch eager."""
    batch, warm, steps, rounds = (32, 5, 10, 1) if machine.quick else (256, 20, 100, 5)
    config = SPEED.format(batch=batch, samples=batch * (warm + steps), steps=warm + steps)
    ours, theirs = [], []
    for _ in range(rounds):
        peer = run([sys.executable, HERE / "pytorch_speed.py", batch, warm, steps], LIMIT)
        theirs.append(json.loads(peer.strip().splitlines()[-1])["images_per_second"])
        _, rows = train(machine.program("ddprun"), config, machine.folder, LIMIT)
        ours.append(batch * steps / sum(row["total"] for row in rows[warm:]))
    ratio = ratio_of(ours, theirs)
    text = (f"ResNet-18 224, bf16, channels_last, batch {batch}: {statistics.median(ours):.0f} images/s, PyTorch "
            f"{statistics.median(theirs):.0f}, ratio {ratio:.2f} (wanted {SPEED_WANTED})")
    yield Result("speed, single", text, machine.quick or ratio >= SPEED_WANTED, {"ddprun": ours, "pytorch": theirs})


LOOP_CALLS = 20  # of nccl_loop, and of ddprun bench on a GPU, in a sample


def slowest(outputs):
    """Seconds of one call at each size, from what each rank of nccl_loop prints: a sample is the time from when the last
    rank had ended the one before to when the last rank has ended this one, as ddprun bench has it."""
    ranks = [[list(map(float, line.split()[1:])) for line in out.splitlines()] for out in outputs]
    ends = [list(map(max, zip(*stamps, strict=True))) for stamps in zip(*ranks, strict=True)]
    return [statistics.median(b - a for a, b in zip(at, at[1:])) / LOOP_CALLS for at in ends]


def loop(machine, sizes, samples):
    """Seconds of one call at each size, by nccl_loop's ranks."""
    with tempfile.TemporaryDirectory() as folder:
        commands = []
        for rank, device in enumerate(machine.devices):
            variables = ["NCCL_SOCKET_IFNAME==lo"] + ([f"NCCL_HOSTID=ddprun-rank-{rank}"] if machine.shares else [])
            commands.append(["env", *variables, machine.program("nccl_loop"), rank, machine.ranks, device,
                             f"{folder}/id", samples, *sizes])
        return slowest(run_together(commands, LIMIT))


def bench(machine, sizes, samples):
    """The same by ddprun bench."""
    path = machine.folder / "bench.json"
    argv = [machine.program("ddprun"), "bench", "--device", "cuda", "--backend", "nccl", "--ranks", machine.ranks,
            "--devices", ",".join(map(str, machine.devices)), "--sizes", ",".join(map(str, sizes)), "--rounds", 1,
            "-n", samples, "--json", path]
    run(argv + (["--option", "share_gpu=true"] if machine.shares else []), LIMIT)
    rows = [row for row in json.loads(path.read_text())["rows"] if row["in_place"] and row["buffer"] == "cuda"]
    return [row["median"] for row in sorted(rows, key=lambda row: row["size"])]


def interval_of(values):
    """Where the median of what these are samples of lies with a probability of 0.95, or as near to that as so few can say:
    the narrowest order statistics that the sign test allows (https://en.wikipedia.org/wiki/Sign_test)."""
    ordered = sorted(values)
    cut = 0
    while 2 * sum(math.comb(len(ordered), below) for below in range(cut + 2)) <= 0.05 * 2 ** len(ordered):
        cut += 1
    return ordered[cut], ordered[-1 - cut]


def busbw(machine):
    """allreduce in place, by turns with the loop; the largest size is judged. It is below what is wanted only where the
    whole interval is: several processes on one GPU vary by a tenth."""
    sizes = [1 << 20, 4 << 20] if machine.quick else [1 << 20, 16 << 20, (64 if machine.shares else 256) << 20]
    samples, turns = (1, 1) if machine.quick else (3, 9)
    rounds = [(bench(machine, sizes, samples), loop(machine, sizes, samples)) for _ in range(turns)]
    factor = 2 * (machine.ranks - 1) / machine.ranks
    for at, size in enumerate(sizes):
        ours, theirs = [mine[at] for mine, _ in rounds], [other[at] for _, other in rounds]
        low, high = interval_of(other / mine for mine, other in zip(ours, theirs))
        rates = [size * factor / statistics.median(seconds) * 1e-9 for seconds in (ours, theirs)]
        text = (f"{machine.where()}: {rates[0]:.2f} GB/s, the loop of nccl-tests {rates[1]:.2f}, "
                f"ratio {ratio_of(theirs, ours):.3f}, {low:.3f} to {high:.3f}")
        judged = size == sizes[-1] and not machine.quick
        yield Result(f"busbw, {size >> 20} MiB", text + (f" (wanted {BUSBW_WANTED})" if judged else ""),
                     not judged or high >= BUSBW_WANTED, {"ddprun": ours, "loop": theirs})
