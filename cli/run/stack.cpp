#include "cli/run/stack.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <semaphore.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/stacktrace/frame.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "base/subprocess.hpp"

namespace ddprun::run {
namespace {

using namespace std::chrono_literals;

constexpr int kCrashSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr auto kAnswer = 1s, kReport = 10s;  // the symbols of LibTorch take seconds on a busy machine

const int kAsk = SIGRTMIN + 3;  // a signal that neither glibc nor the libraries that ddprun uses take

// A stack that a signal handler writes. A handler must not allocate memory.
struct Addresses {
  std::array<void*, 64> at{};
  const void* caller = nullptr;
  std::atomic<int> count{-1};

  // `return_address`: that of the function that calls this, to its caller.
  [[gnu::noinline]] void take(const void* return_address) noexcept {
    caller = return_address;
    count = ::backtrace(at.data(), static_cast<int>(at.size()));
  }

  bool wait(std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (count < 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return count >= 0;
  }

  // From the caller on, or from `beyond` frames after it. Those before are of ddprun, and more with a sanitizer.
  std::vector<Frame> frames(int beyond) const {
    std::vector<Frame> result;
    for (auto i = std::find(at.begin(), at.begin() + count, caller) - at.begin() + beyond; i < count; ++i) {
      // A return address. The call lies before it, perhaps at a function's end.
      void* const address = static_cast<char*>(at[static_cast<std::size_t>(i)]) - 1;
      Dl_info info{};
      const bool known = ::dladdr(address, &info) != 0 && info.dli_fname != nullptr;
      result.push_back({boost::stacktrace::frame(address).name(),
                        known ? std::filesystem::path(info.dli_fname).filename().string() : ""});
    }
    return result;
  }
};

Addresses asked;

void answer(int) {
  const int before = errno;
  asked.take(__builtin_return_address(0));
  errno = before;
}

// What report_crashes() leaves for its handler and its thread.
Addresses crashed;
std::atomic<int> crash_signal{0};
std::atomic<bool> reported{false};
sem_t crash_happened;
std::array<char, 64 * 1024> handler_stack;  // the thread's own may be full

void on_crash(int signal) {
  int none = 0;
  if (crash_signal.compare_exchange_strong(none, signal)) {
    crashed.take(__builtin_return_address(0));
    ::sem_post(&crash_happened);
  }
  for (auto waited = 0ms; !reported && waited < kReport; waited += 5ms) std::this_thread::sleep_for(5ms);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

std::string text_of(const Frame& frame) {
  return (frame.function.empty() ? "?" : frame.function) + (frame.file.empty() ? "" : " (" + frame.file + ")");
}

}  // namespace

std::string text_of(const std::vector<Frame>& stack) {
  std::string text;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    text += (i == 0 ? "  #" : "\n  #") + std::to_string(i) + " " + text_of(stack[i]);
  }
  return text;
}

std::vector<Frame> this_stack() {
  Addresses here;
  here.take(__builtin_return_address(0));
  return here.frames(0);
}

std::vector<Frame> stack_of(pthread_t thread) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  void* warm_up = nullptr;
  ::backtrace(&warm_up, 1);  // its first call loads a library, which a handler must not do
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  ::sigaction(kAsk, &action, nullptr);
  asked.count = -1;
  if (::pthread_kill(thread, kAsk) != 0 || !asked.wait(kAnswer)) return {};
  return asked.frames(1);  // the caller is the kernel's return from a handler
}

void report_crashes(std::function<void(int signal, const std::vector<Frame>& stack)> report) {
  void* warm_up = nullptr;
  ::backtrace(&warm_up, 1);
  ::sem_init(&crash_happened, 0, 0);
  quiet_thread([report = std::move(report)] {
    while (::sem_wait(&crash_happened) != 0) {
    }
    report(crash_signal, crashed.frames(1));
    reported = true;
  }).detach();
  const stack_t other{handler_stack.data(), 0, handler_stack.size()};
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : kCrashSignals) ::sigaction(signal, &action, nullptr);
}

std::string plugin_in(const std::vector<Frame>& stack) {
  const Frame* found = nullptr;
  for (const Frame& frame : stack) {
    if (found != nullptr && frame.file != found->file) break;
    if (frame.file.starts_with("libddprun_")) found = &frame;
  }
  return found == nullptr ? "" : text_of(*found);
}

}  // namespace ddprun::run
