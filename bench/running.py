"""Runs the programs of a comparison to their end, with a time limit, and leaves no process behind."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time

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


class Program:
    """A program that was started. It ends with the `with` block at the latest. Raises Failed."""

    def __init__(self, argv, **more):
        self.argv = [str(word) for word in argv]
        # Files: a process that outlives the program cannot hold them open as it could a pipe.
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        # In this script's session: Linux schedules each session as one group. If the ranks of one system were in several
        # sessions, and those of another in one, they would not share the cores in the same way.
        try:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=self.files[0],
                                            stderr=self.files[1], process_group=0, preexec_fn=end_with_parent,
                                            **more)
        except OSError as error:
            raise Failed(f"{self.argv[0]}: {error.strerror}") from None
        self.ended = os.pidfd_open(self.process.pid)  # can be read when it has ended

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        keep(self.argv, self.output())
        os.close(self.ended)
        for file in self.files:
            file.close()

    def output(self):
        """Its stdout and stderr until now."""
        # Not by read(): the program writes at the position that both have in common.
        return [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")
                for file in self.files]

    def end(self):
        """Terminates it, so that a launcher can end its ranks; then kills the rest of its process group."""
        if self.process.returncode is None:
            os.kill(self.process.pid, signal.SIGTERM)
            select.select([self.ended], [], [], GRACE)
            self.reap()

    def reap(self):
        """Kills its process group, and returns its exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # before wait(), after which the number is free for others
        return self.process.wait()

    def failed(self, error, code=1):
        out, err = self.output()
        return Failed(f"{' '.join(self.argv)}: {error}:\n{''.join(out.splitlines(keepends=True)[-LINES:])}{err}", code)


def run(argv, limit, **more):
    """Returns its stdout. `limit` is in seconds. Raises Failed."""
    return run_together([argv], limit, **more)[0]


def run_together(commands, limit, **more):
    """Runs them at the same time, and returns the stdout of each. If one fails, the others are ended. Raises Failed."""
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(Program(argv, **more)) for argv in commands]
        if late := wait_for(programs, limit):
            raise late[0].failed(f"took more than {limit:g} s")
        return [program.output()[0] for program in programs]


def wait_for(programs, limit):
    """Until all have ended well. Returns those that have not after `limit` seconds. Raises Failed."""
    deadline = time.monotonic() + limit
    waiting = list(programs)
    while waiting:
        ready, _, _ = select.select([program.ended for program in waiting], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            break
        for program in [each for each in waiting if each.ended in ready]:
            waiting.remove(program)
            if code := program.reap():
                raise program.failed(f"ended with {code}", code if code > 0 else 128 - code)  # as a shell says it
    return waiting


def end_with_parent():
    """Called in a child: it is terminated when its parent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def keep(argv, output):
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
        path = logs / f"{next(numbers):03}-{pathlib.Path(argv[0]).name}.log"
        path.write_text(f"{' '.join(argv)}\n{''.join(output)}")


def turns(items, rounds):
    """The items in the order of each round. The first item changes, and every second round is reversed, so no item
    always runs first or after the same item."""
    for number in range(rounds):
        at = number // 2 % len(items)
        order = items[at:] + items[:at]
        yield order if number % 2 == 0 else order[::-1]
