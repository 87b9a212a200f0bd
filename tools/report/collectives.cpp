#include "tools/report/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ctime>

#include "base/text.hpp"
#include "cli/console/table.hpp"

namespace ddprun::report {
namespace {

using comm::CallShape;
using comm::CallState;
using comm::RankCollectives;
using comm::RecordedCall;
using console::human_time;
using Ranks = std::vector<int>;

constexpr double kTogether = 5;              // seconds within which the files of one request are written
constexpr uint64_t kBefore = 3, kAfter = 2;  // calls around the first divergence

const RankCollectives& first_written(const CollectivesByRank& files) {
  return std::ranges::min_element(files, {}, [](const auto& item) { return item.second.written; })->second;
}

// The ranks below the world size without a file.
Ranks missing_ranks(const CollectivesByRank& files) {
  Ranks missing;
  for (int64_t rank = 0; rank < files.begin()->second.world; ++rank) {
    if (!files.contains(rank)) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

// "allreduce (float32 x 100, sum)"; comm::describe() adds the number.
std::string describe_without_number(const RecordedCall& call) {
  CallShape shape = call.shape;
  shape.number = 0;
  return describe(shape);
}

// The call of this number; null if the file does not have it.
const RecordedCall* find_call(const RankCollectives& file, uint64_t number) {
  const auto number_of = [](const RecordedCall& call) { return call.shape.number; };
  const auto found = std::ranges::lower_bound(file.calls, number, {}, number_of);
  return found != file.calls.end() && found->shape.number == number ? &*found : nullptr;
}

enum class Progress { not_started, started, finished };

// Of a call, or null, at this time. A failed call is one that has started and not finished.
Progress progress_of(const RecordedCall* call, double time) {
  if (call == nullptr || call->start > time) return Progress::not_started;
  const bool ended = call->state == CallState::finished || call->state == CallState::queued;
  return ended && call->end() <= time ? Progress::finished : Progress::started;
}

// The last call of a rank with at least this progress; null if there is none.
const RecordedCall* last_call(const RankCollectives& file, Progress progress, double time) {
  const auto found = std::find_if(file.calls.rbegin(), file.calls.rend(),
                                  [&](const RecordedCall& call) { return progress_of(&call, time) >= progress; });
  return found == file.calls.rend() ? nullptr : &*found;
}

// One call on all ranks that have a file.
struct Column {
  std::map<std::string, Ranks> called;  // by description, at any time
  Ranks not_started, started, finished;
  const RecordedCall* first = nullptr;  // that of the rank that started it first
};

Column column_at(const CollectivesByRank& files, uint64_t number, double time) {
  Column column;
  for (const auto& [rank, file] : files) {
    const RecordedCall* call = find_call(file, number);
    const auto id = static_cast<int>(rank);
    if (call != nullptr) column.called[describe_without_number(*call)].push_back(id);
    if (call != nullptr && (column.first == nullptr || call->start < column.first->start)) column.first = call;
    Ranks* const by_progress[] = {&column.not_started, &column.started, &column.finished};
    by_progress[static_cast<std::size_t>(progress_of(call, time))]->push_back(id);
  }
  return column;
}

std::string describe_difference(const Column& column, uint64_t number) {
  std::string text;
  for (const auto& [what, ranks] : column.called)
    text += (text.empty() ? "" : ", ") + rank_list(ranks) + " called " + what;
  return fmt::format("call {} differs: {}", number, text);
}

std::string has(const Ranks& ranks) {
  return rank_list(ranks) + (ranks.size() == 1 ? " has" : " have");
}

std::string describe_missing_start(const CollectivesByRank& files, const Column& column, double time) {
  Ranks started = column.started;
  started.insert(started.end(), column.finished.begin(), column.finished.end());
  std::ranges::sort(started);
  const int behind = column.not_started.front();
  std::string text =
      fmt::format("{} not started {}, which {} started up to {} before; ", has(column.not_started),
                  describe(column.first->shape), rank_list(started), human_time(time - column.first->start));
  const RecordedCall* last = last_call(files.at(behind), Progress::started, time);
  if (last == nullptr) return text + fmt::format("rank {} has called none", behind);
  text += fmt::format("the last call of rank {} was {}", behind, describe(last->shape));
  return last->step > 0 ? text + fmt::format(", in step {}", last->step) : text;
}

std::string describe_missing_end(const Column& column, double time) {
  return fmt::format("all ranks with a file have started {}, up to {} before, and {} finished it",
                     describe(column.first->shape), human_time(time - column.first->start),
                     column.finished.empty() ? "none has" : has(column.started) + " not");
}

// "12:00:01.123", by the clock of this machine.
std::string clock_time(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::localtime(whole),
                     static_cast<int>((seconds - std::floor(seconds)) * 1000));
}

// At this time.
std::string state_of(const RecordedCall* call, double time) {
  const Progress progress = progress_of(call, time);
  if (progress == Progress::not_started) return "";
  const bool failed = call->state == CallState::failed && call->end() <= time;
  return name_of(progress == Progress::finished || failed ? call->state : CallState::started);
}

// One row for all ranks with the same call in the same state.
void add_rows(console::Table& table, const CollectivesByRank& files, uint64_t number, double time) {
  struct Group {
    Ranks ranks;
    double start = 0, longest = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const auto& [rank, file] : files) {
    const RecordedCall* call = find_call(file, number);
    const std::string state = state_of(call, time);
    Group& group = groups[{call == nullptr ? "" : describe_without_number(*call), state}];
    group.ranks.push_back(static_cast<int>(rank));
    if (state.empty()) continue;
    group.start = group.start == 0 ? call->start : std::min(group.start, call->start);
    group.longest = std::max(group.longest, std::isnan(call->duration) ? time - call->start : call->duration);
  }
  for (const auto& [key, group] : groups) {
    std::vector<std::string> cells = {std::to_string(number), key.first, rank_list(group.ranks)};
    if (key.second.empty()) {
      cells.push_back("not started");
    } else {
      // The end of a call is known to a few milliseconds only.
      const std::string took = group.longest < 0.01 ? "< 10 ms" : human_time(group.longest);
      cells.insert(cells.end(), {key.second, clock_time(group.start), took});
    }
    table.row(cells);
  }
}

TitledTable calls_table(const CollectivesByRank& files, uint64_t around, double time) {
  constexpr console::Align kRight = console::Align::right;
  console::Table table({{"call", kRight}, {"collective"}, {"ranks"}, {"state"}, {"started"}, {"took", kRight}});
  for (uint64_t number = around - std::min(around, kBefore); number <= around + kAfter; ++number) {
    const bool any = std::ranges::any_of(files, [&](const auto& item) { return find_call(item.second, number); });
    if (any) add_rows(table, files, number, time);
  }
  return {"The collectives around call " + std::to_string(around), table};
}

TitledTable ranks_table(const CollectivesByRank& files, double time) {
  constexpr console::Align kRight = console::Align::right;
  console::Table table(
      {{"rank", kRight}, {"host"}, {"last finished"}, {"last started"}, {"step", kRight}, {"written"}, {"because"}});
  for (const auto& [rank, file] : files) {
    const auto last = [&, &file = file](Progress progress) {  // Clang 14 captures no structured binding
      const RecordedCall* call = last_call(file, progress, time);
      return call == nullptr ? "" : fmt::format("{}: {}", call->shape.number, describe_without_number(*call));
    };
    const int64_t step = file.calls.empty() ? 0 : file.calls.back().step;
    table.row({std::to_string(rank), file.host, last(Progress::finished), last(Progress::started),
               step < 1 ? "" : std::to_string(step), clock_time(file.written), file.reason});
  }
  for (const int rank : missing_ranks(files)) table.row({std::to_string(rank), "", "no file", "no file"});
  return {"The last collectives of each rank", table};
}

}  // namespace

Divergence find_divergence(const CollectivesByRank& files) {
  const double time = first_written(files).written;
  // Some ranks no longer have the calls before `first`.
  uint64_t first = 1, last = 0;
  for (const auto& [rank, file] : files) {
    if (file.calls.empty()) continue;
    first = std::max(first, file.calls.front().shape.number);
    last = std::max(last, file.calls.back().shape.number);
  }
  for (uint64_t number = first; number <= last; ++number) {
    const Column column = column_at(files, number, time);
    if (column.called.size() > 1) return {number, describe_difference(column, number)};
    if (column.started.empty() && column.finished.empty()) {
      if (number == first && first > 1)
        return {number, "the files were written at different times and have no calls in common"};
      last = number - 1;
      break;
    }
    if (!column.not_started.empty()) return {number, describe_missing_start(files, column, time)};
    if (!column.started.empty()) return {number, describe_missing_end(column, time)};
  }
  return {last, fmt::format("all ranks with a file have finished the same calls, up to {}", last)};
}

std::string collectives_line(const CollectivesByRank& files) {
  std::string text = find_divergence(files).text + '.';
  text[0] = static_cast<char>(std::toupper(text[0]));
  const auto missing = missing_ranks(files);
  if (!missing.empty()) text += fmt::format(" No file of {}.", rank_list(missing));
  double last = 0;
  for (const auto& [rank, file] : files) last = std::max(last, file.written);
  if (const double apart = last - first_written(files).written; apart > kTogether) {
    text += fmt::format(" The files were written {} apart: some may be from an earlier SIGUSR2.", human_time(apart));
  }
  return text;
}

Section collectives_section(const CollectivesByRank& files) {
  const RankCollectives& first = first_written(files);
  const double time = first.written;
  return {"Collectives",
          {collectives_line(files),
           fmt::format("The states are those at {}, when rank {} wrote the first of the files. The backend is {}.",
                       clock_time(time), first.rank, first.backend)},
          {calls_table(files, find_divergence(files).number, time), ranks_table(files, time)},
          {}};
}

}  // namespace ddprun::report
