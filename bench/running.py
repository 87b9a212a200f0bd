"""Runs one program of a comparison to its end, with a time limit, and leaves no process behind."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import signal
import subprocess

GRACE = 10  # seconds for a launcher to end its ranks
LINES = 40  # of stdout that are shown if a program fails
PR_SET_PDEATHSIG = 1

logs = None  # the folder for the output of each program
numbers = itertools.count(1)


class Failed(Exception):
    """One line and the program's last output; `code` is its exit code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def run(argv, limit, **more):
    """Returns its stdout. `limit` is in seconds. Raises Failed."""
    argv = [str(word) for word in argv]
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, preexec_fn=end_with_parent, **more)
    except OSError as error:
        raise Failed(f"{argv[0]}: {error.strerror}") from None
    try:
        output = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise failed(argv, f"took more than {limit:g} s", end(process)) from None
    except BaseException:
        keep(argv, end(process))
        raise
    if process.returncode != 0:
        raise failed(argv, f"ended with {process.returncode}", output, process.returncode)
    keep(argv, output)
    return output[0]


def failed(argv, error, output, code=1):
    keep(argv, output)
    stdout = "".join(output[0].splitlines(keepends=True)[-LINES:])
    return Failed(f"{' '.join(argv)}: {error}:\n{stdout}{output[1]}", code)


def end_with_parent():
    """Called in a child: it is terminated when its parent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def keep(argv, output):
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
        path = logs / f"{next(numbers):03}-{pathlib.Path(argv[0]).name}.log"
        path.write_text(f"{' '.join(argv)}\n{''.join(output)}")


def end(process):
    """Terminates the process, so that a launcher can end its ranks; then kills the rest of its process group. Returns
    stdout and stderr."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=1)
    except subprocess.TimeoutExpired:  # a process outside its group holds them open
        return "", ""
    finally:
        process.stdout.close()
        process.stderr.close()


def turns(items, rounds):
    """The items in the order of each round. The first item changes, and every second round is reversed, so no item
    always runs first or after the same item."""
    for number in range(rounds):
        at = number // 2 % len(items)
        order = items[at:] + items[:at]
        yield order if number % 2 == 0 else order[::-1]
