// The parts of the average step, and scaling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/console/table.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/runs.hpp"

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

// Time that no part accounts for is shown as "other", not hidden.
double other(const Summary& summary) {
  double rest = summary.avg_batch_time;
  for (const Part& part : kParts) {
    if (std::isfinite(part.value(summary))) rest -= part.value(summary);
  }
  return std::fmax(0, rest);
}

// "ddp gloo ring"; "" for a single process, so that it is the first
std::string way_of(const Summary& summary) {
  std::string way = summary.strategy == "single" ? "" : summary.strategy;
  if (!summary.backend.empty()) way += " " + summary.backend;
  if (!summary.algorithm.empty()) way += " " + summary.algorithm;
  return way;
}

using Throughputs = std::map<double, std::vector<double>>;  // measured, by width
using Ways = std::map<std::string, Throughputs>;

std::vector<Point> medians(const Throughputs& measured) {
  return tools::each(measured, [](const auto& one) { return Point{one.first, tools::median(one.second)}; });
}

// All lines start at the fewest ranks, usually a single process: `base`, the median of all runs with so few. Its table
// has what was measured, against `base`. Nothing if all runs have as many ranks.
std::optional<Chart> scaling_chart(const std::string& title, const Ways& ways, const std::string& also) {
  Throughputs all;
  std::size_t runs = 1;  // of a point
  for (const auto& [way, throughputs] : ways) {
    for (const auto& [width, values] : throughputs) {
      runs = std::max(runs, values.size());
      all[width].insert(all[width].end(), values.begin(), values.end());
    }
  }
  if (all.size() < 2) return std::nullopt;
  const Point base = medians(all).front();
  const double most = all.rbegin()->first;
  Lines lines{{"ranks (dp: devices)", Scale::linear, true}, {"throughput (samples/s)"}, {}, true};
  console::Table table = table_with({""}, {"ranks", "samples/s", "speed-up", "efficiency"});
  for (const auto& [way, throughputs] : ways) {
    std::vector<Point> points = medians(throughputs);
    const std::string name = way.empty() ? "single" : way;
    for (const Point point : points) {
      const double gain = point.y / base.y;
      table.row({name, figure(point.x), figure(point.y), figure(gain), console::percent(gain * base.x / point.x, 1)});
    }
    if (way.empty() && ways.size() > 1) continue;  // a single process starts the other lines
    if (points.front().x > base.x) points.insert(points.begin(), base);
    lines.series.push_back({name, points, false});
  }
  lines.series.push_back({"ideal", {base, {most, base.y * most / base.x}}, true});
  const std::string of_runs = runs == 1 ? "" : fmt::format(" Each point is the median of up to {} runs.", runs);
  Chart chart = whole_chart(title, "The dashed line is ideal scaling from the fewest ranks." + of_runs + also, lines);
  chart.table = table;
  return chart;
}

}  // namespace

std::vector<Chart> split_charts(const std::vector<NamedRun>& runs) {
  Bars times;     // one series per run
  Shares shares;  // one group per run
  for (const NamedRun& run : runs) {
    times.series.push_back({run.name, {}, {}, {}});
    shares.groups.push_back(run.name);
  }
  std::vector<Part> parts = kParts;
  parts.push_back({"other", other});
  for (const Part& part : parts) {
    BarSeries of_part{part.name, {}, {}, {}};
    for (const NamedRun& run : runs) of_part.values.push_back(part.value(run.run.summary));
    if (std::ranges::none_of(of_part.values, [](double value) { return std::isfinite(value); })) continue;
    times.groups.push_back(part.name);
    for (std::size_t i = 0; i < runs.size(); ++i) times.series[i].values.push_back(of_part.values[i]);
    shares.series.push_back(std::move(of_part));
  }
  const double largest = largest_in(times);
  if (largest <= 0) return {};
  const Unit unit = unit_of_seconds(largest);
  times.value.title = fmt::format("time per step ({})", unit.name);
  for (BarSeries& run : times.series) {
    for (double& value : run.values) value *= unit.factor;
  }
  return {half_chart("The average step", "", std::move(times)),
          half_chart("The average step, in per cent", "", std::move(shares))};
}

std::vector<Chart> scaling_charts(const std::vector<NamedRun>& runs) {
  std::map<std::pair<std::string, std::string>, Ways> experiments;
  for (const NamedRun& run : runs) {
    const Summary& summary = run.run.summary;
    if (!std::isfinite(summary.throughput)) continue;
    const auto width = static_cast<double>(std::max({summary.world, summary.devices, int64_t{1}}));  // of dp: devices
    experiments[{summary.model, summary.data}][way_of(summary)][width].push_back(summary.throughput);
  }
  const auto divides = [](const NamedRun& run) { return run.experiment && divides_cores(*run.experiment); };
  const std::string also =
      std::ranges::none_of(runs, divides)
          ? ""
          : " launch.threads = 0 divides a host's cores among its ranks: fewer ranks may have more threads each.";
  std::vector<Chart> charts;
  for (const auto& [what, ways] : experiments) {
    auto chart = scaling_chart(fmt::format("Scaling of {} on {}", what.first, what.second), ways, also);
    if (chart) charts.push_back(std::move(*chart));
  }
  return charts;
}

}  // namespace ddprun::report
