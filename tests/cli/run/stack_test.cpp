#include "cli/run/stack.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace {

using ddprun::run::Frame;

std::atomic<bool> spinning{false};
bool stop = false;

[[gnu::noinline]] void spin_here() {
  spinning = true;
  // No call of a function, also without optimization.
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
  }
}

[[gnu::noinline]] int overflow_here(int depth) {
  volatile char large[4096];
  large[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : overflow_here(depth + 1) + large[0];
}

[[gnu::noinline]] void abort_here() {
  std::abort();
}

bool has(const std::vector<Frame>& stack, const std::string& function) {
  return std::any_of(stack.begin(), stack.end(),
                     [&](const Frame& frame) { return frame.function.find(function) != std::string::npos; });
}

// What a child process that ends by a signal reports through a pipe, and that signal.
std::pair<std::string, int> crash_of(void (*crash)()) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ddprun::run::report_crashes([&](int signal, const std::vector<Frame>& stack) {
      const std::string text = std::to_string(signal) + "\n" + text_of(stack);
      (void)!::write(ends[1], text.data(), text.size());
    });
    crash();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {text, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

TEST_CASE("the stack of another thread names its functions, the innermost first") {
  std::thread thread(spin_here);
  while (!spinning) std::this_thread::yield();
  const std::vector<Frame> stack = ddprun::run::stack_of(thread.native_handle());
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  thread.join();
  REQUIRE(has(stack, "spin_here"));
#ifndef DDPRUN_TSAN  // which delays a signal, and calls the handler from its own code
  CHECK(has({stack.front()}, "spin_here"));
  CHECK(stack.front().file == "test_rank");
#endif
}

TEST_CASE("a crash is reported with its stack, and the signal still ends the process") {
  const auto [aborted, abort_signal] = crash_of(abort_here);
  CHECK(abort_signal == SIGABRT);
  CHECK(aborted.starts_with(std::to_string(SIGABRT) + "\n"));
  CHECK_MESSAGE(aborted.find("abort_here") != std::string::npos, aborted);
  const auto [killed, segv] = crash_of([] { ::raise(SIGSEGV); });
  CHECK(segv == SIGSEGV);
  CHECK(killed.starts_with(std::to_string(SIGSEGV) + "\n"));
}

TEST_CASE("a stack that overflows is reported too") {
  const auto [text, signal] = crash_of([] { std::exit(overflow_here(1)); });
  CHECK(signal == SIGSEGV);
  CHECK_MESSAGE(text.find("overflow_here") != std::string::npos, text);
}

TEST_CASE("the plugin of a stack is the innermost one, and its function the one that was called") {
  const std::vector<Frame> stack = {{"memcpy", "libc.so.6"},
                                    {"decode", "libddprun_dataset_faces.so"},
                                    {"fetch", "libddprun_dataset_faces.so"},
                                    {"Loader::run", "libddprun.so.1"},
                                    {"forward", "libddprun_model_linear.so"}};
  CHECK(ddprun::run::plugin_in(stack) == "fetch (libddprun_dataset_faces.so)");
  CHECK(ddprun::run::plugin_in({{"main", "ddprun"}}).empty());
}

}  // namespace
