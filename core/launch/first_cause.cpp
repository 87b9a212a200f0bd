#include "launch/first_cause.hpp"

#include <csignal>
#include <cstring>
#include <tuple>

namespace ddprun::launch {
namespace {

enum class Class { signal, own_failure, echo, none };

Class class_of(ExitCode code) {
  return code == ExitCode::peer ? Class::echo : Class::own_failure;
}

Class class_of(const RankEnd& end) {
  if (end.failure) return class_of(end.failure->code);
  if (end.stopped) return Class::signal;
  if (end.killed_by_launcher) return Class::none;
  if (end.signal != 0) return Class::signal;
  if (end.exit_code != 0) return class_of(static_cast<ExitCode>(end.exit_code));
  return Class::none;
}

auto precedence(const RankEnd& end) {
  return std::tuple(class_of(end), end.failure ? end.failure->time : end.time, end.rank);
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return "killed by signal " + std::to_string(signal) + (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
}

std::string what_happened(const RankEnd& end) {
  if (end.failure) return end.failure->message;
  if (end.stopped) return "stopped by a signal and not continued; killed";
  if (end.signal == 0) return "exited with code " + std::to_string(end.exit_code);
  return signal_text(end.signal) + (end.signal == SIGKILL && end.memory_limit ? ", memory limit reached" : "");
}

bool is_known(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::ok: return false;  // a report of success is none
    case ExitCode::failure:
    case ExitCode::usage:
    case ExitCode::plugin:
    case ExitCode::rendezvous:
    case ExitCode::peer:
    case ExitCode::gate:
    case ExitCode::interrupted:
    case ExitCode::terminated: return true;
  }
  return false;
}

}  // namespace

const RankEnd* first_cause(const std::vector<RankEnd>& ends) {
  const RankEnd* first = nullptr;
  for (const RankEnd& end : ends) {
    if (class_of(end) == Class::none) continue;
    if (first == nullptr || precedence(end) < precedence(*first)) first = &end;
  }
  return first;
}

ExitCode exit_code_of(const RankEnd& cause) {
  if (!cause.failure && (cause.stopped || cause.signal != 0)) return ExitCode::peer;
  const int code = cause.failure ? static_cast<int>(cause.failure->code) : cause.exit_code;
  return is_known(code) ? static_cast<ExitCode>(code) : ExitCode::failure;
}

std::string describe(const RankEnd& cause, const std::string& host) {
  std::string text = "rank " + std::to_string(cause.rank) + " (" + host + ", pid " + std::to_string(cause.pid) + ")";
  if (cause.progress.step > 0) text += " step " + std::to_string(cause.progress.step);
  text += std::string(" phase ") + name_of(cause.progress.phase);
  if (cause.progress.bucket >= 0) text += " bucket " + std::to_string(cause.progress.bucket);
  return text + ": " + what_happened(cause);
}

}  // namespace ddprun::launch
