"""examples/tune_optuna.py with the real Optuna: trials are runs, bad ones stop early, and the search can continue."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--program", required=True)
parser.add_argument("--source", required=True)
args = parser.parse_args()

if importlib.util.find_spec("optuna") is None:
    print(f"skipped: {sys.executable} has no optuna (cmake/setup/torch-tests.txt pins it; ./run-tests installs it)")
    sys.exit(77)

EPOCHS = 12


def search(output, trials, *more):
    command = [sys.executable, f"{args.source}/examples/tune_optuna.py", "--ddprun", args.program, "--config",
               f"{args.source}/configs/linear_single.toml", "--output", output, "--trials", str(trials),
               "--log", "optimizer.lr=1e-7,0.3", "--choice", "data.batch_size=32,64",
               "--set", f"train.epochs={EPOCHS}", "--set", "launch.threads=1", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def trials_of(output):
    import optuna
    return optuna.load_study(study_name="linear_single.toml", storage=f"sqlite:///{output}/study.db").trials


def run_of(output, number):
    folder = f"{output}/trial-{number}"
    return next(entry.path for entry in os.scandir(folder) if entry.is_dir())


def lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def check_trials(output, trials):
    import optuna
    states = [trial.state for trial in trials]
    assert optuna.trial.TrialState.PRUNED in states, states
    for trial in trials:
        run = run_of(output, trial.number)
        config = "\n".join(lines(f"{run}/config.toml"))
        assert f"batch_size = {trial.params['data.batch_size']}\n" in config, config
        losses = [json.loads(line)["validation.loss"] for line in lines(f"{run}/epochs.jsonl")]
        reported = list(trial.intermediate_values.values())
        assert losses[:len(reported)] == reported, (losses, reported)
        if trial.state == optuna.trial.TrialState.COMPLETE:
            assert len(losses) == EPOCHS
            assert trial.value == json.load(open(f"{run}/summary.json"))["validation.loss"]
        else:
            assert len(reported) < EPOCHS


def check_search(output):
    done = search(output, 12, "--set", "data.validation=0.1")
    assert done.returncode == 0, done.stderr
    trials = trials_of(output)
    assert len(trials) == 12
    check_trials(output, trials)
    best = min(trial.value for trial in trials if trial.value is not None and trial.state.name == "COMPLETE")
    assert best < 0.012, best  # the noise's variance is 0.01
    first, command = done.stdout.splitlines()
    assert first.startswith("best of 12 trials: trial ") and first.endswith(f"validation.loss {best:.6g}"), first
    assert command.startswith(f"{args.program} --config {args.source}/configs/linear_single.toml --set "), command

    again = search(output, 1, "--set", "data.validation=0.1")
    assert again.returncode == 0, again.stderr
    assert "test set" not in done.stderr + again.stderr
    assert len(trials_of(output)) == 13


def check_test_set(output):
    done = search(output, 1)
    assert done.returncode == 0, done.stderr
    assert ", test.loss " in done.stdout and "the test set has chosen it" in done.stderr, done.stderr


def check_wrong_key(output):
    wrong = search(output, 1, "--set", "optimizer.lrr=1")
    assert wrong.returncode == 1
    assert "exit code 2: " in wrong.stderr and "unknown key" in wrong.stderr, wrong.stderr


with tempfile.TemporaryDirectory(prefix="ddprun-tune-") as folder:
    check_search(f"{folder}/search")
    check_test_set(f"{folder}/test")
    check_wrong_key(f"{folder}/wrong")
print("ok")
