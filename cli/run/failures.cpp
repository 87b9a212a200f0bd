#include "cli/run/failures.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

#include "cli/run/stack.hpp"
#include "ddp/share.hpp"
#include "launch/failure.hpp"
#include "launch/net/address.hpp"

namespace ddprun::run {
namespace {

const Rendezvous* rendezvous_of_process = nullptr;

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
  Error error(code, "an exception that no code catches" + (where.empty() ? "" : ", in " + where) + ": " +
                        ddp::current_error().what());
  log::error(std::string(error.what()) + "; the stack:\n" + text_of(stack));
  error = ddp::first_cause(*rendezvous_of_process, error);
  const ExitCode reported = launch::report_failure(error.code(), error.what());
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(reported));
}

}  // namespace

void report_crashes(const launch::World& world, const Rendezvous& rendezvous) {
  rendezvous_of_process = &rendezvous;
  std::set_terminate(on_terminate);
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of the file size then fails as on a full disk
  report_crashes([world](int signal, const std::vector<Frame>& stack) {
    const std::string where = plugin_in(stack);
    launch::report_crash(world.job_dir, world.rank, where);
    const char* const known = ::sigabbrev_np(signal);
    const std::string name = known != nullptr ? std::string("SIG") + known : "signal " + std::to_string(signal);
    log::error("rank " + std::to_string(world.rank) + " crashed with " + name + (where.empty() ? "" : " in " + where) +
               "; its stack:\n" + text_of(stack));
  });
}

CollectivesFile::CollectivesFile(std::shared_ptr<const comm::FlightRecorder> recorder, const launch::World& world,
                                 std::string backend, std::string run_dir, std::string log_path)
    : recorder_(std::move(recorder)),
      file_{.rank = world.rank,
            .world = world.size,
            .host = launch::host_name(),
            .pid = ::getpid(),
            .backend = std::move(backend)},
      run_dir_(std::move(run_dir)),
      log_path_(std::move(log_path)),
      exceptions_before_(std::uncaught_exceptions()),
      training_thread_(::pthread_self()),
      signals_([this](int value) { on_signal(value); }) {}

CollectivesFile::~CollectivesFile() {
  if (std::uncaught_exceptions() > exceptions_before_ && !failed_) write("this rank failed", ExitCode::failure);
}

void CollectivesFile::write(const std::string& reason, ExitCode code) noexcept {
  failed_ = true;
  write_file(reason, code == ExitCode::peer ? log::Level::info : log::Level::debug);
}

void CollectivesFile::on_signal(int value) {
  if (value == launch::kShowStack) return show_stack();
  if (failed_) return;  // the file already has the reason of the failure
  const bool job_fails = value == launch::kJobFails;
  // Only a rank that failed or was asked prints this at the level info.
  write_file(job_fails ? "another rank failed" : "SIGUSR2", job_fails ? log::Level::debug : log::Level::info);
}

void CollectivesFile::show_stack() const {
  constexpr std::size_t kShown = 8;  // more than this only hides the lines around it
  std::vector<Frame> stack = stack_of(training_thread_);
  std::string rest;
  if (stack.size() > kShown) {
    std::ofstream(log_path_, std::ios::app) << "the stack of the training thread:\n" << text_of(stack) << std::endl;
    rest = "\n  and " + std::to_string(stack.size() - kShown) + " more, in " + log_path_;
    stack.resize(kShown);
  }
  log::info("rank " + std::to_string(file_.rank) + ": the others wait for this rank; its training thread is in:\n" +
            text_of(stack) + rest);
}

void CollectivesFile::write_file(const std::string& reason, log::Level level) noexcept {
  try {
    if (recorder_ == nullptr) {
      if (!failed_) log::info("SIGUSR2: this run has one rank, and no collectives");
      return;
    }
    const std::lock_guard lock(mutex_);
    file_.reason = reason;
    file_.written = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    file_.calls = recorder_->calls();
    comm::write_collectives(run_dir_, file_);
    log::write(level, "rank " + std::to_string(file_.rank) + ": the last collectives are in " +
                          comm::collectives_path(run_dir_, file_.rank) +
                          "; ddprun report shows where the ranks diverged");
  } catch (const std::exception& error) {
    log::warning(error.what());
  }
}

}  // namespace ddprun::run
