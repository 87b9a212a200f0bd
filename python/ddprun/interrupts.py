"""Ctrl-C while the main thread waits for a collective in C++, as in loss.backward().

Python runs a signal handler only between two bytecode instructions of the main thread, and C++ does not return to
Python before the collective has ended. A thread of this module gets the signal at once, through signal.set_wakeup_fd.
If the main thread makes no progress, the thread aborts the groups. Then C++ returns with an error, and Python can raise
KeyboardInterrupt.
"""
import os
import signal
import sys
import threading
import time

_GRACE = 0.3  # seconds for the main thread to handle the signal by itself
_started = False


def watch(abort):
    """From now on, Ctrl-C calls abort() if the main thread is blocked in C++. Does nothing if the program has its own
    handler of SIGINT, if it uses signal.set_wakeup_fd, or if this is not the main thread."""
    global _started
    if _started or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
        return
    _started = True
    threading.Thread(target=_run, args=(reader, abort), name="ddprun: Ctrl-C", daemon=True).start()


def _place_of_main():
    frame = sys._current_frames().get(threading.main_thread().ident)
    return frame, frame.f_lasti if frame is not None else -1


def _run(reader, abort):
    while numbers := os.read(reader, 64):
        if signal.SIGINT not in numbers or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            continue
        place = _place_of_main()
        time.sleep(_GRACE)
        if _place_of_main() == place:
            abort()
