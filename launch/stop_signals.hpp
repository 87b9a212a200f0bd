// SIGINT, SIGTERM and SIGUSR1 to a rank, under any launcher: srun, mpirun and torchrun pass them on to every rank, and
// Slurm and systemd send them to every process of a job.
#pragma once

#include "ddprun/error.hpp"

namespace ddprun::launch {

// After this, each of these signals ends the process immediately, with the exit code 130 for SIGINT and 143 for the
// others. Call it before other threads exist.
void catch_stop_signals();

// After this, the first of these signals is only recorded, so that the rank can save its work. A further SIGINT or
// SIGTERM ends the process immediately. It needs catch_stop_signals(), before or after.
void defer_stop_signals();

// After this, the first signal after defer_stop_signals() is answered at once by a line on stderr, for a process
// without a launcher that does so. on_terminal: the line replaces the status line of the terminal (base/log.hpp), and
// so does the end of the process by a further signal. Call it before other threads exist.
void acknowledge_stop_signals(bool on_terminal);

// The recorded signal: interrupted (SIGINT), terminated (SIGTERM, SIGUSR1), or ok for none. Thread-safe.
ExitCode stop_signal();

}  // namespace ddprun::launch
