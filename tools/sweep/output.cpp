#include "tools/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/console/program.hpp"
#include "cli/console/units.hpp"
#include "record/fields.hpp"

namespace ddprun::sweep {
namespace {

using nlohmann::ordered_json;

constexpr const char* kOutcomes[] = {"finished", "stopped", "failed"};

// The set whose results are shown: the one that chooses.
std::string set_of(const std::string& by) {
  return by.starts_with("validation.") ? "validation" : "test";
}

std::string key_of(const std::string& vary) {
  return vary.substr(0, vary.find('='));
}

}  // namespace

double metric_of(const TrialResult& result, const std::string& by) {
  if (by == "throughput") return result.throughput;
  return result.epochs.empty() ? record::kAbsent : record::metric_of(result.epochs.back(), by);
}

void sort_results(std::vector<TrialResult>& results, const std::string& by) {
  std::stable_sort(results.begin(), results.end(), [&](const TrialResult& a, const TrialResult& b) {
    if (a.outcome != b.outcome) return a.outcome < b.outcome;
    const double x = metric_of(a, by), y = metric_of(b, by);
    if (!std::isfinite(x) || !std::isfinite(y)) return std::isfinite(x);
    return by.ends_with(".loss") ? x < y : x > y;
  });
}

std::string outcome_text(const TrialResult& result, const std::string& by) {
  if (result.outcome == Outcome::failed) return "failed: " + result.cause;
  std::string text = result.outcome == Outcome::finished ? "finished" : "stopped";
  if (!result.epochs.empty()) text += fmt::format(" after epoch {}", result.epochs.back().epoch);
  const std::string set = set_of(by);
  const double loss = metric_of(result, set + ".loss"), accuracy = metric_of(result, set + ".accuracy");
  if (std::isfinite(loss)) text += ", " + set + " loss " + report::figure(loss);
  if (std::isfinite(accuracy)) text += ", " + set + " accuracy " + console::percent(accuracy, 2);
  return text;
}

std::vector<std::string> about_best(const Request& request, const std::vector<TrialResult>& results) {
  const TrialResult& best = results.front();
  if (best.outcome != Outcome::finished) return {};
  std::string command = "ddprun --config " + console::shell_word(best.variant.file);
  for (const std::string& path : request.running.plugin_paths) command += " --plugin-path " + console::shell_word(path);
  for (const std::string& override_ : best.variant.overrides) command += " --set " + console::shell_word(override_);
  std::vector<std::string> lines = {
      fmt::format("Best by {}: {}, {}.", request.by, best.variant.name, outcome_text(best, request.by)),
      "Again: " + command};
  if (request.by.starts_with("test.")) {
    lines.push_back(
        "The test set chose it, so its results are better than those on new data; data.validation avoids that.");
  }
  lines.push_back(
      "Each setting had one run: settings that are close to each other can change places with another seed.");
  return lines;
}

console::Table sweep_table(const Request& request, const std::vector<TrialResult>& results) {
  using console::Align;
  std::vector<console::Table::Column> columns;
  for (const std::string& vary : request.vary) columns.push_back({key_of(vary), Align::left});
  const std::string set = set_of(request.by);
  for (const std::string& title : {set + " loss", set + " accuracy", std::string("throughput"), std::string("time")})
    columns.push_back({title, Align::right});
  columns.push_back({"outcome", Align::left});
  console::Table table(columns);
  for (const TrialResult& result : results) {
    std::vector<std::string> cells = result.values;
    const double accuracy = metric_of(result, set + ".accuracy");
    cells.push_back(report::figure(metric_of(result, set + ".loss")));
    cells.push_back(std::isfinite(accuracy) ? console::percent(accuracy, 2) : "-");
    cells.push_back(console::human_rate(result.throughput));
    cells.push_back(console::human_time(result.total_time));
    cells.push_back(result.outcome == Outcome::failed    ? "failed: " + result.cause
                    : result.outcome == Outcome::stopped ? fmt::format("stopped after epoch {}", result.epochs.size())
                                                         : "finished");
    table.row(cells);
  }
  return table;
}

std::string sweep_json(const Request& request, const std::vector<TrialResult>& results) {
  ordered_json object = {{"ddprun_sweep", 1},    {"config", request.config}, {"by", request.by},
                         {"vary", request.vary}, {"seed", request.seed},     {"trials", ordered_json::array()}};
  object["random"] = request.random ? ordered_json(*request.random) : ordered_json();
  for (const TrialResult& result : results) {
    ordered_json values = ordered_json::object();
    for (std::size_t i = 0; i < result.values.size(); ++i) values[key_of(request.vary[i])] = result.values[i];
    object["trials"].push_back({{"name", result.variant.name},
                                {"values", values},
                                {"outcome", kOutcomes[static_cast<std::size_t>(result.outcome)]},
                                {"cause", result.cause},
                                {"epochs", result.epochs.size()},
                                {"throughput", result.throughput},
                                {"total_time", result.total_time},
                                {"folder", result.dir}});
    for (const char* metric : {"validation.loss", "validation.accuracy", "test.loss", "test.accuracy"})
      object["trials"].back()[metric] = metric_of(result, metric);
  }
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

report::Page sweep_page(const Request& request, const std::vector<TrialResult>& results) {
  const std::string set = set_of(request.by);
  report::Lines lines{{"epoch", report::Scale::linear, true}, {set + " loss"}, {}};
  for (const TrialResult& result : results) {
    report::LineSeries series{result.variant.name, {}};
    for (const auto& epoch : result.epochs)
      series.points.push_back({static_cast<double>(epoch.epoch), record::metric_of(epoch, set + ".loss")});
    if (!series.points.empty()) lines.series.push_back(std::move(series));
  }
  report::Section section{"Trials", {}, {{"Best first, by " + request.by, sweep_table(request, results)}}, {}};
  if (!lines.series.empty()) {
    const std::string title = set == "test" ? "Test loss over epochs" : "Validation loss over epochs";
    section.charts.push_back(report::whole_chart(title, "", std::move(lines)));
  }
  return {"Sweep of " + request.config, about_best(request, results), {section}};
}

}  // namespace ddprun::sweep
