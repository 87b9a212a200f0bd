#include "tools/compare/output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/console/units.hpp"
#include "tools/report/settings.hpp"

namespace ddprun::compare {
namespace {

using console::Align;
using console::Table;

double workers_of(const Member& member) {
  return static_cast<double>(compare::workers_of(member.variant.loaded.experiment));
}

// The first variant with one worker, over which the others are compared.
std::vector<Member>::const_iterator one_worker(const std::vector<Member>& members) {
  return std::find_if(members.begin(), members.end(), [](const Member& member) { return workers_of(member) == 1; });
}

// One row: its title, and its figure for a variant.
struct Row {
  std::string name;
  std::string (*of)(const Figures&, const Speedup&);
};

std::string seconds(double value) {
  return console::human_time(value);
}
std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"total time", [](const Figures& f, const Speedup&) { return seconds(f.total_time); }},
      {"average batch", [](const Figures& f, const Speedup&) { return seconds(f.step); }},
      {"time saved", [](const Figures&, const Speedup& s) { return percent(s.time_saved()); }},
      {"throughput", [](const Figures& f, const Speedup&) { return console::human_rate(f.throughput); }},
      {"throughput gain", [](const Figures&, const Speedup& s) { return percent(s.speedup - 1); }},
      {"speed-up", [](const Figures&, const Speedup& s) { return fmt::format("{:.2f}x", s.speedup); }},
      {"ideal speed-up", [](const Figures&, const Speedup& s) { return fmt::format("{:.2f}x", s.workers); }},
      {"efficiency", [](const Figures&, const Speedup& s) { return percent(s.efficiency()); }},
      {"compute",
       [](const Figures& f, const Speedup&) { return f.split.graph > 0 ? "-" : seconds(f.split.compute()); }},
      {"data wait", [](const Figures& f, const Speedup&) { return seconds(f.split.data); }},
      {"compute share",
       [](const Figures& f, const Speedup&) {
         return f.split.graph > 0 ? "-" : percent(f.split.compute() / f.split.total());
       }},
      {"data share", [](const Figures& f, const Speedup&) { return percent(f.split.data / f.split.total()); }},
      {"bound", [](const Figures& f, const Speedup&) { return std::string(bound_of(f.split)); }}};
  return all;
}

}  // namespace

Speedup speedup_of(const Figures& one, const Figures& several, double workers) {
  return {workers, several.throughput / one.throughput};
}

const char* bound_of(const Split& split) {
  if (split.graph > 0) return split.data >= split.total() / 2 ? "data-bound" : "not known";
  if (split.compute() >= split.data + split.comm) return "compute-bound";
  return split.data >= split.comm ? "data-bound" : "communication-bound";
}

double efficiency_of(const Comparison& comparison, const Member& member) {
  const auto one = one_worker(comparison.members);
  if (one == comparison.members.end() || workers_of(member) == 1) return record::kAbsent;
  return speedup_of(one->typical.figures, member.typical.figures, workers_of(member)).efficiency();
}

std::vector<std::pair<std::string, Speedup>> speedups_of(const Comparison& comparison) {
  std::vector<std::pair<std::string, Speedup>> speedups;
  const auto one = one_worker(comparison.members);
  if (one == comparison.members.end()) return speedups;
  for (const Member& member : comparison.members) {
    const double workers = workers_of(member);
    if (workers == 1) continue;
    speedups.emplace_back(member.variant.name, speedup_of(one->typical.figures, member.typical.figures, workers));
  }
  return speedups;
}

std::vector<report::TitledTable> speedup_tables(const Comparison& comparison) {
  const auto& members = comparison.members;
  const auto one = one_worker(members);
  const auto is_several = [](const Member& m) { return workers_of(m) > 1; };
  if (one == members.end() || std::none_of(members.begin(), members.end(), is_several)) return {};

  std::vector<Table::Column> columns = {{"", Align::left}, {one->variant.name, Align::right}};
  for (const Member& member : members) {
    if (is_several(member)) {
      columns.push_back({fmt::format("{} ({:.0f} workers)", member.variant.name, workers_of(member)), Align::right});
    }
  }
  Table table(columns);
  const Figures& base = one->typical.figures;
  for (const Row& row : rows()) {
    std::vector<std::string> cells = {row.name, row.of(base, speedup_of(base, base, 1))};
    for (const Member& member : members) {
      if (!is_several(member)) continue;
      const Figures& figures = member.typical.figures;
      cells.push_back(row.of(figures, speedup_of(base, figures, workers_of(member))));
    }
    table.row(cells);
  }
  return {{std::string("Speed-up over one worker") +
               (report::divides_cores(one->variant.loaded.experiment)
                    ? "; launch.threads = 0 divides a host's cores among its workers: one worker may have more threads"
                    : ""),
           table}};
}

}  // namespace ddprun::compare
