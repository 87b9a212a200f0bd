// CPU time of programs that a comparison has not started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::tools {

// CPU seconds of one process's part of a run, and of the machine meanwhile.
struct CpuUse {
  std::string machine;  // the boot id of its kernel: containers of one machine have the same
  double all = 0;       // of all cores, idle or not
  double busy = 0;      // of programs, and kept by a hypervisor
  double own = 0;       // of the process and its reaped descendants
};

// Measures from its construction on. Main thread; run_process() must have reaped what it started.
class CpuMeter {
 public:
  CpuMeter();
  CpuUse use() const;  // zeros where /proc/stat cannot be read

 private:
  struct Ticks {
    int64_t busy = 0, all = 0;  // of all cores, from /proc/stat
    double own = 0;             // seconds
  };
  static Ticks now();

  const Ticks begin_;
};

// More than this share makes a measurement doubtful.
constexpr double kDisturbing = 0.05;

// The share of a machine's CPU time, 0 to 1, that went to programs outside all parts of the run; with several machines,
// the largest. NaN if no machine was measured for at least a twentieth of a second.
double other_share(const std::vector<CpuUse>& parts);

}  // namespace ddprun::tools
