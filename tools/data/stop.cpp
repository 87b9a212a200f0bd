#include "tools/data/stop.hpp"

#include <poll.h>

namespace ddprun::fetch {

std::string word(ExitCode code) {
  return code == ExitCode::interrupted ? "interrupted" : "terminated";
}

std::optional<ExitCode> Stop::asked() {
  for (auto signal = signals_.next(); signal; signal = signals_.next()) {
    if (asked_) continue;
    if (*signal == SIGINT) asked_ = ExitCode::interrupted;
    if (*signal == SIGTERM || *signal == SIGUSR1) asked_ = ExitCode::terminated;
  }
  return asked_;
}

void Stop::check() {
  if (const auto code = asked()) throw Error(*code, word(*code));
}

std::optional<ExitCode> Stop::within(std::chrono::milliseconds time) {
  if (asked()) return asked_;
  pollfd polled{fd(), POLLIN, 0};
  ::poll(&polled, 1, static_cast<int>(time.count()));
  return asked();
}

}  // namespace ddprun::fetch
