// A page with every kind of chart, with texts that would break it if they were not escaped.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tools/report/page.hpp"

namespace ddprun::testing {

inline constexpr const char* kHostile = "</script><script>document.body.dataset.broken=1</script><!-- & \"x\" 'y'";

inline std::vector<double> some_times(double typical, unsigned seed) {
  std::mt19937 random(seed);
  std::gamma_distribution<double> more(2, typical / 10);
  std::vector<double> times(500);
  for (double& time : times) time = typical + more(random);
  return times;
}

inline report::LineSeries line_of(const std::string& name, const std::vector<double>& values) {
  report::LineSeries series{name, {}};
  for (std::size_t i = 0; i < values.size(); ++i) series.points.push_back({static_cast<double>(i + 1), values[i]});
  return series;
}

inline report::LineSeries bandwidth(const std::string& name, double latency, double rate) {
  report::LineSeries series{name, {}};
  for (double size = 4; size <= 67108864; size *= 4)
    series.points.push_back({size, size / (latency + size / rate) / 1e9});
  return series;
}

inline report::Timeline some_timeline() {
  report::Timeline timeline{
      {"time in the step (ms)"}, {"rank 0: step", "rank 0: buckets", "rank 1: step", "rank 1: buckets"}, {}};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const double late = 0.3 * static_cast<double>(rank);
    timeline.spans.push_back({2 * rank, "forward", "forward", late, 5 + late});
    timeline.spans.push_back({2 * rank, "backward", "backward", 5 + late, 15 + late});
    timeline.spans.push_back({2 * rank, "optimizer", "optimizer", 17.5, 18.5});
    for (int bucket = 0; bucket < 4; ++bucket) {
      const double begin = 7.5 + 2.5 * bucket;
      timeline.spans.push_back(
          {2 * rank + 1, "allreduce", "bucket " + std::to_string(bucket) + ", 25.0 MiB", begin, begin + 2.2});
    }
  }
  return timeline;
}

inline report::Chart some_bars() {
  report::Bars bars;
  bars.value.title = "time (ms)";
  bars.groups = {"data", "forward", "backward", "exposed communication", "optimizer"};
  bars.series.push_back({"gloo", {0.0622, 4.09, 8.123, 3.4, 0.13}, {}, {}});
  bars.series.push_back({"ucx", {0.0034, 4.1, NAN, 0.02, 0.13}, {}, {}});
  return report::half_chart("Breakdown of the average step", "", bars);
}

inline report::Chart some_shares() {
  report::Shares shares{{"gloo", "ucx"}, {}};
  shares.series.push_back({"data", {0.0622, 0.0034}, {}, {}});
  shares.series.push_back({"forward", {4.09, 4.1}, {}, {}});
  shares.series.push_back({"backward", {8.1, 8.0}, {}, {}});
  shares.series.push_back({"communication", {3.4, 0.02}, {}, {}});
  return report::half_chart("The same in per cent", "", shares);
}

inline report::Section comparison() {
  using namespace report;
  const std::vector<std::string> variants = {"comm.backend = gloo, comm.algorithm = ring", "ucx", kHostile};
  console::Table table({{"name"}, {"value", console::Align::right}});
  table.row({kHostile, "1,234"});
  Section section{"Comparison", {kHostile}, {{kHostile, table}}, {}};
  Bars total;
  total.value.title = "s";
  total.groups = variants;
  total.series.push_back({"", {25.74, 16.64, 32.545}, {}, {}});
  section.charts.push_back(half_chart("Total time", "", total));
  Bars gain;
  gain.value.title = "times";
  gain.groups = variants;
  gain.line = 1;
  gain.series.push_back({"", {1, 1.547, 0.79}, {0.99, 1.5, 0.7}, {1.01, 1.6, 0.88}});
  section.charts.push_back(half_chart("Performance gain", "Against the first.", gain));
  section.charts.push_back(some_bars());
  section.charts.push_back(some_shares());
  return section;
}

inline report::Section curves() {
  using namespace report;
  const std::vector<double> slow = some_times(12.4, 1), fast = some_times(9.7, 2);
  Section section{"Curves", {}, {}, {}};
  Lines loss{{"epoch", Scale::linear, true}, {"loss"}, {}, false};
  loss.series = {line_of("gloo, train", {2.3, 1.1, 0.7, 0.5}), line_of("gloo, test", {2.2, 1.2, 0.8, 0.7})};
  loss.series.push_back(line_of(kHostile, {2.3, 1.09, 0.71, 0.52}));
  section.charts.push_back(half_chart("Loss", "", loss));
  Lines scaling{{"ranks", Scale::linear, true}, {"images/s"}, {line_of("measured", {1952, 3029, 4200, 5100})}, true};
  scaling.series.push_back({"ideal", {{1, 1952}, {4, 7808}}, true});
  section.charts.push_back(half_chart("Scaling", "", scaling));
  const Lines times{{"step", Scale::linear, true}, {"time (ms)"}, {line_of("rank 0", slow), line_of("rank 1", fast)}};
  section.charts.push_back(half_chart("Step time", "", times));
  Histogram spread{{"time (ms)"}, {}};
  spread.series.push_back({"rank 0", slow, {}, {}});
  spread.series.push_back({"rank 1", fast, {}, {}});
  section.charts.push_back(half_chart("Distribution", "", spread));
  Lines bandwidths{{"message size", Scale::log2, false, true}, {"busbw (GB/s)", Scale::log10}, {}, false};
  bandwidths.series = {bandwidth("gloo ring", 60e-6, 2.1e9), bandwidth("ucx ring", 3e-6, 6e9)};
  section.charts.push_back(whole_chart("Bandwidth", "", bandwidths));
  section.charts.push_back(whole_chart("One step", "Step 20.", some_timeline()));
  return section;
}

inline report::Page some_page() {
  report::Page page{kHostile, {kHostile, "Three variants."}, {}};
  page.sections = {comparison(), curves()};
  return page;
}

}  // namespace ddprun::testing
