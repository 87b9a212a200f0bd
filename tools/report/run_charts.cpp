// Learning and step time of runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "record/fields.hpp"
#include "record/run_dir.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::report {
namespace {

using record::EpochRecord;
using record::StepRecord;

constexpr std::size_t kMostPoints = 400;  // of a line over steps
constexpr std::size_t kMostRanks = 4;     // with a line each

// A chart of the lines that have points; any other would appear in the legend. Nothing without such a line.
void add_chart(std::vector<Chart>& charts, const std::string& title, const std::string& note, Lines lines) {
  for (LineSeries& series : lines.series)
    std::erase_if(series.points, [](Point point) { return !std::isfinite(point.y); });
  std::erase_if(lines.series, [](const LineSeries& series) { return series.points.empty(); });
  if (!lines.series.empty()) charts.push_back(half_chart(title, note, std::move(lines)));
}

// A metric of epochs on all sets: for one run a chart with all sets, for several runs one chart per set.
void add_charts_over_epochs(std::vector<Chart>& charts, const std::vector<NamedRun>& runs, const std::string& title,
                            const std::string& unit, const std::string& metric, double factor) {
  const Lines empty{{"epoch", Scale::linear, true}, {unit}, {}, false};
  Lines all = empty;
  for (const std::string set : {"train", "validation", "test"}) {
    Lines of_set = empty;
    for (const NamedRun& run : runs) {
      LineSeries series{runs.size() == 1 ? set : run.name, {}};
      for (const EpochRecord& epoch : run.run.epochs)
        series.points.push_back({static_cast<double>(epoch.epoch), factor * record::metric_of(epoch, set + metric)});
      (runs.size() == 1 ? all : of_set).series.push_back(std::move(series));
    }
    add_chart(charts, fmt::format("{}, {}", title, set), "", of_set);
  }
  add_chart(charts, title, "", all);
}

// For every step the mean over the samples of all ranks; `sum` is that of one rank's samples.
LineSeries over_steps(const NamedRun& run, const std::function<double(const StepRecord&)>& sum) {
  LineSeries series{run.name, {}};
  for (std::size_t i = 0; !run.run.steps.empty() && i < run.run.steps[0].size(); ++i) {
    double total = 0, samples = 0;
    for (const auto& rank : run.run.steps) {
      if (i >= rank.size() || rank[i].samples == 0) continue;
      total += sum(rank[i]);
      samples += static_cast<double>(rank[i].samples);
    }
    series.points.push_back({static_cast<double>(run.run.steps[0][i].step), total / samples});
  }
  return series;
}

LineSeries over_steps(const std::string& name, const std::vector<StepRecord>& rank, double StepRecord::*member) {
  LineSeries series{name, {}};
  for (const StepRecord& step : rank) series.points.push_back({static_cast<double>(step.step), step.*member});
  return series;
}

// At most kMostPoints: the medians of windows of equal length. Returns that length.
std::size_t reduce(std::vector<Point>& points) {
  const std::size_t window = (points.size() + kMostPoints - 1) / kMostPoints;
  if (window <= 1) return window;
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size(); begin += window) {
    std::vector<double> values;
    for (std::size_t i = begin; i < std::min(points.size(), begin + window); ++i) values.push_back(points[i].y);
    kept.push_back({points[begin + values.size() / 2].x, tools::median(values)});
  }
  points = std::move(kept);
  return window;
}

void add_chart_over_steps(std::vector<Chart>& charts, const std::string& title, const std::string& unit,
                          std::vector<LineSeries> all, const std::string& note = "") {
  std::size_t most = 0;  // steps of a point
  for (LineSeries& one : all) most = std::max(most, reduce(one.points));
  std::string whole_note;
  if (most > 1)
    whole_note = fmt::format("Each point is the median of up to {} steps.{}", most, note.empty() ? "" : " ");
  add_chart(charts, title, whole_note + note, {{"step", Scale::linear, true}, {unit}, std::move(all), false});
}

// In seconds.
std::vector<LineSeries> step_times(const std::vector<NamedRun>& runs) {
  std::vector<LineSeries> times;
  const auto& ranks = runs[0].run.steps;
  if (runs.size() == 1 && ranks.size() > 1 && ranks.size() <= kMostRanks) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      times.push_back(over_steps(fmt::format("rank {}", rank), ranks[rank], &StepRecord::total));
    return times;
  }
  for (const NamedRun& run : runs) {
    if (!run.run.steps.empty()) times.push_back(over_steps(run.name, tools::slowest_rank(run.run), &StepRecord::total));
  }
  return times;
}

}  // namespace

std::vector<NamedRun> named(std::vector<tools::Run> runs) {
  // From the shortest: without the time, but unique among runs of the same time; the folder ("runs/a", "runs/a/" and
  // "." in it all have the name "a"); its path.
  std::vector<std::string> names[3];
  for (const tools::Run& run : runs) {
    const auto path = std::filesystem::absolute(run.dir).lexically_normal();
    const std::string folder = (path.has_filename() ? path : path.parent_path()).filename();
    const auto parts = record::parse_run_name(folder);
    const std::string number = parts && parts->number > 1 ? fmt::format("-{}", parts->number) : "";
    names[0].push_back(parts ? parts->name + number : folder);
    names[1].push_back(folder);
    names[2].push_back(run.dir);
  }
  const auto* unique = std::find_if(names, names + 2, [](std::vector<std::string> all) {
    std::ranges::sort(all);
    return std::ranges::adjacent_find(all) == all.end();
  });
  std::vector<NamedRun> all;
  for (std::size_t i = 0; i < runs.size(); ++i) all.push_back({(*unique)[i], std::move(runs[i])});
  return all;
}

std::vector<Chart> learning_charts(const std::vector<NamedRun>& runs) {
  std::vector<Chart> charts;
  add_charts_over_epochs(charts, runs, "Loss", "loss", ".loss", 1);
  add_charts_over_epochs(charts, runs, "Accuracy", "accuracy (%)", ".accuracy", 100);
  std::vector<LineSeries> losses, accuracies, rates;
  bool rate_changes = false;
  for (const NamedRun& run : runs) {
    if (run.run.steps.empty()) continue;
    losses.push_back(over_steps(run, [](const auto& step) { return step.loss * static_cast<double>(step.samples); }));
    accuracies.push_back(over_steps(run, [](const auto& step) { return 100 * step.correct; }));
    rates.push_back(over_steps(run.name, run.run.steps[0], &StepRecord::lr));
    for (const Point& rate : rates.back().points)
      rate_changes = rate_changes || (std::isfinite(rate.y) && rate.y != rates.back().points[0].y);
  }
  add_chart_over_steps(charts, "Training loss over steps", "loss", losses);
  add_chart_over_steps(charts, "Training accuracy over steps", "accuracy (%)", accuracies);
  if (rate_changes) add_chart_over_steps(charts, "Learning rate", "learning rate", rates);
  return charts;
}

std::vector<Chart> step_time_charts(const std::vector<NamedRun>& runs) {
  std::vector<LineSeries> times = step_times(runs);
  std::vector<double> all;
  for (const LineSeries& one : times) {
    for (const Point point : one.points) all.push_back(point.y);
  }
  if (all.empty()) return {};
  const Unit unit = unit_of_seconds(tools::median(all));
  const std::string title = fmt::format("step time ({})", unit.name);
  Histogram histogram{{title}, {}};
  for (LineSeries& one : times) {
    histogram.series.push_back({one.name, {}, {}, {}});
    for (Point& point : one.points) histogram.series.back().values.push_back(point.y *= unit.factor);
  }
  const bool by_rank = runs.size() == 1 && times.size() > 1;
  const bool one_rank = std::ranges::all_of(runs, [](const auto& run) { return run.run.steps.size() <= 1; });
  const std::string note =
      by_rank || one_rank
          ? ""
          : "The rank with the largest total time of each run; the tables have the average step of rank 0.";
  std::vector<Chart> charts;
  add_chart_over_steps(charts, "Step time", title, std::move(times), note);
  charts.push_back(half_chart("Distribution of the step time",
                              "All steps; the last bin includes all longer steps." + (note.empty() ? "" : " " + note),
                              histogram));
  return charts;
}

}  // namespace ddprun::report
