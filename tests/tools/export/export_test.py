"""Reads what `ddprun export` wrote with TensorBoard's reader and with Python's csv.

    export_test.py PROGRAM...    the program is ddprun-export, without its arguments
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"skipped: this Python has no tensorboard: {error}")
    sys.exit(77)

STEPS = 300  # more than one byte of a varint


def check(actual, expected, what):
    if actual != expected:
        sys.exit(f"FAILED: {what}: expected {expected}, got {actual}")


def close(actual, expected, what):
    if abs(actual - expected) > 1e-6 * max(1, abs(expected)):
        sys.exit(f"FAILED: {what}: expected {expected}, got {actual}")


def step(rank, number):
    return {"epoch": 1 if number <= 200 else 2, "step": number, "samples": 32 * (rank + 1), "loss": number + rank,
            "correct": 24 * (rank + 1),
            "data": 0.001, "forward": 0.002, "backward": 0.003, "comm": 0.004 * rank, "optimizer": 0.001,
            "total": 0.010 + 0.001 * rank, "lr": 0.1 / number}


def write_run(folder):
    lines = lambda records: "".join(json.dumps(record) + "\n" for record in records)
    for rank in range(2):
        (folder / f"steps-rank{rank}.jsonl").write_text(lines(step(rank, i) for i in range(1, STEPS + 1)))
    (folder / "epochs.jsonl").write_text(lines([{"epoch": 1, "train.loss": 2.5, "test.accuracy": 0.5},
                                                {"epoch": 2, "train.loss": 1.5, "test.accuracy": 0.75}]))
    (folder / "summary.json").write_text(json.dumps({"world": 2}))
    (folder / "environment.json").write_text(json.dumps({"date": "2026-11-22T12:00:00+0200", "host": "here"}))
    (folder / "config.toml").write_text("schema_version = 1\n")


def check_events(folder):
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    times = [f"time/{part}" for part in ("backward", "comm", "data", "forward", "optimizer", "total")]
    check(sorted(events.Tags()["scalars"]),
          ["epoch/test_accuracy", "epoch/train_loss", *times, "train/accuracy", "train/loss", "train/lr",
           "train/throughput"], "tags")
    loss = events.Scalars("train/loss")
    check([event.step for event in loss], list(range(1, STEPS + 1)), "steps")
    for event in loss:
        close(event.value, event.step + 2 / 3, f"loss of step {event.step}")
    close(loss[0].wall_time, 1795341600.011, "time of the first step")
    close(loss[-1].wall_time, 1795341600 + 0.011 * STEPS, "time of the last step")
    close(events.Scalars("train/accuracy")[7].value, 0.75, "accuracy")
    close(events.Scalars("train/throughput")[7].value, 96 / 0.011, "throughput")
    close(events.Scalars("time/comm")[7].value, 0.004, "the slowest rank's")
    check([(event.step, event.value) for event in events.Scalars("epoch/test_accuracy")], [(200, 0.5), (300, 0.75)],
          "accuracy by epoch")


def check_csv(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    check(len(rows), 2 * STEPS, "rows")
    for rank in range(2):
        for number in (1, STEPS):
            row = rows[rank * STEPS + number - 1]
            check(int(row["rank"]), rank, "rank")
            for key, value in step(rank, number).items():
                check(float(row[key]), value, f"{key} of step {number}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "run").mkdir()
    write_run(folder / "run")
    subprocess.run([*sys.argv[1:], folder / "run", "--csv", folder / "steps.csv", "--tensorboard", folder / "logs"],
                   check=True, timeout=60, stdout=subprocess.DEVNULL)
    check_events(folder / "logs")
    check_csv(folder / "steps.csv")
print("ok")
