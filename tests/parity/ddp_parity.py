"""Trains each case of a group with ddprun and with PyTorch's DistributedDataParallel, and compares all they computed.

Usage: ddp_parity.py --program DDPRUN --dump DATASET_DUMP --data FOLDER [--gpus N] GROUP. Prints a line for each case. Ends with 0
when all are within their tolerances, 1 when one is not, 77 when this group cannot run here.
"""

import argparse
import ctypes
import dataclasses
import importlib.util
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from cases import GROUPS

ADVICE = "set DDPRUN_PYTHON to a Python with torch, torchvision, numpy and safetensors"
try:
    from comparison import Mismatch, compare, torch_of
except ImportError as missing:
    print(f"skipped: {sys.executable}: {missing}; {ADVICE}")
    sys.exit(77)

HERE = pathlib.Path(__file__).parent
PATIENCE = 240  # seconds, of a run or of the ranks in PyTorch
PR_SET_PDEATHSIG = 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def why_not(group, data, gpus):
    """Why a group cannot run here, or None."""
    for module in ["torch"] + (["torchvision"] if group in ("resnet18", "gpu") else []):
        if importlib.util.find_spec(module) is None:
            return f"{sys.executable} has no {module}; {ADVICE}"
    if group == "mnist" and not (data / "mnist" / "train-images-idx3-ubyte.gz").exists():
        return f"no mnist/*.gz in {data}; set DDPRUN_TEST_DATA to a folder that has them"
    if group == "gpu" and gpus == 0:
        return "no GPU was named with --gpus"
    return None


def on_gpus(case, gpus):
    """Keys that put the ranks of a case for GPUs on those that there are; several on one where they are too few."""
    if "launch.device" not in case.config:
        return {}
    devices = {"launch.devices": [rank % gpus for rank in range(case.ranks)]}
    return devices | ({"comm.options.share_gpu": True} if case.ranks > gpus else {})


def placed(cases, data, gpus):
    """The cases, with the folder of the files where their data set is read from some, and with their GPUs."""
    for case in cases:
        root = {"data.root": str(data / "mnist")} if case.config["data.name"] == "mnist" else {}
        yield dataclasses.replace(case, config={**case.config, **root, **on_gpus(case, gpus)})


def start(argv, folder):
    environment = {**os.environ, "TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder), "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            preexec_fn=die_with_parent)


def finish(process):
    """Its output. Throws when it fails or takes too long; it never survives this."""
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, process.args))} ended with {process.returncode}:\n{output}")
    return output


def dump_data(dump, case, folder):
    """A file with the samples of the case, shared by cases with the same; None for data that Python reads itself."""
    config = case.config
    options = [f"{key.removeprefix('data.options.')}={value}" for key, value in config.items()
               if key.startswith("data.options.")]
    if not options:
        return None
    path = folder / ("-".join([config["data.name"], *options]) + ".safetensors")
    if not path.exists():
        finish(start([dump, config["data.name"], str(config["experiment.seed"]), path, *options], folder))
    return str(path)


def run_ddprun(program, case, folder):
    """Trains the case; returns its run folder."""
    output = folder / f"runs-{case.name}-{case.ranks}"
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in case.config.items())
    config = folder / f"{case.name}-{case.ranks}.toml"
    config.write_text(text)
    finish(start([program, "--config", config, "--set", f"experiment.output={output}"], folder))
    (run,) = output.iterdir()
    return run


def run_pytorch(cases, world, data, folder):
    """Trains all cases on one set of ranks; returns what each rank reported, in order."""
    job = folder / f"job-{world}.json"
    listed = [{"name": case.name, "config": case.config, "data": data[case.name]} for case in cases]
    job.write_text(json.dumps({"world": world, "folder": str(folder), "cases": listed}))
    finish(start([sys.executable, HERE / "pytorch_ranks.py", job], folder))
    return [json.loads((folder / f"pytorch-{world}-rank{rank}.json").read_text()) for rank in range(world)]


HEADER = f"{'case':<28}ranks steps{'loss':>10}{'equal':>10}{'epoch':>10}{'test':>10}{'tensor':>10}{'equal':>9}"


def line(case, measured, verdict):
    losses, tensors = f"{measured.equal_losses}/{measured.losses}", f"{measured.equal_tensors}/{measured.tensors}"
    return (f"{case.name:<28}{case.ranks:>5}{measured.steps:>6}{measured.loss:>10.1e}{losses:>10}"
            f"{measured.epoch:>10.1e}{measured.test:>10.1e}{measured.tensor:>10.1e}{tensors:>9}  {verdict}")


def compared(case, run, pythons, folder):
    """What to print of a case, and whether it is as demanded."""
    same_torch = all(rank["torch"].split("+")[0] == torch_of(run).split("+")[0] for rank in pythons)
    try:
        measured = compare(case, run, [rank["cases"][case.name] for rank in pythons],
                           folder / f"{case.name}-{case.ranks}.safetensors")
    except Mismatch as mismatch:
        return f"{case.name:<28}{case.ranks:>5}  FAILED: {mismatch}", False
    fault = measured.fault(case, same_torch)
    return line(case, measured, f"FAILED: {fault}" if fault else "ok"), fault is None


def run_group(program, dump, cases, folder):
    print(HEADER)
    all_good = True
    for world, same in itertools.groupby(cases, lambda case: case.ranks):
        same = list(same)
        data = {case.name: dump_data(dump, case, folder) for case in same}
        pythons = run_pytorch(same, world, data, folder)
        for case in same:
            text, good = compared(case, run_ddprun(program, case, folder), pythons, folder)
            print(text, flush=True)
            all_good &= good
    return all_good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--dump", required=True, type=pathlib.Path)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("group", choices=GROUPS)
    arguments = parser.parse_args()
    reason = why_not(arguments.group, arguments.data, arguments.gpus)
    if reason:
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        cases = list(placed(GROUPS[arguments.group], arguments.data, arguments.gpus))
        return 0 if run_group(arguments.program, arguments.dump, cases, pathlib.Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
