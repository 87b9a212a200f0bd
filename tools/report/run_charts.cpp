#include "tools/report/run_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>

#include "cli/console/units.hpp"
#include "record/run_dir.hpp"
#include "record/statistics.hpp"

namespace ddprun::report {
namespace {

constexpr std::size_t kMostPoints = 400;  // of a line over steps
constexpr std::size_t kMostRanks = 4;     // with a line each

using record::EpochRecord;
using record::StepRecord;

Axis epochs() {
  return {"epoch", Scale::linear, true};
}
Axis steps() {
  return {"step", Scale::linear, true};
}

bool has_points(const Lines& lines) {
  return std::any_of(lines.series.begin(), lines.series.end(), [](const LineSeries& s) { return !s.points.empty(); });
}

// A line without points would appear in the legend.
void add(Lines& lines, const std::string& name, std::vector<Point> points) {
  std::erase_if(points, [](Point point) { return !std::isfinite(point.y); });
  if (!points.empty()) lines.series.push_back({name, std::move(points), false});
}

std::vector<Point> over_epochs(const record::Run& run, const std::function<double(const EpochRecord&)>& value) {
  std::vector<Point> points;
  for (const EpochRecord& epoch : run.epochs) points.push_back({static_cast<double>(epoch.epoch), value(epoch)});
  return points;
}

struct Curve {
  const char* name;  // "train", "test"
  std::function<double(const EpochRecord&)> value;
};

// For one run a chart with all curves, for several runs one chart per curve.
void add_curves(std::vector<Chart>& charts, const std::vector<NamedRun>& runs, const std::string& title,
                const std::string& unit, const std::vector<Curve>& curves) {
  const auto add_chart = [&](const std::string& of, const Lines& lines) {
    if (has_points(lines)) charts.push_back(half_chart(of, "", lines));
  };
  if (runs.size() == 1) {
    Lines lines{epochs(), {unit}, {}, false};
    for (const Curve& curve : curves) add(lines, curve.name, over_epochs(runs[0].run, curve.value));
    return add_chart(title, lines);
  }
  for (const Curve& curve : curves) {
    Lines lines{epochs(), {unit}, {}, false};
    for (const NamedRun& run : runs) add(lines, run.name, over_epochs(run.run, curve.value));
    add_chart(fmt::format("{}, {}", title, curve.name), lines);
  }
}

// For every step, from the records of all ranks.
std::vector<Point> over_steps(const record::Run& run,
                              const std::function<double(const std::vector<const StepRecord*>&)>& value) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < run.steps[0].size(); ++i) {
    std::vector<const StepRecord*> ranks;
    for (const auto& rank : run.steps) {
      if (i < rank.size()) ranks.push_back(&rank[i]);
    }
    points.push_back({static_cast<double>(run.steps[0][i].step), value(ranks)});
  }
  return points;
}

// The mean over the samples of all ranks.
double mean_loss(const std::vector<const StepRecord*>& ranks) {
  double sum = 0, samples = 0;
  for (const StepRecord* step : ranks) {
    if (step->samples == 0) continue;
    sum += step->loss * static_cast<double>(step->samples);
    samples += static_cast<double>(step->samples);
  }
  return sum / samples;
}

// In per cent, of all ranks' samples.
double accuracy(const std::vector<const StepRecord*>& ranks) {
  double correct = 0, samples = 0;
  for (const StepRecord* step : ranks) {
    if (step->samples == 0) continue;
    correct += step->correct;
    samples += static_cast<double>(step->samples);
  }
  return 100 * correct / samples;
}

// Of one rank, in seconds.
std::vector<Point> times_of(const std::vector<StepRecord>& rank) {
  std::vector<Point> points;
  for (const StepRecord& step : rank) points.push_back({static_cast<double>(step.step), step.total});
  return points;
}

// Of the rank with the largest total.
std::vector<Point> times_of_slowest_rank(const record::Run& run) {
  const auto total = [](const std::vector<StepRecord>& rank) {
    return std::accumulate(rank.begin(), rank.end(), 0.0,
                           [](double sum, const auto& step) { return sum + step.total; });
  };
  const auto slowest = std::max_element(run.steps.begin(), run.steps.end(),
                                        [&](const auto& a, const auto& b) { return total(a) < total(b); });
  return slowest == run.steps.end() ? std::vector<Point>() : times_of(*slowest);
}

// "runs/a", "runs/a/" and "." in it all have the name "a".
std::string last_part(const std::string& dir) {
  const auto path = std::filesystem::absolute(dir).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

struct Measured {
  std::string name;
  std::vector<Point> points;
};

Chart chart_over_steps(const std::string& title, const std::string& unit, const std::vector<Measured>& measured,
                       const std::string& note, double factor) {
  Lines lines{steps(), {unit}, {}, false};
  std::size_t fewest = 0, most = 0;  // steps of a point
  for (const Measured& one : measured) {
    std::size_t window = 1;
    std::vector<Point> points = thinned(one.points, kMostPoints, window);
    for (Point& point : points) point.y *= factor;
    add(lines, one.name, points);
    const std::size_t rest = one.points.size() % std::max<std::size_t>(window, 1);  // of the last point
    fewest = std::min(fewest == 0 ? window : fewest, rest == 0 ? window : rest);
    most = std::max(most, window);
  }
  std::string whole_note;
  if (most > 1) {
    whole_note = fmt::format("Each point is the median of {} steps.",
                             fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most));
  }
  if (!note.empty() && !whole_note.empty()) whole_note += ' ';
  return half_chart(title, whole_note + note, lines);
}

std::vector<Measured> measured_times(const std::vector<NamedRun>& runs) {
  std::vector<Measured> measured;
  const auto& ranks = runs[0].run.steps;
  if (runs.size() == 1 && ranks.size() > 1 && ranks.size() <= kMostRanks) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      measured.push_back({fmt::format("rank {}", rank), times_of(ranks[rank])});
    }
    return measured;
  }
  for (const NamedRun& run : runs) measured.push_back({run.name, times_of_slowest_rank(run.run)});
  return measured;
}

// The displayed name of a run's folder: without the time, but unique among runs of the same time.
std::string without_time(const std::string& folder) {
  const auto parts = record::parse_run_name(folder);
  if (!parts) return folder;
  return parts->number == 1 ? parts->name : fmt::format("{}-{}", parts->name, parts->number);
}

}  // namespace

std::vector<NamedRun> named(std::vector<record::Run> runs) {
  std::vector<std::string> longer, shorter;
  for (const record::Run& run : runs) {
    longer.push_back(last_part(run.dir));
    shorter.push_back(without_time(longer.back()));
  }
  const auto differ = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) == names.end();
  };
  std::vector<NamedRun> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = differ(shorter) ? shorter[i] : differ(longer) ? longer[i] : runs[i].dir;
    all.push_back({name, std::move(runs[i])});
  }
  return all;
}

std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most, std::size_t& window) {
  window = (points.size() + most - 1) / most;
  if (window <= 1) return points;
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size(); begin += window) {
    const std::size_t end = std::min(points.size(), begin + window);
    std::vector<double> values;
    for (std::size_t i = begin; i < end; ++i) values.push_back(points[i].y);
    kept.push_back({points[begin + (end - begin) / 2].x, record::quantile(values, 0.5)});
  }
  return kept;
}

std::vector<Chart> learning_charts(const std::vector<NamedRun>& runs) {
  std::vector<Chart> charts;
  add_curves(charts, runs, "Loss", "loss",
             {{"train", [](const EpochRecord& epoch) { return epoch.train_loss; }},
              {"validation", [](const EpochRecord& epoch) { return epoch.validation_loss; }},
              {"test", [](const EpochRecord& epoch) { return epoch.test_loss; }}});
  add_curves(charts, runs, "Accuracy", "accuracy (%)",
             {{"train", [](const EpochRecord& epoch) { return 100 * epoch.train_accuracy; }},
              {"validation", [](const EpochRecord& epoch) { return 100 * epoch.validation_accuracy; }},
              {"test", [](const EpochRecord& epoch) { return 100 * epoch.test_accuracy; }}});
  std::vector<Measured> losses, accuracies, rates;
  bool rate_changes = false;
  for (const NamedRun& run : runs) {
    if (run.run.steps.empty() || run.run.steps[0].empty()) continue;
    losses.push_back({run.name, over_steps(run.run, mean_loss)});
    accuracies.push_back({run.name, over_steps(run.run, accuracy)});
    rates.push_back({run.name, over_steps(run.run, [](const auto& ranks) { return ranks[0]->lr; })});
    for (const Point& rate : rates.back().points) {
      rate_changes = rate_changes || (std::isfinite(rate.y) && rate.y != rates.back().points[0].y);
    }
  }
  for (Chart chart : {chart_over_steps("Training loss over steps", "loss", losses, "", 1),
                      chart_over_steps("Training accuracy over steps", "accuracy (%)", accuracies, "", 1)}) {
    if (has_points(std::get<Lines>(chart.content))) charts.push_back(std::move(chart));
  }
  if (rate_changes) charts.push_back(chart_over_steps("Learning rate", "learning rate", rates, "", 1));
  return charts;
}

std::vector<Chart> step_time_charts(const std::vector<NamedRun>& runs) {
  std::vector<double> all;
  const std::vector<Measured> measured = measured_times(runs);
  for (const Measured& one : measured) {
    for (const Point point : one.points) all.push_back(point.y);
  }
  if (all.empty()) return {};
  const Unit unit = unit_of_seconds(record::quantile(all, 0.5));
  const std::string title = fmt::format("step time ({})", unit.name);
  const bool by_rank = runs.size() == 1 && measured.size() > 1;
  const bool one_rank =
      std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.run.steps.size() <= 1; });
  const std::string note =
      by_rank || one_rank
          ? ""
          : "The rank with the largest total time of each run; the tables have the average step of rank 0.";
  Histogram histogram{{title}, {}};
  for (const Measured& one : measured) {
    histogram.series.push_back({one.name, {}, {}, {}});
    for (const Point point : one.points) histogram.series.back().values.push_back(point.y * unit.factor);
  }
  return {
      chart_over_steps("Step time", title, measured, note, unit.factor),
      half_chart("Distribution of the step time",
                 "All steps; the last bin includes all longer steps." + (note.empty() ? "" : " " + note), histogram)};
}

}  // namespace ddprun::report
