// Handles SIGINT and SIGTERM wherever a download waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "ddprun/error.hpp"
#include "launch/signals.hpp"

namespace ddprun::fetch {

// "interrupted" or "terminated".
std::string word(ExitCode code);

// While it lives, the two signals do not end the process but are noted here. Create it while there is one thread; only
// one thread uses it.
class Stop {
 public:
  // Readable once a signal has arrived; for poll().
  int fd() const { return signals_.fd(); }
  // interrupted or terminated, once such a signal has arrived.
  std::optional<ExitCode> asked();
  // Throws Error(interrupted or terminated), with only that word, once it is asked to stop.
  void check();
  // Waits for this time, or until it is asked to stop.
  std::optional<ExitCode> within(std::chrono::milliseconds time);

 private:
  launch::Signals signals_;
  std::optional<ExitCode> asked_;
};

}  // namespace ddprun::fetch
