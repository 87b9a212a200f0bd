"""Runs one program of a comparison: to its end, within a limit, and leaves nothing of it behind."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import signal
import subprocess

GRACE = 10  # seconds for a launcher to end its ranks
TOLD = 40  # lines of its stdout, where a program fails
PR_SET_PDEATHSIG = 1

logs = None  # a folder: what each program writes is left there
numbers = itertools.count(1)


class Failed(Exception):
    """One line, and what the program wrote last; `code` is its exit code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def run(argv, limit, **more):
    """Gives its stdout. `limit` in seconds. Throws Failed."""
    argv = [str(word) for word in argv]
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, preexec_fn=end_with_parent, **more)
    except OSError as fault:
        raise Failed(f"{argv[0]}: {fault.strerror}") from None
    try:
        wrote = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise failed(argv, f"took more than {limit:g} s", end(process)) from None
    except BaseException:
        keep(argv, end(process))
        raise
    if process.returncode != 0:
        raise failed(argv, f"ended with {process.returncode}", wrote, process.returncode)
    keep(argv, wrote)
    return wrote[0]


def failed(argv, fault, wrote, code=1):
    keep(argv, wrote)
    told = "".join(wrote[0].splitlines(keepends=True)[-TOLD:])
    return Failed(f"{' '.join(argv)}: {fault}:\n{told}{wrote[1]}", code)


def end_with_parent():
    """In a child: terminated when its parent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def keep(argv, wrote):
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
        path = logs / f"{next(numbers):03}-{pathlib.Path(argv[0]).name}.log"
        path.write_text(f"{' '.join(argv)}\n{''.join(wrote)}")


def end(process):
    """Terminated, not killed: launchers end their ranks first. What is left of its process group is killed. Gives its
    stdout and stderr."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=1)
    except subprocess.TimeoutExpired:  # somebody outside its group holds them open
        return "", ""
    finally:
        process.stdout.close()
        process.stderr.close()


def turns(items, rounds):
    """The items in each round: the first one changes, and every second round goes backwards, so that nobody always runs
    first, or behind the same one."""
    for number in range(rounds):
        at = number // 2 % len(items)
        order = items[at:] + items[:at]
        yield order if number % 2 == 0 else order[::-1]
