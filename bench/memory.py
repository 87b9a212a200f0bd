#!/usr/bin/env python3
"""Compares peak memory and time of a ResNet-18 rank: ddprun and PyTorch DDP, in alternating runs.

    python3 bench/memory.py --program build/release/bin/ddprun --python PYTHON

PYTHON is a Python with torch and torchvision; this script itself needs only the standard library.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

from running import Failed
from systems import pytorch_ddp, train

WARM = 5  # steps that are not measured

CONFIG = """
[launch]
nproc = {ranks}
threads = {threads}
[strategy]
kind = "ddp"
[model]
name = "resnet18"
options = {{ memory_format = "{memory_format}" }}
[data]
name = "synthetic"
batch_size = {batch}
batch_per = "rank"
options = {{ shape = "3x{extent}x{extent}", classes = 10, samples = {samples} }}
[optimizer]
name = "sgd"
lr = 0.01
momentum = 0.9
[train]
steps = {steps}
evaluate = false
"""


def ddprun(args, folder):
    config = CONFIG.format(**vars(args), samples=args.batch * args.ranks * args.steps)
    summary, steps = train(args.program, config, folder, args.limit)
    return {"peak": summary["peak_memory_bytes"],
            "step": statistics.median(step["total"] for step in steps[WARM:])}


def pytorch(args, _):
    return pytorch_ddp(args.python, args.ranks, args.limit, job="resnet18", extent=args.extent, batch=args.batch,
                       steps=args.steps, warm=WARM, threads=args.threads)


def cell(values, unit):
    values = sorted(value / unit for value in values)
    return f"{statistics.median(values):10.1f} ({values[0]:.1f} .. {values[-1]:.1f})"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built ddprun")
    parser.add_argument("--python", required=True, help="a Python with torch and torchvision")
    parser.add_argument("--extent", type=int, default=224, metavar="N", help="the size of the images, 3 x N x N (224)")
    parser.add_argument("--batch", type=int, default=8, metavar="N", help="the samples per rank (8)")
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="the number of ranks (2)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="the compute threads of a rank (1)")
    parser.add_argument("--steps", type=int, default=20, metavar="N",
                        help=f"the steps of a run; the first {WARM} are not measured (20)")
    parser.add_argument("--repetitions", type=int, default=5, metavar="N", help="the runs of each system (5)")
    parser.add_argument("--memory-format", choices=["contiguous", "channels_last"], default="contiguous",
                        help="the memory format of ddprun's model (contiguous)")
    parser.add_argument("--gate", action="store_true", help="exit with 6 if ddprun's peak is above PyTorch DDP's")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="the time limit of one run (600)")
    args = parser.parse_args()
    if args.steps <= WARM or args.repetitions < 1:
        parser.error(f"--steps must be more than {WARM}, --repetitions at least 1")
    return args


def main():
    args = arguments()
    systems = {"ddprun": ddprun, "PyTorch DDP": pytorch}
    figures = {name: [] for name in systems}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(args.repetitions):
            for name, measure in systems.items():
                try:
                    figures[name].append(measure(args, pathlib.Path(folder)))
                except Failed as error:
                    print(f"memory.py: {error}", file=sys.stderr)
                    sys.exit(error.code)
                print(f"{turn + 1}/{args.repetitions} {name}", file=sys.stderr)
    print(f"ResNet-18, {args.extent}x{args.extent}, {args.ranks} ranks x {args.batch} samples, {args.threads} threads, "
          f"{args.repetitions} rounds: median (minimum .. maximum)")
    columns = [("peak", "peak MiB of a rank", 2**20), ("step", "ms per step", 1e-3)]
    print(f"{'':12}" + "".join(f"{title:>32}" for _, title, _ in columns))
    for name, runs in figures.items():
        print(f"{name:12}" + "".join(f"{cell([r[key] for r in runs], unit):>32}" for key, _, unit in columns))
    ratios = [statistics.median(a[key] for a in figures["ddprun"]) / statistics.median(b[key] for b in
              figures["PyTorch DDP"]) for key, _, _ in columns]
    print(f"{'ratio':12}" + "".join(f"{ratio:>32.3f}" for ratio in ratios))
    if args.gate and ratios[0] > 1:
        print(f"memory.py: gate: ddprun's peak is {ratios[0]:.3f} times PyTorch DDP's", file=sys.stderr)
        sys.exit(6)


main()
