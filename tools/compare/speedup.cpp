#include "tools/compare/speedup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "console/units.hpp"

namespace ddprun::compare {
namespace {

using console::Align;
using console::Table;

double workers_of(const Member& member) {
  return static_cast<double>(compare::workers_of(member.variant.loaded.experiment));
}

// One row: what it is called, ours, and what the tutorial printed for ResNet-18 on CIFAR-10 with one and with two GPUs.
struct Row {
  std::string name;
  std::string (*of)(const Figures&, const Speedup&);
  const char* tutorial_one;
  const char* tutorial_two;
};

std::string seconds(double value) {
  return console::human_time(value);
}
std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"total time", [](const Figures& f, const Speedup&) { return seconds(f.total_time); }, "25.74 s", "16.64 s"},
      {"average batch", [](const Figures& f, const Speedup&) { return seconds(f.step); }, "65.6 ms", "42.2 ms"},
      {"time saved", [](const Figures&, const Speedup& s) { return percent(s.time_saved); }, "", "35.4 %"},
      {"throughput", [](const Figures& f, const Speedup&) { return console::human_rate(f.throughput); },
       "1,953 samples/s", "3,030 samples/s"},
      {"throughput gain", [](const Figures&, const Speedup& s) { return percent(s.throughput_gain - 1); }, "",
       "55.1 %"},
      {"speed-up", [](const Figures&, const Speedup& s) { return fmt::format("{:.2f}x", s.speedup); }, "1.00x",
       "1.55x"},
      {"ideal speed-up", [](const Figures&, const Speedup& s) { return fmt::format("{:.2f}x", s.workers); }, "1.00x",
       "2.00x"},
      {"efficiency", [](const Figures&, const Speedup& s) { return percent(s.efficiency); }, "", "77.3 %"},
      {"compute", [](const Figures& f, const Speedup&) { return f.split.graph > 0 ? "-" : seconds(f.split.compute()); },
       "62.2 ms", "40.9 ms"},
      {"data wait", [](const Figures& f, const Speedup&) { return seconds(f.split.data); }, "3.40 ms", "1.30 ms"},
      {"compute share",
       [](const Figures& f, const Speedup&) {
         return f.split.graph > 0 ? "-" : percent(f.split.compute() / f.split.total());
       },
       "94.9 %", "96.8 %"},
      {"data share", [](const Figures& f, const Speedup&) { return percent(f.split.data / f.split.total()); }, "5.1 %",
       "3.2 %"},
      {"bound", [](const Figures& f, const Speedup&) { return std::string(bound_of(f.split)); }, "compute-bound",
       "compute-bound"}};
  return all;
}

}  // namespace

Speedup speedup_of(const Figures& one, const Figures& several, double workers) {
  Speedup result;
  result.workers = workers;
  result.throughput_gain = several.throughput / one.throughput;
  result.speedup = result.throughput_gain;
  result.efficiency = result.speedup / workers;
  result.time_saved = 1 - 1 / result.speedup;
  return result;
}

const char* bound_of(const Split& split) {
  if (split.graph > 0) return split.data >= split.total() / 2 ? "data-bound" : "not known";
  if (split.compute() >= split.data + split.comm) return "compute-bound";
  return split.data >= split.comm ? "data-bound" : "communication-bound";
}

std::vector<report::TitledTable> speedup_tables(const Comparison& comparison) {
  const auto& members = comparison.members;
  const auto one = std::find_if(members.begin(), members.end(), [](const Member& m) { return workers_of(m) == 1; });
  const auto is_several = [](const Member& m) { return workers_of(m) > 1; };
  if (one == members.end() || std::none_of(members.begin(), members.end(), is_several)) return {};

  std::vector<Table::Column> columns = {{"", Align::left}, {one->variant.name, Align::right}};
  for (const Member& member : members) {
    if (is_several(member)) {
      columns.push_back({fmt::format("{} ({:.0f} workers)", member.variant.name, workers_of(member)), Align::right});
    }
  }
  columns.push_back({"tutorial: 1 GPU", Align::right});
  columns.push_back({"tutorial: ddp, 2 GPUs", Align::right});
  Table table(columns);
  const Figures& base = one->typical.figures;
  for (const Row& row : rows()) {
    std::vector<std::string> cells = {row.name, row.of(base, speedup_of(base, base, 1))};
    for (const Member& member : members) {
      if (!is_several(member)) continue;
      const Figures& figures = member.typical.figures;
      cells.push_back(row.of(figures, speedup_of(base, figures, workers_of(member))));
    }
    cells.insert(cells.end(), {row.tutorial_one, row.tutorial_two});
    table.row(cells);
  }
  return {{"Speed-up over one worker (the tutorials also tell of 4 GPUs: ddp 3.8x, dp 2.5x)", table}};
}

}  // namespace ddprun::compare
