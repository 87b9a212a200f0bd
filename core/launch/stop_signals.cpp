#include "launch/stop_signals.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace ddprun::launch {
namespace {

std::atomic<bool> deferred{false};
std::atomic<int> recorded{0};  // an ExitCode
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler uses it");

extern "C" void on_stop_signal(int signal) {
  const auto code = static_cast<int>(signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated);
  int none = 0;
  if (deferred && recorded.compare_exchange_strong(none, code)) return;
  if (recorded != 0 && signal == SIGUSR1) return;  // the same request again
  ::_exit(code);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

void defer_stop_signals() {
  deferred = true;
}

ExitCode stop_signal() {
  return static_cast<ExitCode>(recorded.load());
}

}  // namespace ddprun::launch
