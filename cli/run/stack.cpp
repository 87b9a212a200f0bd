#include "cli/run/stack.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <semaphore.h>
#include <ucontext.h>

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

namespace ddprun::run {
namespace {

using namespace std::chrono_literals;

constexpr int kCrashSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr auto kAnswer = 1s, kReport = 10s;  // the symbols of LibTorch take seconds on a busy machine

int ask_signal() {
  return SIGRTMIN + 3;  // one that neither glibc nor the libraries that ddprun uses take
}

// Where the thread was when the signal came; `context` is what the kernel gives a handler.
void* interrupted_at(const void* context) {
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#ifdef __x86_64__
  return reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#else
  return reinterpret_cast<void*>(machine.pc);
#endif
}

// A stack that a signal handler writes. A handler must not allocate memory.
struct Addresses {
  std::array<void*, 64> at{};
  void* interrupted = nullptr;
  std::atomic<int> count{-1};

  [[gnu::noinline]] void take(const void* context) noexcept {
    if (context != nullptr) interrupted = interrupted_at(context);
    count = ::backtrace(at.data(), static_cast<int>(at.size()));
  }

  bool wait(std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (count < 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return count >= 0;
  }

  // Without those of the handler and of what called it, of which a sanitizer has more.
  std::vector<Frame> frames_of_handler() const {
    const auto found = std::find(at.begin(), at.begin() + count, interrupted);
    return frames(found == at.begin() + count ? 0 : static_cast<int>(found - at.begin()));
  }

  std::vector<Frame> frames(int first) const {
    std::vector<Frame> result;
    for (int i = first; i < count; ++i) {
      // All but the one that was interrupted are return addresses. The call lies before, perhaps at a function's end.
      void* const here = at[static_cast<std::size_t>(i)];
      void* const address = static_cast<char*>(here) - (here == interrupted ? 0 : 1);
      Dl_info info{};
      const bool known = ::dladdr(address, &info) != 0 && info.dli_fname != nullptr;
      result.push_back({boost::stacktrace::frame(address).name(),
                        known ? std::filesystem::path(info.dli_fname).filename().string() : ""});
    }
    return result;
  }
};

Addresses asked;

void answer(int, siginfo_t*, void* context) {
  const int before = errno;
  asked.take(context);
  errno = before;
}

// What report_crashes() leaves for its handler and its thread.
Addresses crashed;
std::atomic<int> crash_signal{0};
std::atomic<bool> reported{false};
sem_t crash_happened;
std::array<char, 64 * 1024> handler_stack;  // the thread's own may be full

void on_crash(int signal, siginfo_t*, void* context) {
  int none = 0;
  if (crash_signal.compare_exchange_strong(none, signal)) {
    crashed.take(context);
    ::sem_post(&crash_happened);
  }
  for (auto waited = 0ms; !reported && waited < kReport; waited += 5ms) std::this_thread::sleep_for(5ms);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

std::string text_of(const Frame& frame) {
  return (frame.function.empty() ? "?" : frame.function) + (frame.file.empty() ? "" : " (" + frame.file + ")");
}

std::string text_of(const std::vector<Frame>& stack) {
  std::string text;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    text += (i == 0 ? "  #" : "\n  #") + std::to_string(i) + " " + text_of(stack[i]);
  }
  return text;
}

std::vector<Frame> this_stack() {
  Addresses here;
  here.take(nullptr);
  return here.frames(2);
}

std::vector<Frame> stack_of(pthread_t thread) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  void* warm_up = nullptr;
  ::backtrace(&warm_up, 1);  // its first call loads a library, which a handler must not do
  struct sigaction action {};
  action.sa_sigaction = answer;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  ::sigaction(ask_signal(), &action, nullptr);
  asked.count = -1;
  if (::pthread_kill(thread, ask_signal()) != 0 || !asked.wait(kAnswer)) return {};
  return asked.frames_of_handler();
}

void report_crashes(std::function<void(const Crash&)> report) {
  void* warm_up = nullptr;
  ::backtrace(&warm_up, 1);
  ::sem_init(&crash_happened, 0, 0);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread handles no signal
  std::thread([report = std::move(report)] {
    while (::sem_wait(&crash_happened) != 0) {
    }
    report({crash_signal, crashed.frames_of_handler()});
    reported = true;
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  const stack_t other{handler_stack.data(), 0, handler_stack.size()};
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
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
