"""What tests/gpu/run holds a build to on a machine with GPUs. Prints one table; ends with 0 when all is as wanted, else 1.

Usage: checks.py --build FOLDER --gpus N [--only NAME,...] [--models NAME,...] [--ucx] [--quick] [--json FILE].
tests/gpu/run starts it.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from machine import LIMIT, Machine, ROOT, Result
import running
from running import Failed, run
from speeds import busbw, speed
from systems import train

PICTURES = 'name = "synthetic"\noptions = {{ shape = "{}", classes = 10, samples = {}, test_samples = {} }}'
# The data of each. ResNet-18 has one batch, which it learns by heart.
MODELS = {"linear": 'name = "linear"', "simplenet": PICTURES.format("1x28x28", 1024, 256),
          "resnet18": PICTURES.format("3x32x32", 64, 64)}
# Of a loss, relative to one process on the CPU in float32: other kernels and orders of summation; half precision.
FULL, HALF = 0.01, 0.05
BY_HEART = 0.5  # at most, of the training loss of ResNet-18, which begins at 2.6


# Milliseconds of a collective that should time out: NCCL takes a second to begin in a process that shares a GPU.
FAULT_DEADLINE = 5000


FAULTS = (Failed, OSError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired)


def failure(name, fault):
    """Prints the whole text of `fault`, and returns its Result."""
    print(f"tests/gpu/run: {name}: {fault}", file=sys.stderr)
    return Result(name, str(fault).splitlines()[0], False)


def tried(name, work):
    """The Result of what work() returns: its text, whether it is good, and figures. If it fails, the results after it are
    still found."""
    try:
        return Result(name, *work())
    except FAULTS as fault:
        return failure(name, fault)


def suite(machine, plugin, always=(), on_one=()):
    """The conformance suite, all of it but on three ranks that share a GPU, where it would take long and show little more.
    A skip (77) is a failure here."""
    on_one = ["--as", "processes", "--device", "0", *on_one]
    jobs = {"one rank": ["--ranks", "1", *on_one], "2 ranks on one GPU": ["--ranks", "2", *on_one],
            "3 ranks on one GPU, float32": ["--ranks", "3", "--filter", "float32", *on_one]}
    if machine.gpus > 1:
        every = ",".join(str(size) for size in sorted({2, machine.gpus}))
        jobs[f"{machine.gpus} GPUs"] = ["--ranks", every]
    for name, arguments in jobs.items():
        if machine.quick and "--filter" not in arguments:
            arguments = arguments + ["--filter", "float32"]
        command = [machine.program("ddprun-conformance"), "--plugin", plugin, "--plugin-path",
                   machine.build / "lib" / "ddprun" / "v1", "--fault-deadline", FAULT_DEADLINE, *always, *arguments]
        yield tried(f"conformance of {plugin}, {name}", lambda: (run(command, LIMIT).strip().splitlines()[-1], True))


def conformance(machine):
    yield from suite(machine, "nccl", on_one=["--option", "share_gpu=true"])


CONFIG = """
experiment.seed = 1
launch.device = "{device}"
launch.nproc = {nproc}
launch.devices = {devices}
{more}
strategy.kind = "{kind}"
model.name = "{model}"
optimizer.name = "sgd"
optimizer.lr = 0.01
optimizer.momentum = 0.9
train.steps = {steps}
[data]
{data}
batch_size = 64
shuffle = false
"""


@dataclasses.dataclass
class Strategy:
    name: str
    kind: str
    nproc: int
    more: str  # lines of the config
    tolerance: float = FULL
    models: list = dataclasses.field(default_factory=lambda: list(MODELS))
    served: str = ""  # the algorithm that NCCL must report for each allreduce; "": any


def strategies(machine):
    nccl = 'comm.backend = "nccl"' + ("\ncomm.options.share_gpu = true" if machine.shares else "")
    gloo = 'comm.backend = "gloo"\ncomm.stage_through_host = true'
    # The gradients of linear overflow in float16 at the first scales, so that it skips steps which the CPU takes.
    half = [model for model in MODELS if model != "linear"]
    return [
        Strategy("single", "single", 1, ""),
        Strategy("single, bf16", "single", 1, 'train.amp = "bf16"', HALF),
        Strategy("single, fp16", "single", 1, 'train.amp = "fp16"', HALF, half),
        Strategy("dp", "dp", 1, f"strategy.devices = {machine.ranks}"),
        Strategy("ddp, nccl", "ddp", machine.ranks, nccl),
        Strategy("ddp, nccl, bf16", "ddp", machine.ranks, nccl + '\ntrain.amp = "bf16"', HALF),
        *(Strategy(f"ddp, nccl, {name}", "ddp", machine.ranks, f'{nccl}\ncomm.algorithm = "{name}"\n'
                   'comm.options.debug = "info"\ncomm.options.debug_subsys = "TUNING"\n'
                   f'comm.options.debug_file = "{machine.folder}/nccl-{name}.%p"', served=name)
          for name in ["ring", "tree"]),
        Strategy("ddp, gloo through the host", "ddp", machine.ranks, gloo),
    ]


def is_served_by(machine, name):
    """Whether NCCL reports for each allreduce that this algorithm served it."""
    text = "".join(path.read_text() for path in machine.folder.glob(f"nccl-{name}.*"))
    return set(re.findall(r"AllReduce: .* -> Algo (\w+)", text)) == {name.upper()}


def losses_of(machine, model, device, kind, nproc, more):
    """The training loss, of all ranks, and the test loss."""
    devices = [] if device == "cpu" else [0] if kind == "single" else machine.devices
    config = CONFIG.format(device=device, nproc=nproc, devices=devices, more=more, kind=kind, model=model,
                           steps=10 if machine.quick or model == "resnet18" else 50, data=MODELS[model])
    summary, _ = train(machine.program("ddprun"), config, machine.folder, LIMIT)
    return summary["train.loss"], summary["test.loss"]


def is_near(model, losses, wanted, tolerance):
    """ResNet-18 makes much of every rounding, and its replicas normalise over their own part of a batch: each run of it is
    another training, which comes to the same end. Parity has its numbers."""
    if model == "resnet18":
        return losses[0] <= BY_HEART and math.isfinite(losses[1])
    return all(abs(loss - cpu) <= tolerance * cpu for loss, cpu in zip(losses, wanted))


def text_of(losses):
    return " / ".join(f"{loss:.4g}" for loss in losses)


def beside_the_cpu(machine, chosen):
    """Every model under these strategies on the same batches: its losses are those of one process on the CPU."""
    wanted = {model: losses_of(machine, model, "cpu", "single", 1, "") for model in machine.models}
    for how in chosen:
        def work():
            losses = {model: losses_of(machine, model, "cuda", how.kind, how.nproc, how.more)
                      for model in how.models if model in machine.models}
            text = ", ".join(f"{model} {text_of(each)} (CPU {text_of(wanted[model])})" for model, each in losses.items())
            good = all(is_near(model, each, wanted[model], how.tolerance) for model, each in losses.items())
            good = good and (not how.served or is_served_by(machine, how.served))
            return text, good, {"losses": losses, "cpu": wanted}
        yield tried(f"training, {how.name}", work)


def training(machine):
    yield from beside_the_cpu(machine, strategies(machine))


def ucx(machine):
    """The backend that moves a GPU's memory itself, and adds by a kernel of its own."""
    yield from suite(machine, "ucx", always=["--memory", "cuda"])
    yield from beside_the_cpu(machine, [Strategy("ddp, ucx", "ddp", machine.ranks, 'comm.backend = "ucx"')])


def library(machine):
    """DistributedDataParallel and what belongs to it, in a program of its own: on GPUs over NCCL and on the CPU."""
    devices = ",".join(map(str, machine.devices))
    out = run([machine.program("ddprun"), "launch", "--nproc-per-node", machine.ranks, machine.program("gpu_program"),
               "nccl", devices, *(["share_gpu=true"] if machine.shares else [])], LIMIT)
    lines = out.strip().splitlines()
    good = sum(line.endswith(": ok") for line in lines)
    yield Result("library", f"{good} cases as on the CPU", True, {"table": lines})


def parity(machine):
    """Losses and weights beside PyTorch's, single and DDP over NCCL."""
    out = run([sys.executable, ROOT / "tests" / "parity" / "ddp_parity.py", "--program", machine.program("ddprun"),
               "--dump", machine.program("dataset_dump"), "--data", machine.folder, "--gpus", machine.gpus, "gpu"], LIMIT)
    lines = out.strip().splitlines()
    yield Result("parity with PyTorch", f"{len(lines) - 1} cases as PyTorch has them", True, {"table": lines})


CHECKS = {check.__name__: check for check in (conformance, training, library, parity, speed, busbw, ucx)}
ALWAYS = [name for name in CHECKS if name != "ucx"]  # which wants a library that is not everywhere


def results_of(check, machine):
    """As they come. A check that fails is a result; what it had found before stays."""
    try:
        yield from check(machine)
    except FAULTS as fault:
        yield failure(check.__name__, fault)


def collected(results, name, path):
    """The list of them. Each is printed and stored immediately, for whoever ends this early."""
    listed = []
    for result in results:
        print(f"tests/gpu/run: {result.line()}", file=sys.stderr, flush=True)
        listed.append(result)
        if path:
            document = {"ddprun_gpu": 1, "machine": name, "results": [dataclasses.asdict(each) for each in listed]}
            path.with_name(path.name + ".new").write_text(json.dumps(document, indent=1))
            path.with_name(path.name + ".new").replace(path)
    return listed


def table(results):
    width = max(len(result.name) for result in results)
    lines = [result.line(width) for result in results]
    bad = sum(not result.good for result in results)
    return "\n".join([*lines, f"{len(results) - bad} ok, {bad} failed"])


def arguments(argv):
    parser = argparse.ArgumentParser(prog="tests/gpu/run", add_help=False, usage=argparse.SUPPRESS)
    parser.add_argument("--check-arguments", action="store_true")
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--ucx", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args(argv)
    args.only = args.only.split(",") if args.only is not None else ALWAYS + ["ucx"] * args.ucx
    if unknown := [name for name in args.only if name not in CHECKS]:
        parser.error(f"--only {','.join(unknown)}: expected some of {','.join(CHECKS)}")
    args.models = args.models.split(",")
    if unknown := [name for name in args.models if name not in MODELS]:
        parser.error(f"--models {','.join(unknown)}: expected some of {','.join(MODELS)}")
    if "ucx" in args.only and not args.ucx:
        parser.error("--only ucx: name UCX's folder with --ucx")
    if args.json and not args.json.resolve().parent.is_dir():
        parser.error(f"--json {args.json}: no folder {args.json.resolve().parent}")
    return args


def machine_name():
    """The GPUs and their driver."""
    try:
        listed = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], LIMIT)
    except Failed as fault:
        return str(fault).splitlines()[0]
    return "; ".join(listed.strip().splitlines())


def main(argv):
    args = arguments(argv)
    if args.check_arguments:
        return 0
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that programs are ended
    running.logs = args.build / "logs"
    name = machine_name()
    with tempfile.TemporaryDirectory(prefix="ddprun-gpu-") as folder:
        machine = Machine(args.build, args.gpus, args.quick, pathlib.Path(folder), args.models)
        found = (result for check in args.only for result in results_of(CHECKS[check], machine))
        results = collected(found, name, args.json)
    print(f"{os.uname().nodename}: {name}\n{table(results)}")
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
