#include "tools/report/collectives.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <tuple>

#include "base/enumerated.hpp"
#include "cli/console/units.hpp"

namespace ddprun::report {
namespace {

using record::CollectiveCall;
using record::RankCollectives;

constexpr console::Align kRight = console::Align::right;
constexpr double kTogether = 5;             // seconds within which the files of one request are written
constexpr int64_t kBefore = 3, kAfter = 2;  // calls around the first divergence

// "12:00:01.123", by the clock of this machine.
std::string clock_time(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm local{};
  localtime_r(&whole, &local);
  return fmt::format("{:%H:%M:%S}.{:03}", local, static_cast<int>((seconds - std::floor(seconds)) * 1000));
}

std::string numbered(const CollectiveCall& call) {
  return fmt::format("{}: {}", call.number, describe(call));
}

// The last call of a rank with at least this progress; "" if there is none.
std::string last_call(const RankCollectives& file, Progress progress, double time) {
  const auto found = std::find_if(file.calls.rbegin(), file.calls.rend(),
                                  [&](const CollectiveCall& call) { return progress_of(&call, time) >= progress; });
  return found == file.calls.rend() ? "" : numbered(*found);
}

TitledTable ranks_table(const CollectivesByRank& files, double time) {
  console::Table table(
      {{"rank", kRight}, {"host"}, {"last finished"}, {"last started"}, {"step", kRight}, {"written"}, {"because"}});
  for (const auto& [rank, file] : files) {
    const auto& calls = file.calls;
    const std::string step = calls.empty() || calls.back().step < 1 ? "" : std::to_string(calls.back().step);
    table.row({std::to_string(rank), file.host, last_call(file, Progress::finished, time),
               last_call(file, Progress::started, time), step, clock_time(file.written), file.reason});
  }
  for (const int rank : missing_ranks(files)) table.row({std::to_string(rank), "", "no file", "no file"});
  return {"The last collectives of each rank", table};
}

// The state at this time.
std::string state_of(const CollectiveCall& call, Progress progress, double time) {
  if (progress == Progress::finished) return call.state;
  return call.state == "failed" && call.end <= time ? "failed" : "started";
}

// The end of a call is known to a few milliseconds only.
std::string duration_text(double seconds) {
  constexpr double kExact = 0.01;
  return seconds < kExact ? "< 10 ms" : console::human_time(seconds);
}

// One row for all ranks with the same call in the same state.
void add_rows(console::Table& table, const CollectivesByRank& files, int64_t number, double time) {
  struct Group {
    std::vector<int> ranks;
    double start = 0, longest = 0;
  };
  std::map<std::tuple<std::string, std::string>, Group> groups;
  for (const auto& [rank, file] : files) {
    const CollectiveCall* call = find_call(file, number);
    const Progress progress = progress_of(call, time);
    const bool begun = progress != Progress::not_started;
    Group& group = groups[{call == nullptr ? "" : describe(*call), begun ? state_of(*call, progress, time) : ""}];
    group.ranks.push_back(static_cast<int>(rank));
    if (!begun) continue;
    group.start = group.start == 0 ? call->start : std::min(group.start, call->start);
    group.longest = std::max(group.longest, std::isnan(call->duration) ? time - call->start : call->duration);
  }
  for (const auto& [key, group] : groups) {
    const auto& [what, state] = key;
    const bool begun = !state.empty();
    table.row({std::to_string(number), what, rank_list(group.ranks), begun ? state : "not started",
               begun ? clock_time(group.start) : "", begun ? duration_text(group.longest) : ""});
  }
}

TitledTable calls_table(const CollectivesByRank& files, int64_t around, double time) {
  console::Table table({{"call", kRight}, {"collective"}, {"ranks"}, {"state"}, {"started"}, {"took", kRight}});
  for (int64_t number = around - kBefore; number <= around + kAfter; ++number) {
    const bool any = std::ranges::any_of(files, [&](const auto& item) { return find_call(item.second, number); });
    if (any) add_rows(table, files, number, time);
  }
  return {"The collectives around call " + std::to_string(around), table};
}

}  // namespace

std::string collectives_line(const CollectivesByRank& files) {
  std::string text = find_divergence(files).text;
  text[0] = static_cast<char>(std::toupper(text[0]));
  text += '.';
  const auto missing = missing_ranks(files);
  if (!missing.empty()) text += fmt::format(" No file of {}.", rank_list(missing));
  const auto written = [](const auto& item) { return item.second.written; };
  const double apart = written(*std::ranges::max_element(files, {}, written)) - common_time(files);
  if (apart > kTogether) {
    text += fmt::format(" The files were written {} apart: some may be from an earlier SIGUSR2.",
                        console::human_time(apart));
  }
  return text;
}

Section collectives_section(const CollectivesByRank& files) {
  const double time = common_time(files);
  const auto first = std::ranges::find_if(files, [&](const auto& item) { return item.second.written == time; });
  Section section{"Collectives", {collectives_line(files)}, {}, {}};
  section.paragraphs.push_back(
      fmt::format("The states are those at {}, when rank {} wrote the first of the files. The backend is {}.",
                  clock_time(time), first->first, first->second.backend));
  section.tables.push_back(calls_table(files, find_divergence(files).number, time));
  section.tables.push_back(ranks_table(files, time));
  return section;
}

}  // namespace ddprun::report
