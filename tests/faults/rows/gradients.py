"""Gradients that are not finite."""

import json
import re
import struct

from harness import TRAINING, Outcome, Row, ended
from training import WORLD, backend_of, fault_in, last_step_before, values_of

EACH_STEP = ("checkpoint.every_steps=1", "checkpoint.keep=100")
SKIP = "train.check_gradients=skip"


def stopped(place, job, value):
    """The outcome of a training that the gradient of step 6 ends."""
    job.wait_for_step(5)
    outcome = ended(place, job, last_step_before(job, 6), rank=range(WORLD), code=1,
                    cause=rf"the gradient of fc1\.weight is {value}")
    outcome.cause = outcome.cause and " step 6 " in job.last_line()
    outcome.commit = "step-00000005" in place.commits()[-1].name
    return outcome


def nan(place, backend, rng):
    return stopped(place, place.train(backend_of(backend), *EACH_STEP, *fault_in("nan_gradient")), "nan")


def skipped_steps(place):
    """The steps that each rank left out, by its records."""
    steps = []
    for rank in range(WORLD):
        with open(place.new_runs()[-1] / f"steps-rank{rank}.jsonl") as records:
            steps.append([record["step"] for record in map(json.loads, records) if record.get("skipped")])
    return steps


def optimizer_of(commit):
    """The bytes of the optimizer's tensors, by name."""
    state = values_of(commit.with_name(commit.name.replace(".safetensors", ".state-rank0.safetensors")))
    return {name: value for name, value in state.items() if "momentum" in name}


def nan_skipped(place, backend, rng):
    """All ranks leave out step 6: neither the weights nor the optimizer's state change in it."""
    job = place.train(backend_of(backend), "train.steps=12", "optimizer.momentum=0.9", SKIP, *EACH_STEP,
                      *fault_in("nan_gradient"))
    code = job.wait()
    fault = last_step_before(job, 6)
    found = [when for when, text in job.lines if "step 6: the gradient of fc1.weight is nan; the optimizer" in text]
    weights = [values_of(commit) for commit in place.commits()]
    optimizers = [optimizer_of(commit) for commit in place.commits()]
    equal = [step for step in range(1, 12) if weights[step] == weights[step - 1]]  # step + 1 did not change them
    kept = bool(optimizers[0]) and optimizers[5] == optimizers[4] and optimizers[6] != optimizers[5]
    outcome = Outcome(detect=found[0] - fault if found else None, code=code == 0, left=place.left(),
                      cause=bool(found) and skipped_steps(place) == [[6]] * WORLD, commit=equal == [5] and kept)
    if outcome.problems():
        outcome.note = f"left out: {skipped_steps(place)}, equal weights after {equal}, {kept}; {job.text()[-800:]}"
    return outcome


# ----- An infinite one

HUGE, TINY, HIDDEN, PIXELS = 1.8e38, 2e-38, 32, 28 * 28


def weights_that_overflow(path):
    """All units have the value TINY, and class 0 gets the score HIDDEN * TINY * HUGE = 115, the other ones -115. A
    sample of class 0 has no gradient. The one of a sample of another class needs HUGE + HUGE, which is infinite."""
    tensors = {"fc1.bias": ([HIDDEN], [TINY] * HIDDEN), "fc1.weight": ([HIDDEN, PIXELS], [0.0] * HIDDEN * PIXELS),
               "fc2.bias": ([10], [0.0] * 10), "fc2.weight": ([10, HIDDEN], [HUGE] * HIDDEN + [-HUGE] * 9 * HIDDEN)}
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def overflowing(place, steps):
    """The config of a training in which rank 1 has a sample of another class in step 6. A batch has one sample for
    each rank, and every pixel of it is white."""
    root = place.folder / "mnist"
    root.mkdir()
    count = WORLD * steps
    labels = bytearray(count)
    labels[5 * WORLD + 1] = 1
    for split, classes in (("train", labels), ("t10k", bytearray(count))):
        images = struct.pack(">4I", 0x803, count, 28, 28) + b"\xff" * PIXELS * count
        (root / f"{split}-images-idx3-ubyte").write_bytes(images)
        (root / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + classes)
    weights = place.folder / "overflowing.safetensors"
    weights_that_overflow(weights)
    text = TRAINING.replace("[data]", f'weights = "{weights}"\n[data]').replace("batch_size = 24", "batch_size = 3")
    text = text.replace('name = "synthetic"', f'name = "mnist"\nroot = "{root}"\nshuffle = false')
    return place.config(re.sub(r"options = { shape = .*", "", text))


def infinite(place, backend, rng):
    job = place.train(backend_of(backend), *EACH_STEP, config=overflowing(place, 10))
    return stopped(place, job, "infinite")


def infinite_skipped(place, backend, rng):
    """Only this step has a gradient, so the weights at the end must be those of the beginning."""
    job = place.train(backend_of(backend), "train.steps=10", SKIP, config=overflowing(place, 10))
    code = job.wait()
    fault = last_step_before(job, 6)
    found = [when for when, text in job.lines if "step 6: the gradient of fc1.weight is infinite; the opt" in text]
    same = values_of(place.commits()[-1]) == values_of(place.folder / "overflowing.safetensors")
    outcome = Outcome(detect=found[0] - fault if found else None, code=code == 0, left=place.left(), commit=same,
                      cause=bool(found) and skipped_steps(place) == [[6]] * WORLD)
    if outcome.problems():
        outcome.note = job.text()[-1500:]
    return outcome


STOPS = "the same step on all ranks, the parameter named; exit 1"
LEFT_OUT = "all ranks leave out the step, and keep the weights; exit 0"

ROWS = [
    Row("NaN gradient", STOPS, 0.5, nan, quick=1),
    Row('NaN gradient, with train.check_gradients = "skip"', LEFT_OUT, None, nan_skipped, detect=0.5, quick=1, full=5),
    Row("infinite gradient", STOPS, 0.5, infinite, quick=1, full=10),
    Row('infinite gradient, with train.check_gradients = "skip"', LEFT_OUT, None, infinite_skipped, detect=0.5, quick=0,
        full=5),
]
