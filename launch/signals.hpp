// Signals: of the launcher, as a file descriptor for its poll loop; of a rank that is asked to stop; and SIGUSR2, which
// a thread of a rank handles.
#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <optional>
#include <thread>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"

namespace ddprun::launch {

// While it lives, SIGINT, SIGTERM, SIGUSR1, SIGCHLD and those of `more` are blocked in this thread and read here, and
// SIGPIPE is ignored. From then on SIGUSR2 is ignored in this process and in programs that it starts. Threads that
// already run still receive them, so construct it while there is only one thread.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> more = {});  // throws Error(failure)
  ~Signals();

  int fd() const { return fd_.get(); }
  std::optional<int> next();  // the next received signal; never waits

 private:
  sigset_t mask_before_{};
  struct sigaction pipe_before_ {};
  UniqueFd fd_;
};

// SIGINT, SIGTERM and SIGUSR1 to a rank, under any launcher: srun, mpirun and torchrun pass them on to every rank, and
// Slurm and systemd send them to every process of a job.

// After this, each of these signals ends the process immediately, with the exit code 130 for SIGINT and 143 for the
// others. Call it before other threads exist. In a job that survives deaths, SIGUSR1 always ends this rank, but only
// after 0.1 s, and not if the launcher, or another signal, requests a stop meanwhile. Throws as ProgressTable.
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

// With SIGUSR2, the launcher asks its ranks to write their last collectives. It sends these values with the signal
// (sigqueue): a rank has failed; or the other ranks wait for this rank, and it must show its stack.
inline constexpr int kJobFails = 1, kShowStack = 2;

// After this, SIGUSR2 is blocked in this thread and in those that it starts. It stays pending until a Usr2Thread
// handles it. Call it before other threads exist.
void hold_usr2();

// Sends SIGUSR2 to this process, with the value, if hold_usr2() was called: otherwise the signal belongs to the
// program. Any thread.
void send_held_usr2(int value);

// While it lives, calls `handle` on a separate thread for each SIGUSR2, also while the other threads are blocked, with
// the value that came with the signal: 0 after kill(). `handle` must not throw. Call hold_usr2() before.
class Usr2Thread {
 public:
  explicit Usr2Thread(std::function<void(int value)> handle);
  ~Usr2Thread();

 private:
  std::jthread thread_;
};

}  // namespace ddprun::launch
