#include "launch/first_cause.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

#include "base/text.hpp"

namespace ddprun::launch {
namespace {

enum class Class { signal, own_failure, hung, echo, none };

Class class_of(ExitCode code) {
  return code == ExitCode::peer ? Class::echo : Class::own_failure;
}

Class class_of(const RankEnd& end) {
  if (end.failure) return class_of(end.failure->code);
  if (end.stopped || end.lost > 0) return Class::signal;
  if (end.hung) return Class::hung;
  if (end.killed_by_launcher) return Class::none;
  // An exception that nothing catches ends a program so, also that of a lost peer.
  if (end.signal == SIGABRT) return Class::own_failure;
  if (end.signal != 0) return Class::signal;
  if (end.exit_code != 0) return class_of(static_cast<ExitCode>(end.exit_code));
  return Class::none;
}

auto precedence(const RankEnd& end) {
  return std::tuple(class_of(end), end.failure ? end.failure->time : end.time, end.rank);
}

std::string what_happened(const RankEnd& end) {
  if (end.failure) return end.failure->message;
  if (end.stopped) return "stopped by a signal and not continued; killed";
  if (end.hung) return "no progress, and the others waited for it";
  if (end.lost > 0 && end.silent) return "lost: this host does not answer any more";
  if (end.lost > 0) return "lost: the connection has ended; the process was killed, or its host has restarted";
  if (end.signal == 0) return "exited with code " + std::to_string(end.exit_code);
  std::string text = "killed by signal " + std::to_string(end.signal);
  if (const char* name = ::sigabbrev_np(end.signal); name != nullptr) text += " (SIG" + std::string(name) + ")";
  if (!end.crash.empty()) text += " in " + end.crash;
  return text + (end.signal == SIGKILL && end.memory_limit ? ", memory limit reached" : "");
}

// "ranks 4 and 5 (node2)"
std::string lost_ranks(const RankEnd& node) {
  std::vector<int> ranks(static_cast<std::size_t>(node.lost));
  std::iota(ranks.begin(), ranks.end(), node.rank);
  return rank_list(ranks) + " (" + node.host + ")";
}

// "; ranks 4 and 5 (node2) are lost too"
std::string lost_too(const RankEnd& cause, const std::vector<RankEnd>& ends) {
  std::string line;
  for (const RankEnd& end : ends) {
    if (end.failure && class_of(end) == Class::own_failure) line += "; " + describe(end);
    if (end.lost == 0 || end.rank == cause.rank) continue;
    line += "; " + lost_ranks(end) + (end.lost == 1 ? " is" : " are") + " lost too";
  }
  return line;
}

// "; rank 0 reported: ..."
std::string first_echo(const std::vector<RankEnd>& ends) {
  const auto time_of = [](const RankEnd& end) { return end.failure ? end.failure->time : end.time.max(); };
  const auto first = std::ranges::min_element(ends, {}, time_of);
  if (first == ends.end() || !first->failure) return "";
  return "; rank " + std::to_string(first->rank) + " reported: " + first->failure->message;
}

}  // namespace

const RankEnd* first_cause(const std::vector<RankEnd>& ends) {
  const auto first = std::ranges::min_element(ends, {}, precedence);
  return first == ends.end() || class_of(*first) == Class::none ? nullptr : &*first;
}

bool is_consequence(const RankEnd& end) {
  return class_of(end) == Class::echo;
}

ExitCode exit_code_of(const RankEnd& cause, bool users_program) {
  if (!cause.failure && (cause.stopped || cause.hung || cause.lost > 0 || cause.signal != 0)) return ExitCode::peer;
  const int code = cause.failure ? static_cast<int>(cause.failure->code) : cause.exit_code;
  if (!cause.failure && users_program) return static_cast<ExitCode>(code);
  const bool is_known = (code > 0 && code <= static_cast<int>(ExitCode::gate)) ||
                        code == static_cast<int>(ExitCode::interrupted) ||
                        code == static_cast<int>(ExitCode::terminated);
  return is_known ? static_cast<ExitCode>(code) : ExitCode::failure;  // a report of success is not a failure
}

std::string describe(const RankEnd& cause) {
  if (cause.lost > 0) return lost_ranks(cause) + ": " + what_happened(cause);
  return "rank " + std::to_string(cause.rank) + " (" + cause.host + ", pid " + std::to_string(cause.pid) + ") " +
         text(cause.progress) + ": " + what_happened(cause);
}

std::string elsewhere(const RankEnd& cause, const std::vector<RankEnd>& ends) {
  if (cause.lost > 0) return lost_too(cause, ends);
  if (class_of(cause) == Class::hung) return first_echo(ends);
  if (!cause.failure || !is_consequence(cause)) return "";
  std::map<std::string, std::vector<int>> by_position;
  for (const RankEnd& end : ends) {
    if (end.lost == 0) by_position[text(end.progress)].push_back(end.rank);
  }
  by_position.erase(text(cause.progress));
  std::vector<std::pair<std::string, std::vector<int>>> positions(by_position.begin(), by_position.end());
  std::ranges::stable_sort(positions, {}, [](const auto& each) { return each.second.size(); });
  std::string line;
  for (const auto& [position, ranks] : positions) {
    const std::string verb = !line.empty() ? "" : ranks.size() == 1 ? " was" : " were";
    line += (line.empty() ? "; " : ", ") + rank_list(ranks) + verb + " in " + position;
  }
  return line;
}

}  // namespace ddprun::launch
