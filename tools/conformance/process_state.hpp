// What belongs to the process and not to a plugin: what a process holds, and its settings.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ddprun::conformance {

// What a leak makes grow.
struct Held {
  std::ptrdiff_t descriptors = 0;
  std::ptrdiff_t threads = 0;
  std::ptrdiff_t heap = 0;    // bytes from malloc that are in use; 0 with a sanitizer
  std::ptrdiff_t mapped = 0;  // bytes of address space
};
// Counting opens a descriptor, so only one thread may count at a time.
Held held_now();
Held operator-(const Held& a, const Held& b);
// The first that has grown to its limit: "8 descriptors were left", or "".
std::string leak(const Held& grown, const Held& limit);

// Of the calling thread: floating point, CPU affinity, signal mask. Of the process: locale, working folder, umask,
// priority, environment, resource limits, timers, standard input, signal handlers.
class ProcessState {
 public:
  static ProcessState now();
  // "the rounding mode", "the handler of signal 12", ...: what differs in `later`, or "". Variables of the environment
  // that begin with the plugin's name in capital letters (NCCL_...) may differ.
  std::string difference(const ProcessState& later, const std::string& plugin = "") const;
  // Takes what the suite itself changes from `now`: SIGPIPE's handler, the signal mask, the environment, timers.
  void adopt(const ProcessState& now);

 private:
  int rounding_ = 0;
  int traps_ = 0;
  bool flushes_ = false;  // results that are subnormal become 0
  std::string locale_;
  std::string folder_;
  unsigned umask_ = 0;
  cpu_set_t cores_{};
  int priority_ = 0;
  sigset_t blocked_{};
  std::set<std::string> environment_;
  std::vector<std::pair<rlim_t, rlim_t>> limits_;
  std::string timers_;                      // '1' for each that is set
  std::pair<dev_t, ino_t> input_{};         // the file that is standard input
  std::vector<struct sigaction> handlers_;  // by signal
};

}  // namespace ddprun::conformance
