#include "launch/stop_signals.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace ddprun::launch {
namespace {

std::atomic<bool> deferred{false};
std::atomic<int> recorded{0};  // an ExitCode
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler uses it");

// Set before a signal is deferred.
bool acknowledges = false;
const char* erase_line = "";
constexpr const char* kStopping =
    "ddprun: stopping after this step, with a checkpoint (a second signal ends the run at once)\n";

// In a signal handler.
void say(const char* text) {
  const int before = errno;
  for (const char* part : {erase_line, text}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  errno = before;
}

extern "C" void on_stop_signal(int signal) {
  const auto code = static_cast<int>(signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated);
  int none = 0;
  if (deferred && recorded.compare_exchange_strong(none, code)) {
    if (acknowledges) say(kStopping);
    return;
  }
  if (recorded != 0 && signal == SIGUSR1) return;  // the same request again
  if (acknowledges) say("");
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

void acknowledge_stop_signals(bool on_terminal) {
  acknowledges = true;
  if (on_terminal) erase_line = "\x1b[2K\r";
}

ExitCode stop_signal() {
  return static_cast<ExitCode>(recorded.load());
}

}  // namespace ddprun::launch
