#include "tools/lib/other_cpu.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

namespace ddprun::tools {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_of(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

CpuMeter::CpuMeter() : begin_(now()) {}

CpuUse CpuMeter::use() const {
  const Ticks end = now();
  const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  CpuUse use;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> use.machine;
  use.all = static_cast<double>(end.all - begin_.all) / per_second;
  use.busy = static_cast<double>(end.busy - begin_.busy) / per_second;
  use.own = end.own - begin_.own;
  return use;
}

// proc(5): "cpu  user nice system idle iowait irq softirq steal ...". Interrupts serve this comparison too.
CpuMeter::Ticks CpuMeter::now() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  std::array<int64_t, 8> ticks{};
  file >> cpu;
  for (int64_t& value : ticks) file >> value;
  Ticks now;
  if (!file) return now;
  const auto& [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  now.busy = user + nice + system + steal;
  now.all = now.busy + idle + iowait + irq + softirq;
  now.own = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN);
  return now;
}

double other_share(const std::vector<CpuUse>& parts) {
  constexpr double kLeast = 0.05;  // seconds: a tick is 0.01
  std::map<std::string, CpuUse> machines;
  for (const CpuUse& part : parts) {
    CpuUse& machine = machines[part.machine];
    machine.own += part.own;
    if (part.all <= machine.all) continue;
    machine.all = part.all;  // the longest part covers the others
    machine.busy = part.busy;
  }
  double most = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [_, machine] : machines) {
    if (machine.all < kLeast) continue;
    most = std::fmax(most, std::clamp((machine.busy - machine.own) / machine.all, 0.0, 1.0));
  }
  return most;
}

}  // namespace ddprun::tools
