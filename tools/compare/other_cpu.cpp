#include "tools/compare/other_cpu.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <string>

namespace ddprun::compare {
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

OtherCpu::OtherCpu() : begin_(now()) {}

double OtherCpu::share() const {
  constexpr double kLeast = 0.05;  // seconds: a tick is 0.01
  const Ticks end = now();
  const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double all = static_cast<double>(end.all - begin_.all) / per_second;
  if (all < kLeast) return std::numeric_limits<double>::quiet_NaN();
  const double others = static_cast<double>(end.busy - begin_.busy) / per_second - (end.own - begin_.own);
  return std::clamp(others / all, 0.0, 1.0);
}

// proc(5): "cpu  user nice system idle iowait irq softirq steal ...". Interrupts serve this comparison too.
OtherCpu::Ticks OtherCpu::now() {
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

}  // namespace ddprun::compare
