// SIGINT and SIGTERM, noticed wherever a download waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "ddprun/error.hpp"
#include "launch/signals.hpp"

namespace ddprun::fetch {

// "interrupted" or "terminated".
std::string word(ExitCode code);

// While it lives, the two signals end nothing but are noted here. Make it while there is one thread; one thread uses
// it.
class Stop {
 public:
  // Readable when a signal has come; for a poll.
  int fd() const { return signals_.fd(); }
  // interrupted or terminated, once such a signal has come; it stays so.
  std::optional<ExitCode> asked();
  // Throws Error(interrupted or terminated), which says no more than that, once it is asked to stop.
  void check();
  // Waits this long, or until it is asked to stop.
  std::optional<ExitCode> within(std::chrono::milliseconds time);

 private:
  launch::Signals signals_;
  std::optional<ExitCode> asked_;
};

}  // namespace ddprun::fetch
