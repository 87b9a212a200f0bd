"""Compares what ddprun wrote into a run folder with what the ranks in PyTorch reported."""

import dataclasses
import itertools
import json
import math

import numpy
from safetensors.numpy import load_file


class Mismatch(Exception):
    """Something differs that has no tolerance, or by more than it has."""


@dataclasses.dataclass
class Measured:
    """Largest relative differences, and how many values are equal bit for bit."""

    steps: int = 0
    loss: float = 0.0
    equal_losses: int = 0
    losses: int = 0
    tensor: float = 0.0
    equal_tensors: int = 0
    tensors: int = 0
    epoch: float = 0.0  # mean losses of an epoch, of all ranks and of each
    test: float = 0.0

    def fault(self, case, same_torch):
        """What is not as the case demands, or None."""
        if max(self.loss, self.epoch, self.test) > case.losses:
            return f"a loss is further apart than {case.losses:.0e}"
        if self.tensor > case.tensors:
            return f"a tensor is further apart than {case.tensors:.0e}"
        if case.exact and same_torch and (self.equal_losses < self.losses or self.equal_tensors < self.tensors):
            return "not equal bit for bit"
        return None


def finite(apart):
    """A difference that is no number is larger than any, which max() and > would not see."""
    return apart if apart == apart else math.inf


def relative(ours, pythons):
    return 0.0 if ours == pythons else finite(abs(ours - pythons) / max(abs(pythons), 1e-30))


def torch_of(run):
    return json.loads((run / "environment.json").read_text())["torch"]


def json_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def compare_steps(measured, run, pythons):
    for rank, result in enumerate(pythons):
        ours = json_lines(run / f"steps-rank{rank}.jsonl")
        for key in ("epoch", "samples"):
            if [step[key] for step in ours] != [step[key] for step in result["steps"]]:
                raise Mismatch(f"rank {rank}: {key} of the steps: {[step[key] for step in ours]}, PyTorch's are "
                               f"{[step[key] for step in result['steps']]}")
        for mine, theirs in zip(ours, result["steps"]):
            measured.loss = max(measured.loss, relative(mine["loss"], theirs["loss"]))
            measured.equal_losses += mine["loss"] == theirs["loss"]
        measured.losses += len(ours)
        measured.steps = len(ours)


def mean_loss(steps):
    return sum(step["loss"] * step["samples"] for step in steps) / sum(step["samples"] for step in steps)


def compare_epochs(measured, run, pythons, exact):
    """What ddprun averages over ranks and steps, against the same averages of PyTorch's losses. Where losses need not be
    equal bit for bit, one sample may fall to the other side."""
    epochs = json_lines(run / "epochs.jsonl")
    by_rank = [[list(steps) for _, steps in itertools.groupby(result["steps"], lambda step: step["epoch"])]
               for result in pythons]
    if len(epochs) != len(by_rank[0]):
        raise Mismatch(f"{len(epochs)} epochs, PyTorch has {len(by_rank[0])}")
    for epoch, ours in enumerate(epochs):
        steps = [rank[epoch] for rank in by_rank]
        pairs = [(ours["train.loss"], mean_loss(sum(steps, [])))]
        pairs += zip(ours["train.loss_by_rank"], map(mean_loss, steps))
        if pythons[0]["tests"]:
            test = pythons[0]["tests"][epoch]
            measured.test = max(measured.test, relative(ours["test.loss"], test["loss"]))
            right = round(ours.get("test.accuracy", 0) * test["samples"])
            if "test.accuracy" in ours and abs(right - test["right"]) > (0 if exact else 1):
                raise Mismatch(f"epoch {epoch + 1}: test accuracy {ours['test.accuracy']}, PyTorch has "
                               f"{test['right']} of {test['samples']} right")
        measured.epoch = max([measured.epoch, *(relative(*pair) for pair in pairs)])


def compare_tensors(measured, checkpoint, pythons):
    ours, theirs = load_file(checkpoint), load_file(pythons)
    if set(ours) != set(theirs):
        raise Mismatch(f"the checkpoint has {sorted(ours)}, PyTorch's state_dict {sorted(theirs)}")
    for name, expected in theirs.items():
        tensor = ours[name]
        if tensor.shape != expected.shape or tensor.dtype != expected.dtype:
            raise Mismatch(f"{name} is {tensor.dtype} {tensor.shape}, in PyTorch {expected.dtype} {expected.shape}")
        measured.tensors += 1
        measured.equal_tensors += tensor.tobytes() == expected.tobytes()
        apart = numpy.abs(tensor.astype(float) - expected.astype(float)).max()
        measured.tensor = max(measured.tensor, finite(apart / max(numpy.abs(expected).max(), 1e-30)))


def compare(case, run, pythons, state):
    """run: ddprun's run folder; pythons: what each rank reported, in order; state: rank 0's state_dict."""
    measured = Measured()
    compare_steps(measured, run, pythons)
    compare_epochs(measured, run, pythons, case.exact)
    compare_tensors(measured, max((run / "checkpoints").glob("step-????????.safetensors")), state)
    return measured
