#include "tools/report/divergence.hpp"

#include <algorithm>
#include <limits>

#include "base/enumerated.hpp"
#include "cli/console/units.hpp"

namespace ddprun::report {
namespace {

using record::CollectiveCall;
using record::RankCollectives;

// "allreduce 57 (float32 x 100, sum)", as in error messages
std::string with_number(const CollectiveCall& call) {
  return call.op + ' ' + std::to_string(call.number) + describe(call).substr(call.op.size());
}

std::string has(const std::vector<int>& ranks) {
  return rank_list(ranks) + (ranks.size() == 1 ? " has" : " have");
}

// One call on all ranks that have a file.
struct Column {
  std::map<std::string, std::vector<int>> called;  // by description, at any time
  std::vector<int> not_started, started, finished;
  const CollectiveCall* first = nullptr;  // that of the rank that started it first
};

Column look_at(const CollectivesByRank& files, int64_t number, double time) {
  Column column;
  for (const auto& [rank, file] : files) {
    const CollectiveCall* call = find_call(file, number);
    const auto id = static_cast<int>(rank);
    if (call != nullptr) column.called[describe(*call)].push_back(id);
    if (call != nullptr && (column.first == nullptr || call->start < column.first->start)) column.first = call;
    switch (progress_of(call, time)) {
      case Progress::not_started: column.not_started.push_back(id); break;
      case Progress::started: column.started.push_back(id); break;
      case Progress::finished: column.finished.push_back(id); break;
    }
  }
  return column;
}

Divergence none(int64_t last) {
  return {Divergence::Kind::none, last,
          "all ranks with a file have finished the same calls, up to " + std::to_string(last)};
}

// "; the last call of rank 1 was barrier 56, in step 7"
std::string last_call_of(const CollectivesByRank& files, int rank, double time) {
  const auto& calls = files.at(rank).calls;
  const auto last = std::find_if(calls.rbegin(), calls.rend(), [&](const auto& call) { return call.start <= time; });
  if (last == calls.rend()) return "; rank " + std::to_string(rank) + " has called none";
  std::string text = "; the last call of rank " + std::to_string(rank) + " was " + with_number(*last);
  if (last->step > 0) text += ", in step " + std::to_string(last->step);
  return text;
}

std::string describe_difference(const Column& column, int64_t number) {
  std::string text = "call " + std::to_string(number) + " differs: ";
  const char* before = "";
  for (const auto& [what, ranks] : column.called) {
    text += before + rank_list(ranks) + " called " + what;
    before = ", ";
  }
  return text;
}

std::string describe_missing_start(const CollectivesByRank& files, Column column, double time) {
  column.started.insert(column.started.end(), column.finished.begin(), column.finished.end());
  std::ranges::sort(column.started);
  return has(column.not_started) + " not started " + with_number(*column.first) + ", which " +
         rank_list(column.started) + " started up to " + console::human_time(time - column.first->start) + " before" +
         last_call_of(files, column.not_started.front(), time);
}

std::string describe_missing_end(const Column& column, double time) {
  const std::string who = column.finished.empty() ? "none has" : has(column.started) + " not";
  return "all ranks with a file have started " + with_number(*column.first) + ", up to " +
         console::human_time(time - column.first->start) + " before, and " + who + " finished it";
}

}  // namespace

double common_time(const CollectivesByRank& files) {
  double time = std::numeric_limits<double>::infinity();
  for (const auto& [rank, file] : files) time = std::min(time, file.written);
  return time;
}

std::vector<int> missing_ranks(const CollectivesByRank& files) {
  std::vector<int> missing;
  const int64_t world = files.empty() ? 0 : files.begin()->second.world;
  for (int64_t rank = 0; rank < world; ++rank) {
    if (!files.contains(rank)) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

std::string describe(const CollectiveCall& call) {
  if (call.dtype.empty()) return call.op;
  std::string text = call.op + " (" + call.dtype + " x " + std::to_string(call.count);
  if (!call.reduction.empty()) text += ", " + call.reduction;
  if (call.root >= 0) text += ", root " + std::to_string(call.root);
  if (call.memory == "cuda") text += ", cuda";
  if (call.bucket >= 0) text += ", bucket " + std::to_string(call.bucket);
  return text + ")";
}

const CollectiveCall* find_call(const RankCollectives& file, int64_t number) {
  const auto found = std::ranges::lower_bound(file.calls, number, {}, &CollectiveCall::number);
  return found != file.calls.end() && found->number == number ? &*found : nullptr;
}

Progress progress_of(const CollectiveCall* call, double time) {
  if (call == nullptr || call->start > time) return Progress::not_started;
  const bool ended = call->state == "finished" || call->state == "queued";
  return ended && call->end <= time ? Progress::finished : Progress::started;
}

Divergence find_divergence(const CollectivesByRank& files) {
  const double time = common_time(files);
  // Some ranks no longer have the calls before this one.
  int64_t first = 1, last = 0;
  for (const auto& [rank, file] : files) {
    if (file.calls.empty()) continue;
    first = std::max(first, file.calls.front().number);
    last = std::max(last, file.calls.back().number);
  }
  using Kind = Divergence::Kind;
  for (int64_t number = first; number <= last; ++number) {
    const Column column = look_at(files, number, time);
    if (column.called.size() > 1) return {Kind::differs, number, describe_difference(column, number)};
    const bool begun = !column.started.empty() || !column.finished.empty();
    if (!begun && number == first && first > 1) {
      return {Kind::none, number, "the files were written at different times and have no calls in common"};
    }
    if (!begun) return none(number - 1);
    if (!column.not_started.empty()) {
      return {Kind::not_started, number, describe_missing_start(files, column, time)};
    }
    if (!column.started.empty()) return {Kind::not_finished, number, describe_missing_end(column, time)};
  }
  return none(last);
}

}  // namespace ddprun::report
