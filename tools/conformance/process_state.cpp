#include "tools/conformance/process_state.hpp"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cfenv>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

namespace ddprun::conformance {
namespace {

std::ptrdiff_t entries_of(const char* folder) {
  std::error_code gone;  // an entry may disappear meanwhile
  std::ptrdiff_t count = 0;
  for (std::filesystem::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) ++count;
  return count;
}

std::ptrdiff_t mapped_bytes() {
  std::ptrdiff_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * getpagesize();
}

bool flushes_subnormals() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest / 2 == 0;
}

}  // namespace

Held held_now() {
  const struct mallinfo2 heap = mallinfo2();
  return {entries_of("/proc/self/fd"), entries_of("/proc/self/task"),
          static_cast<std::ptrdiff_t>(heap.uordblks + heap.hblkhd), mapped_bytes()};
}

Held operator-(const Held& a, const Held& b) {
  return {a.descriptors - b.descriptors, a.threads - b.threads, a.heap - b.heap, a.mapped - b.mapped};
}

std::string leak(const Held& grown, const Held& limit) {
  for (const auto& [member, what] : {std::pair(&Held::descriptors, "descriptors"),
                                     {&Held::threads, "threads"},
                                     {&Held::heap, "bytes of the heap"},
                                     {&Held::mapped, "bytes of mapped memory"}}) {
    if (grown.*member >= limit.*member) return std::to_string(grown.*member) + " " + what + " were left";
  }
  return "";
}

ProcessState ProcessState::now() {
  ProcessState state;
  state.rounding_ = std::fegetround();
  state.traps_ = fegetexcept();
  state.flushes_ = flushes_subnormals();
  state.locale_ = std::setlocale(LC_ALL, nullptr);
  std::error_code gone;
  state.folder_ = std::filesystem::current_path(gone).string();
  state.umask_ = umask(0);
  umask(static_cast<mode_t>(state.umask_));
  sched_getaffinity(0, sizeof state.cores_, &state.cores_);
  state.priority_ = getpriority(PRIO_PROCESS, 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &state.blocked_);
  for (char** one = environ; *one != nullptr; ++one) state.environment_.insert(*one);
  for (int limit = 0; limit < RLIM_NLIMITS; ++limit) {
    rlimit now{};
    getrlimit(static_cast<__rlimit_resource>(limit), &now);
    state.limits_.push_back({now.rlim_cur, now.rlim_max});
  }
  for (const int timer : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval now{};
    getitimer(static_cast<__itimer_which>(timer), &now);
    state.timers_ += timerisset(&now.it_value) || timerisset(&now.it_interval) ? '1' : '0';
  }
  struct stat input {};
  state.input_ = ::fstat(0, &input) == 0 ? std::pair(input.st_dev, input.st_ino) : std::pair<dev_t, ino_t>();
  state.handlers_.resize(static_cast<std::size_t>(SIGRTMAX) + 1);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    sigaction(signal, nullptr, &state.handlers_[static_cast<std::size_t>(signal)]);
  }
  return state;
}

std::string ProcessState::difference(const ProcessState& later, const std::string& plugin) const {
  // A library that is configured by variables of its own, such as NCCL, reads no others.
  const auto is_own = [&](const std::string& variable) {
    return std::ranges::equal(plugin + "_", variable.substr(0, plugin.size() + 1),
                              [](char a, char b) { return std::toupper(a) == b; });
  };
  std::string text;
  const auto add = [&](bool differs, const std::string& what) {
    if (differs) text += (text.empty() ? "" : ", ") + what;
  };
  add(rounding_ != later.rounding_, "the rounding mode");
  add(traps_ != later.traps_, "the floating-point traps");
  add(flushes_ != later.flushes_, "the treatment of subnormal numbers");
  add(locale_ != later.locale_, "the locale (" + locale_ + " became " + later.locale_ + ")");
  add(folder_ != later.folder_, "the working folder (" + folder_ + " became " + later.folder_ + ")");
  add(umask_ != later.umask_, "the umask");
  add(!CPU_EQUAL(&cores_, &later.cores_), "the CPU affinity");
  add(priority_ != later.priority_, "the priority");
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    add(sigismember(&blocked_, signal) != sigismember(&later.blocked_, signal),
        "the signal mask (" + std::to_string(signal) + ")");
  }
  std::vector<std::string> variables;
  std::ranges::set_symmetric_difference(environment_, later.environment_, std::back_inserter(variables));
  for (const std::string& one : variables) {
    add(!is_own(one), "the environment variable " + one.substr(0, one.find('=')));
  }
  add(limits_ != later.limits_, "a resource limit");
  add(timers_ != later.timers_, "a timer");
  add(input_ != later.input_, "standard input");
  for (std::size_t signal = 1; signal < handlers_.size(); ++signal) {
    add(handlers_[signal].sa_handler != later.handlers_[signal].sa_handler,
        "the handler of signal " + std::to_string(signal) + " (" + strsignal(static_cast<int>(signal)) + ")");
  }
  return text;
}

void ProcessState::adopt(const ProcessState& now) {
  handlers_[SIGPIPE] = now.handlers_[SIGPIPE];
  blocked_ = now.blocked_;
  environment_ = now.environment_;
  timers_ = now.timers_;  // alarm() ends a case that hangs
}

}  // namespace ddprun::conformance
