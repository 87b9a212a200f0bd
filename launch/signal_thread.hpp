// A thread that handles one signal of this process, also while the other threads are blocked.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace ddprun::launch {

// With SIGUSR2, the launcher asks its ranks to write their last collectives. It sends these values with the signal
// (sigqueue): a rank has failed; or the other ranks wait for this rank, and it must show its stack.
inline constexpr int kJobFails = 1, kShowStack = 2;

// After this, the signal ends neither this process nor a program that it starts. Call it first in main().
void ignore_signal(int signal);

// After this, the signal is blocked in this thread and in those that it starts. It stays pending until a SignalThread
// handles it. Call it before other threads exist.
void hold_signal(int signal);

// Sends the signal to this process, with the value, if hold_signal() was called for it: otherwise the signal belongs to
// the program. Any thread.
void send_held_signal(int signal, int value);

// While it lives, calls `handle` on a separate thread for each signal, with the value that came with the signal: 0
// after kill(). `handle` must not throw. Call hold_signal() before.
class SignalThread {
 public:
  SignalThread(int signal, std::function<void(int value)> handle);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void run();

  const int signal_;
  const std::function<void(int)> handle_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace ddprun::launch
