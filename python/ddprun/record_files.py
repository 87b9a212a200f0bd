"""Writes the run folder of a recorded PyTorch program, in the format of ddprun's own runs (docs/reports.md)."""
import ctypes
import hashlib
import json
import os
import platform
import re
import sys
import time

import torch

FLUSH = 1.0  # seconds; a killed program loses the steps of this time at most
SIGNS = 8
SUMS = ("data", "forward", "backward", "comm", "optimizer", "total", "samples")


class RunFiles:
    """The files of one rank. `about` describes the program: world (size), backend, model, bytes (of the gradients),
    half (it uses a 16-bit dtype), threads."""

    def __init__(self, folder, rank, about):
        self.folder, self.rank, self.about = folder, rank, about
        os.makedirs(folder, exist_ok=True)
        self.steps = open(self.path(f"steps-rank{rank}.jsonl"), "x")
        self.flushed = time.monotonic()
        self.count = 0
        self.has_parts = True
        self.sums = dict.fromkeys(SUMS, 0)
        self.trace = []  # events of traced steps (traced_buckets.py)
        if rank == 0:
            open(self.path("epochs.jsonl"), "x").close()
            self.write_environment()
            self.write_config()

    def path(self, name):
        return os.path.join(self.folder, name)

    def step(self, record):
        self.count += 1
        self.has_parts = self.has_parts and "forward" in record
        for key in SUMS:
            self.sums[key] += record.get(key, 0)
        self.steps.write(json.dumps(record) + "\n")
        if time.monotonic() - self.flushed > FLUSH:
            self.flush()

    def parity(self, records):
        with open(self.path(f"parity-rank{self.rank}.jsonl"), "a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    def flush(self):
        self.steps.flush()
        self.flushed = time.monotonic()

    def end(self):
        """Called when the program ends or destroys its process group. More steps may follow."""
        self.flush()
        if self.rank == 0:
            self.write_config()
            self.write_summary()
            if self.trace:
                os.makedirs(self.path("trace"), exist_ok=True)
                self.replace("trace/trace.json", json.dumps({"traceEvents": self.trace}))

    def replace(self, name, text):
        with open(self.path(name + ".new"), "w") as file:
            file.write(text)
        os.replace(self.path(name + ".new"), self.path(name))

    def write_environment(self):
        """Adds to environment.json, in which `ddprun compare` has described the host."""
        known = {}
        if os.path.exists(self.path("environment.json")):
            with open(self.path("environment.json")) as file:
                known = json.load(file)
        known.setdefault("date", time.strftime("%Y-%m-%dT%H:%M:%S%z"))
        known.setdefault("host", platform.node())
        known.update(program=" ".join(sys.orig_argv), torch=torch.__version__, python=platform.python_version())
        self.replace("environment.json", json.dumps(known, indent=2) + "\n")

    def kind(self):
        return "ddp" if self.about["world"] > 1 else "single"

    def check(self):
        """As comm.check of a config: whether the ranks compare each collective before it."""
        compares = (self.about["backend"] or "").startswith("ddprun_")
        return "fingerprint" if compares and "check=off" not in os.environ.get("DDPRUN_OPTIONS", "") else "off"

    def batch(self):
        return max(1, round(self.sums["samples"] / max(1, self.count)))

    def write_config(self):
        """The values that tools compare between runs. A string in JSON is also one in TOML."""
        name = re.sub(r"-\d{8}-\d{6}(-\d+)?$", "", os.path.basename(os.path.abspath(self.folder)))
        tables = {
            "experiment": {"name": name},
            "launch": {"nproc": self.about["world"], "threads": self.about["threads"]},
            "strategy": {"kind": self.kind()},
            "comm": {"backend": self.about["backend"] or "none", "check": self.check()},
            "model": {"name": self.about["model"]},
            "data": {"name": "unknown", "batch_size": self.batch(), "batch_per": "rank"},
            "train": {"steps": max(1, self.count), "amp": "bf16" if self.about["half"] else "off"},
        }
        lines = ["# What was seen of a recorded program. No run can be started from this file."]
        for table, values in tables.items():
            lines += ["", f"[{table}]"] + [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        self.replace("config.toml", "\n".join(lines) + "\n")

    def write_summary(self):
        count, sums, about = max(1, self.count), self.sums, self.about
        summary = {"total_time": sums["total"], "avg_batch_time": sums["total"] / count, "steps": self.count,
                   "world": about["world"], "model": about["model"], "data": "unknown", "strategy": self.kind()}
        if self.has_parts:
            summary["avg_data_time"] = sums["data"] / count
            summary["avg_compute_time"] = (sums["total"] - sums["data"] - sums["comm"]) / count
            for part in ("forward", "backward", "comm", "optimizer"):
                summary["split." + part] = sums[part] / count
        if sums["samples"]:
            summary["batch"] = self.batch() * about["world"]
        if about["world"] > 1:
            summary["backend"] = about["backend"]
            if about["bytes"]:
                summary["comm.bytes"] = about["bytes"]
        self.replace("summary.json", json.dumps(summary, indent=2) + "\n")


def write_cause(folder, text):
    """Writes why the program failed. Only the first failed rank writes the file."""
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "failure.txt"), "x") as file:
            file.write(text.strip().splitlines()[-1] + "\n")
    except OSError:
        pass  # another rank was first; or there is no place for it, and the program's own output has it


def digest_of(tensor):
    """A hash of a tensor's bytes, its norm, and a sketch: sums with pseudo-random signs, the same in every run. The
    mean of the squared differences of two sketches estimates the squared distance of the tensors."""
    values = tensor.detach().cpu().contiguous()
    values = torch.view_as_real(values.resolve_conj()).contiguous() if values.is_complex() else values
    data = ctypes.string_at(values.data_ptr(), values.numel() * values.element_size())
    flat = values.double().flatten()
    generator = torch.Generator().manual_seed(0)  # not the program's
    signs = torch.randint(0, 1 << SIGNS, flat.shape, generator=generator)
    sketch = [float(torch.where((signs >> bit & 1).bool(), flat, -flat).sum()) for bit in range(SIGNS)]
    return {"hash": hashlib.blake2b(data, digest_size=8).hexdigest(), "norm": float(flat.norm()), "sketch": sketch}
