// The parts of the average step, and scaling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cli/console/units.hpp"
#include "record/statistics.hpp"
#include "tools/report/run_charts.hpp"
#include "tools/report/settings.hpp"

namespace ddprun::report {
namespace {

using record::Summary;

struct Part {
  const char* name;
  double (*value)(const Summary&);  // seconds
};

const std::vector<Part> kParts = {{"data wait", [](const Summary& s) { return s.avg_data_time; }},
                                  {"forward", [](const Summary& s) { return s.split.forward; }},
                                  {"backward", [](const Summary& s) { return s.split.backward; }},
                                  {"exposed communication", [](const Summary& s) { return s.split.comm; }},
                                  {"optimizer", [](const Summary& s) { return s.split.optimizer; }}};
const Part kGraph = {"CUDA graph", [](const Summary& s) { return s.split.graph; }};

const std::vector<Part> kDeviceParts = {{"replicate", [](const Summary& s) { return s.split.replicate; }},
                                        {"scatter", [](const Summary& s) { return s.split.scatter; }},
                                        {"gather", [](const Summary& s) { return s.split.gather; }},
                                        {"reduce", [](const Summary& s) { return s.split.reduce; }}};

// Time that no part accounts for is shown as "other", not hidden.
double other(const Summary& summary) {
  double rest = summary.avg_batch_time;
  const auto take = [&](const Part& part) {
    if (std::isfinite(part.value(summary))) rest -= part.value(summary);
  };
  std::for_each(kParts.begin(), kParts.end(), take);
  take(kGraph);
  return std::fmax(0, rest);
}

// With the graph only if a run has one.
std::vector<Part> parts_of(const std::vector<NamedRun>& runs) {
  std::vector<Part> parts = kParts;
  const auto has_graph = [](const NamedRun& run) { return std::isfinite(kGraph.value(run.run.summary)); };
  if (std::any_of(runs.begin(), runs.end(), has_graph)) parts.push_back(kGraph);
  parts.push_back({"other", other});
  return parts;
}

std::vector<std::string> names_of(const std::vector<NamedRun>& runs) {
  std::vector<std::string> names;
  for (const NamedRun& run : runs) names.push_back(run.name);
  return names;
}

double largest(const std::vector<NamedRun>& runs, const std::vector<Part>& parts) {
  double most = 0;
  for (const NamedRun& run : runs) {
    for (const Part& part : parts) most = std::fmax(most, part.value(run.run.summary));
  }
  return most;
}

// The parts as groups, one series per run.
Bars bars_of(const std::vector<NamedRun>& runs, const std::vector<Part>& parts) {
  const Unit unit = unit_of_seconds(largest(runs, parts));
  Bars bars;
  bars.value.title = fmt::format("time per step ({})", unit.name);
  for (const Part& part : parts) bars.groups.push_back(part.name);
  for (const NamedRun& run : runs) {
    bars.series.push_back({run.name, {}, {}, {}});
    for (const Part& part : parts) bars.series.back().values.push_back(part.value(run.run.summary) * unit.factor);
  }
  return bars;
}

Shares shares_of(const std::vector<NamedRun>& runs) {
  Shares shares{names_of(runs), {}};
  for (const Part& part : parts_of(runs)) {
    shares.series.push_back({part.name, {}, {}, {}});
    for (const NamedRun& run : runs) shares.series.back().values.push_back(part.value(run.run.summary));
  }
  return shares;
}

Bars memory_of(const std::vector<NamedRun>& runs) {
  std::size_t devices = 0;
  int64_t most = 0;
  for (const NamedRun& run : runs) {
    devices = std::max(devices, run.run.summary.memory_by_device.size());
    for (const int64_t bytes : run.run.summary.memory_by_device) most = std::max(most, bytes);
  }
  const Unit unit = unit_of_bytes(static_cast<double>(most));
  Bars bars;
  bars.value.title = fmt::format("memory ({})", unit.name);
  for (std::size_t device = 0; device < devices; ++device) bars.groups.push_back(fmt::format("device {}", device));
  for (const NamedRun& run : runs) {
    const auto& memory = run.run.summary.memory_by_device;
    bars.series.push_back({run.name, std::vector<double>(devices, NAN), {}, {}});
    std::transform(memory.begin(), memory.end(), bars.series.back().values.begin(),
                   [&](int64_t bytes) { return static_cast<double>(bytes) * unit.factor; });
  }
  return bars;
}

// The number of workers: ranks, or the devices of one process.
double width_of(const Summary& summary) {
  return static_cast<double>(std::max({summary.world, summary.devices, int64_t{1}}));
}

std::string way_of(const Summary& summary) {
  std::string way = summary.strategy == "single" ? "" : summary.strategy;
  if (!summary.backend.empty()) way += " " + summary.backend;
  if (!summary.algorithm.empty()) way += " " + summary.algorithm;
  return way;
}

// By ranks: the throughputs measured.
using Throughputs = std::map<double, std::vector<double>>;

std::vector<Point> medians(const Throughputs& measured) {
  std::vector<Point> points;
  for (const auto& [width, throughputs] : measured) points.push_back({width, record::quantile(throughputs, 0.5)});
  return points;
}

std::string name_of_way(const std::string& way) {
  return way.empty() ? "single" : way;
}

// What was measured, against the median of all runs with the fewest ranks.
console::Table scaling_table(const std::map<std::string, Throughputs>& ways, const Point& base) {
  constexpr console::Align kRight = console::Align::right;
  console::Table table({{""}, {"ranks", kRight}, {"samples/s", kRight}, {"speed-up", kRight}, {"efficiency", kRight}});
  for (const auto& [way, throughputs] : ways) {
    for (const Point point : medians(throughputs)) {
      const double gain = point.y / base.y;
      table.row({name_of_way(way), figure(point.x), figure(point.y), figure(gain),
                 fmt::format("{:.1f} %", 100 * gain * base.x / point.x)});
    }
  }
  return table;
}

// All lines start at the fewest ranks: usually a single process.
Chart scaling_chart(const std::string& title, const std::map<std::string, Throughputs>& ways, const std::string& also) {
  Throughputs fewest;
  double most = 0;
  std::size_t runs = 1;  // of a point
  for (const auto& [way, throughputs] : ways) {
    for (const auto& [width, values] : throughputs) {
      runs = std::max(runs, values.size());
      fewest[width].insert(fewest[width].end(), values.begin(), values.end());
      most = std::max(most, width);
    }
  }
  const Point base = medians(fewest).front();
  Lines lines{{"ranks (dp: devices)", Scale::linear, true}, {"throughput (samples/s)"}, {}, true};
  for (const auto& [way, throughputs] : ways) {
    if (way.empty() && ways.size() > 1) continue;  // a single process starts the other lines
    std::vector<Point> points = medians(throughputs);
    if (points.front().x > base.x) points.insert(points.begin(), base);
    lines.series.push_back({name_of_way(way), points, false});
  }
  lines.series.push_back({"ideal", {base, {most, base.y * most / base.x}}, true});
  const std::string of_runs = runs == 1 ? "" : fmt::format(" Each point is the median of up to {} runs.", runs);
  Chart chart = whole_chart(title, "The dashed line is ideal scaling from the fewest ranks." + of_runs + also, lines);
  chart.table = scaling_table(ways, base);
  return chart;
}

}  // namespace

std::vector<Chart> split_charts(const std::vector<NamedRun>& runs) {
  const std::vector<Part> parts = parts_of(runs);
  if (!(largest(runs, parts) > 0)) return {};
  return {half_chart("The average step", "", bars_of(runs, parts)),
          half_chart("The average step, in per cent", "", shares_of(runs))};
}

std::vector<Chart> device_charts(const std::vector<NamedRun>& runs) {
  std::vector<NamedRun> divided;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(divided),
               [](const NamedRun& run) { return run.run.summary.devices > 0; });
  std::vector<Chart> charts;
  if (largest(divided, kDeviceParts) > 0) {
    charts.push_back(half_chart("Between the devices", "Parts of the communication of strategy dp.",
                                bars_of(divided, kDeviceParts)));
  }
  const Bars memory = memory_of(divided);
  if (!memory.groups.empty()) charts.push_back(half_chart("Memory by device", "", memory));
  return charts;
}

std::vector<Chart> scaling_charts(const std::vector<NamedRun>& runs) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, Throughputs>> experiments;
  for (const NamedRun& run : runs) {
    const Summary& summary = run.run.summary;
    if (!std::isfinite(summary.throughput)) continue;
    experiments[{summary.model, summary.data}][way_of(summary)][width_of(summary)].push_back(summary.throughput);
  }
  std::string also;
  for (const std::string& difference : differences(runs)) {
    const bool is_of_the_chart = difference.starts_with("strategy.kind") || difference.starts_with("launch.nproc") ||
                                 difference.starts_with("comm.");
    if (is_of_the_chart) continue;
    also += (also.empty() ? " The runs also differ in " : ", ") + difference.substr(0, difference.find(" ("));
  }
  if (!also.empty()) also += ": see the first lines.";
  const auto divides = [](const NamedRun& run) { return run.experiment && divides_cores(*run.experiment); };
  if (std::any_of(runs.begin(), runs.end(), divides)) {
    also += " launch.threads = 0 divides a host's cores among its ranks: fewer ranks may have more threads each.";
  }
  std::vector<Chart> charts;
  for (const auto& [what, ways] : experiments) {
    std::map<double, int> widths;
    for (const auto& [way, throughputs] : ways) {
      for (const auto& [width, values] : throughputs) ++widths[width];
    }
    if (widths.size() > 1)
      charts.push_back(scaling_chart(fmt::format("Scaling of {} on {}", what.first, what.second), ways, also));
  }
  return charts;
}

}  // namespace ddprun::report
