// What belongs to the process and not to a plugin: what a process holds, and its settings.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>
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

// Floating point of the calling thread, and of the process: locale, working folder, umask, signal handlers.
class ProcessState {
 public:
  static ProcessState now();
  // "the rounding mode", "the handler of signal 12", ...: what differs in `later`, or "".
  std::string difference(const ProcessState& later) const;
  // As if the handler of this signal had always been the one of `other`.
  void adopt_handler(int signal, const ProcessState& other);

 private:
  int rounding_ = 0;
  int traps_ = 0;
  bool flushes_ = false;  // results that are subnormal become 0
  std::string locale_;
  std::string folder_;
  unsigned umask_ = 0;
  std::vector<struct sigaction> handlers_;  // by signal
};

}  // namespace ddprun::conformance
