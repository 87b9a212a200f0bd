#include "tools/compare/output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/console/table.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::compare {
namespace {

using console::human_time;
using console::percent;

double workers_of(const Member& member) {
  return static_cast<double>(compare::workers_of(member.variant.loaded.experiment));
}

// The first variant with one worker, over which the others are compared, or null.
const Member* one_worker(const Comparison& comparison) {
  const auto found = std::ranges::find(comparison.members, 1, workers_of);
  return found == comparison.members.end() ? nullptr : &*found;
}

// One row: its title, and its figure for a variant.
struct Row {
  const char* name;
  std::string (*of)(const Figures&, const Speedup&);
};

const Row kRows[] = {
    {"total time", [](const Figures& f, const Speedup&) { return human_time(f.total_time); }},
    {"average batch", [](const Figures& f, const Speedup&) { return human_time(f.step); }},
    {"time saved", [](const Figures&, const Speedup& s) { return percent(s.time_saved(), 1); }},
    {"throughput", [](const Figures& f, const Speedup&) { return console::human_rate(f.throughput); }},
    {"throughput gain", [](const Figures&, const Speedup& s) { return percent(s.speedup - 1, 1); }},
    {"speed-up", [](const Figures&, const Speedup& s) { return fmt::format("{:.2f}x", s.speedup); }},
    {"ideal speed-up", [](const Figures&, const Speedup& s) { return fmt::format("{:.2f}x", s.workers); }},
    {"efficiency", [](const Figures&, const Speedup& s) { return percent(s.efficiency(), 1); }},
    {"compute", [](const Figures& f, const Speedup&) { return human_time(f.split.compute()); }},
    {"data wait", [](const Figures& f, const Speedup&) { return human_time(f.split.data); }},
    {"compute share", [](const Figures& f, const Speedup&) { return percent(f.split.compute() / f.split.total(), 1); }},
    {"data share", [](const Figures& f, const Speedup&) { return percent(f.split.data / f.split.total(), 1); }},
    {"bound", [](const Figures& f, const Speedup&) { return std::string(bound_of(f.split)); }}};

}  // namespace

Speedup speedup_of(const Figures& one, const Figures& several, double workers) {
  return {workers, several.throughput / one.throughput};
}

const char* bound_of(const Split& split) {
  if (split.compute() >= split.data + split.comm) return "compute-bound";
  return split.data >= split.comm ? "data-bound" : "communication-bound";
}

std::vector<std::pair<const Member*, Speedup>> speedups_of(const Comparison& comparison) {
  std::vector<std::pair<const Member*, Speedup>> speedups;
  const Member* const one = one_worker(comparison);
  for (const Member& member : comparison.members) {
    if (one == nullptr || workers_of(member) == 1) continue;
    speedups.emplace_back(&member, speedup_of(one->typical.figures, member.typical.figures, workers_of(member)));
  }
  return speedups;
}

report::TitledTable speedup_table(const Comparison& comparison) {
  const Member& one = *one_worker(comparison);
  const auto speedups = speedups_of(comparison);
  std::vector<std::string> titles = {one.variant.name};
  for (const auto& [member, speedup] : speedups) {
    titles.push_back(fmt::format("{} ({:.0f} workers)", member->variant.name, speedup.workers));
  }
  console::Table table = report::table_with({""}, titles);
  for (const Row& row : kRows) {
    std::vector<std::string> cells = {row.name, row.of(one.typical.figures, {})};
    for (const auto& [member, speedup] : speedups) cells.push_back(row.of(member->typical.figures, speedup));
    table.row(cells);
  }
  return {std::string("Speed-up over one worker") +
              (report::divides_cores(one.variant.loaded.experiment)
                   ? "; launch.threads = 0 divides a host's cores among its workers: one worker may have more threads"
                   : ""),
          table};
}

}  // namespace ddprun::compare
