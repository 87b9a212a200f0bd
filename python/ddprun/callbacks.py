"""Threads that end the Futures of works, and so run what the program has put behind them with then().

A callback may start a collective and wait for it, as DDP's PowerSGD hook does. So it must not run in the thread that
carries out the collectives, nor keep another callback waiting: if all threads here are busy, there is one more.
"""
import os
import queue
import threading

_jobs = queue.SimpleQueue()
_changed = threading.Condition()
_idle = 0  # threads that no job has been put for
_unfinished = 0  # jobs


def run(function, *arguments):
    """Calls it soon, in another thread."""
    global _idle, _unfinished
    with _changed:
        _unfinished += 1
        is_new = _idle == 0
        if not is_new:
            _idle -= 1
    _jobs.put((function, arguments))
    if is_new:
        threading.Thread(target=_work, name="ddprun: callbacks", daemon=True).start()


def finish(seconds):
    """Waits until all have been called: a thread that is inside PyTorch must not see the interpreter end."""
    with _changed:
        _changed.wait_for(lambda: _unfinished == 0, seconds)


def _work():
    global _idle, _unfinished
    while True:
        function, arguments = _jobs.get()
        function(*arguments)
        del function, arguments  # and the tensors that they keep
        with _changed:
            _idle += 1
            _unfinished -= 1
            _changed.notify_all()


def _forget_threads():
    """A fork has none of them."""
    global _jobs, _changed, _idle, _unfinished
    _jobs, _changed, _idle, _unfinished = queue.SimpleQueue(), threading.Condition(), 0, 0


os.register_at_fork(after_in_child=_forget_threads)
