"""Runs one program of a comparison: to its end, within a limit, and leaves nothing of it behind."""

import contextlib
import os
import signal
import subprocess

GRACE = 10  # seconds for a launcher to end its ranks


class Failed(Exception):
    """One line, and what the program wrote; `code` is its exit code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def run(argv, limit, **more):
    """Gives its stdout. `limit` in seconds. Throws Failed."""
    argv = [str(word) for word in argv]
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, **more)
    except OSError as fault:
        raise Failed(f"{argv[0]}: {fault.strerror}") from None
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        end(process)
        raise Failed(f"{' '.join(argv)}: took more than {limit:g} s") from None
    except BaseException:
        end(process)
        raise
    if process.returncode != 0:
        raise Failed(f"{' '.join(argv)}: ended with {process.returncode}:\n{err}", process.returncode)
    return out


def end(process):
    """Terminated, not killed: launchers end their ranks first. What is left of its process group is killed."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()


def turns(items, rounds):
    """The items in each round: the first one changes, and every second round goes backwards, so that nobody always runs
    first, or behind the same one."""
    for number in range(rounds):
        at = number // 2 % len(items)
        order = items[at:] + items[:at]
        yield order if number % 2 == 0 else order[::-1]
