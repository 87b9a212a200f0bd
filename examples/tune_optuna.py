#!/usr/bin/env python3
"""Searches for good values of config keys with Optuna; each trial is a run of ddprun.

    tune_optuna.py --config configs/linear_single.toml --trials 20 --log optimizer.lr=1e-4,0.5 \
        --choice data.batch_size=16,32,64 --set train.epochs=5

The objective is read from the run's summary.json, and epochs.jsonl is read during the run. A trial is stopped if its
last epoch is worse than the median of the other trials after the same number of epochs; ddprun then writes a checkpoint
and exits. Runs and the study are kept in --output. Started again with the same --output, the search continues.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

import optuna

TRAINING_FAILED = 1  # ddprun's exit code, for example for a loss that is NaN


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--metric", help="a key of summary.json and epochs.jsonl; default: validation.loss where "
                        "data.validation is set, otherwise test.loss")
    parser.add_argument("--maximize", action="store_true")
    parser.add_argument("--float", action="append", default=[], metavar="KEY=LOW,HIGH")
    parser.add_argument("--log", action="append", default=[], metavar="KEY=LOW,HIGH", help="on a logarithmic scale")
    parser.add_argument("--choice", action="append", default=[], metavar="KEY=A,B,C")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="the same in every trial")
    parser.add_argument("--seed", type=int, default=0, help="of the search; the runs use experiment.seed")
    parser.add_argument("--output", default="runs/tune")
    parser.add_argument("--ddprun", default="ddprun", help="the program")
    return parser.parse_args()


def key_and_values(text):
    key, _, values = text.partition("=")
    return key, values.split(",")


def suggest(trial, args):
    chosen = {}
    for log, texts in ((False, args.float), (True, args.log)):
        for key, (low, high) in map(key_and_values, texts):
            chosen[key] = trial.suggest_float(key, float(low), float(high), log=log)
    for key, values in map(key_and_values, args.choice):
        chosen[key] = trial.suggest_categorical(key, values)
    return chosen


def command_of(args, chosen):
    settings = args.set + [f"{key}={value}" for key, value in chosen.items()]
    return [args.ddprun, "--config", args.config] + [word for setting in settings for word in ("--set", setting)]


def run_folder(folder):
    """The run folder, or None before ddprun has created it."""
    folders = [entry.path for entry in os.scandir(folder) if entry.is_dir()]
    return folders[0] if folders else None


def epochs_of(folder):
    """The epochs in epochs.jsonl so far; a line that is still being written has no newline."""
    run = run_folder(folder)
    if run is None or not os.path.exists(f"{run}/epochs.jsonl"):
        return []
    with open(f"{run}/epochs.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def summary_of(folder):
    with open(f"{run_folder(folder)}/summary.json", encoding="utf-8") as file:
        return json.load(file)


def metric_of(args, results):
    """The key that compares trials, in the results of an epoch or a run."""
    return args.metric or ("validation.loss" if "validation.loss" in results else "test.loss")


def follow(trial, run, folder, args):
    """Reports every epoch to Optuna; stops the run and the trial if Optuna prunes it."""
    reported = 0
    while True:
        ended = run.poll() is not None
        for epoch in epochs_of(folder)[reported:]:
            reported += 1
            trial.report(epoch[metric_of(args, epoch)], epoch["epoch"])
            if trial.should_prune():
                run.send_signal(signal.SIGTERM)
                run.wait()
                raise optuna.TrialPruned(f"worse than the median after epoch {reported}")
        if ended:
            return
        time.sleep(0.05)


def objective(trial, args):
    folder = os.path.abspath(f"{args.output}/trial-{trial.number}")
    os.makedirs(folder)
    command = command_of(args, suggest(trial, args)) + ["--set", f"experiment.output={folder}"]
    with open(f"{folder}/output.txt", "w", encoding="utf-8") as output:
        run = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            follow(trial, run, folder, args)
        finally:
            if run.poll() is None:
                run.terminate()
                run.wait()
    if run.returncode == TRAINING_FAILED:
        raise optuna.TrialPruned("training failed")
    if run.returncode != 0:
        with open(f"{folder}/output.txt", encoding="utf-8") as output:
            sys.exit(f"{' '.join(command)}\nexit code {run.returncode}: {output.read().strip().splitlines()[-1]}")
    results = summary_of(folder)
    return results[metric_of(args, results)]


def main():
    args = arguments()
    os.makedirs(args.output, exist_ok=True)
    study = optuna.create_study(
        study_name=os.path.basename(args.config), storage=f"sqlite:///{args.output}/study.db", load_if_exists=True,
        direction="maximize" if args.maximize else "minimize",
        sampler=optuna.samplers.TPESampler(seed=args.seed), pruner=optuna.pruners.MedianPruner(n_startup_trials=4))
    study.optimize(lambda trial: objective(trial, args), n_trials=args.trials)
    best = study.best_trial
    metric = metric_of(args, summary_of(f"{args.output}/trial-{best.number}"))
    print(f"best of {len(study.trials)} trials: trial {best.number}, {metric} {best.value:.6g}")
    if metric.startswith("test."):
        print("the test set has chosen it, so its results are better than those on new data; "
              "data.validation avoids that", file=sys.stderr)
    print(" ".join(command_of(args, best.params)))


if __name__ == "__main__":
    main()
