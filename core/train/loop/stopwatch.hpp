// Times the phases of a step: each lap is the time since the last one.
#pragma once

#include <chrono>

namespace ddprun::train {

class Stopwatch {
 public:
  // Seconds since construction or the last lap.
  double lap() {
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }
  // Seconds since construction.
  double total() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

}  // namespace ddprun::train
