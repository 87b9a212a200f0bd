#include "cli/run/crashes.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "base/log.hpp"
#include "base/stack.hpp"
#include "ddp/share.hpp"
#include "launch/failure.hpp"

namespace ddprun::run {
namespace {

const Meeting* meeting_of_process = nullptr;
std::atomic<const std::function<void()>*> say_more = nullptr;  // the crash may be in another thread

void say_after_report() {
  if (const auto* const say = say_more.load()) (*say)();
}

void report(const launch::World& world, const Crash& crash) {
  const std::string where = plugin_in(crash.stack);
  launch::report_crash(world.job_dir, world.rank, where);
  const char* const name = ::sigabbrev_np(crash.signal);
  const std::string signal = name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(crash.signal);
  log::error("rank " + std::to_string(world.rank) + " crashed with " + signal + (where.empty() ? "" : " in " + where) +
             "; its stack:\n" + text_of(crash.stack));
  say_after_report();
}

// The library that threw the exception; "" if the stack does not show it.
std::string thrower_in(const std::vector<Frame>& stack) {
  const auto thrown = std::ranges::find(stack, "__cxa_throw", &Frame::function);
  const auto thrower = std::find_if(thrown, stack.end(), [](const Frame& frame) {
    return !frame.file.starts_with("libstdc++") && !frame.file.starts_with("libasan");
  });
  return thrower == stack.end() ? "" : thrower->file;
}

// For an exception that nothing catches, for example in a thread of a library.
[[noreturn]] void on_terminate() {
  if (std::current_exception() == nullptr) std::abort();
  const std::vector<Frame> stack = this_stack();
  std::string where = plugin_in(stack);
  if (where.empty()) where = thrower_in(stack);
  // A backend's own thread usually fails because a peer is gone: then that is the first cause.
  const ExitCode code = where.find("libddprun_comm_") != std::string::npos ? ExitCode::peer : ExitCode::failure;
  Error error(
      code, "an exception that no code catches" + (where.empty() ? "" : ", in " + where) + ": " + ddp::current_error().what());
  log::error(std::string(error.what()) + "; the stack:\n" + text_of(stack));
  say_after_report();
  error = ddp::first_cause(*meeting_of_process, error);
  const ExitCode reported = launch::report_failure(error.code(), error.what());
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(reported));
}

}  // namespace

void report_crashes(const launch::World& world, const Meeting& meeting) {
  meeting_of_process = &meeting;
  std::set_terminate(on_terminate);
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of the file size then fails as on a full disk
  ddprun::report_crashes([world](const Crash& crash) { report(world, crash); });
}

void after_crash(std::function<void()> say) {
  say_more = new std::function<void()>(std::move(say));  // lives as long as the process
}

}  // namespace ddprun::run
