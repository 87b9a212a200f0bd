// CPU time of programs that a comparison has not started.
#pragma once

#include <cstdint>

namespace ddprun::compare {

// Measures from its construction on. Main thread; run_process() must have reaped what it started.
class OtherCpu {
 public:
  OtherCpu();
  // The share of this machine's CPU time, 0 to 1, that went to other programs, or that a hypervisor kept. NaN where
  // /proc/stat cannot be read, and for less than a twentieth of a second.
  double share() const;

 private:
  struct Ticks {
    int64_t busy = 0, all = 0;  // of all cores, from /proc/stat
    double own = 0;             // seconds of this process and its reaped descendants
  };
  static Ticks now();

  const Ticks begin_;
};

}  // namespace ddprun::compare
