#include "tools/predict/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/console/table.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/chart.hpp"

namespace ddprun::predict {
namespace {

using console::human_bytes;
using console::human_time;
using console::percent;
using nlohmann::ordered_json;

struct FitError {
  double median = 0, most = 0;
};

FitError error_of(const FittedLink& link) {
  const auto sizes = tools::each(link.link.misfits, [](const Misfit& misfit) { return std::abs(misfit.error); });
  return {tools::median(sizes), std::ranges::max(sizes)};
}

console::Table table_of(const Method& method) {
  console::Table table = report::table_with({}, {"ranks", "hosts", "step", "samples/s", "efficiency", "exposed"});
  for (const Predicted& row : method.rows) {
    const std::string hosts = fmt::format("{} x {}", row.shape.hosts, row.shape.per_host);
    table.row({std::to_string(row.shape.ranks()), hosts, human_time(row.step), report::figure(row.throughput),
               percent(row.efficiency, 1), human_time(row.exposed)});
  }
  return table;
}

console::Table table_of_links(const Forecast& forecast) {
  console::Table table = report::table_with({"link"}, {"latency", "bandwidth", "rows", "error of the fit", "at most"});
  for (const FittedLink& link : forecast.links) {
    const FitError error = error_of(link);
    table.row({link.text(), link.link.alpha > 0 ? human_time(link.link.alpha) : "-",
               console::human_bandwidth(1 / link.link.beta), std::to_string(link.rows.size()), percent(error.median, 1),
               percent(error.most, 1)});
  }
  return table;
}

std::string about_step(const Forecast& forecast) {
  double bytes = 0;
  for (const Bucket& bucket : forecast.recording.buckets) bytes += bucket.bytes;
  const StepParts& step = forecast.typical;
  return fmt::format(
      "{}: without communication, a recorded step of one rank took {} (forward {}, backward {}, optimizer and the rest "
      "{}); it sent {} in {}.",
      forecast.recording.name, human_time(step.total()), human_time(step.forward), human_time(step.backward),
      human_time(step.optimizer), human_bytes(static_cast<int64_t>(bytes)),
      console::several(std::ssize(forecast.recording.buckets), "bucket"));
}

std::string about_amdahl(const Forecast& forecast) {
  const double samples = forecast.recording.samples;
  const std::string text = fmt::format("Amdahl: {} of this step (the optimizer) would not get shorter with more ranks.",
                                       percent(forecast.serial(), 1));
  if (samples <= 1) return text + " More ranks cannot divide its only sample.";
  return text + fmt::format(
                    " Without communication, {:.0f} ranks with one of its samples each would be {:.1f} times as fast "
                    "as one rank.",
                    samples, forecast.limit());
}

std::string about_best(const Method& method) {
  const std::string text = "Prediction for ranks that divide the samples of this step, with " + method.text() + ": ";
  if (method.best.ranks == 1) return text + "none of these numbers of ranks is faster than one rank.";
  return text + fmt::format("of these numbers, {} ranks are the fastest, {:.1f} times as fast as one rank.",
                            method.best.ranks, method.best.times);
}

// What the reader must not miss.
std::vector<std::string> notes(const Forecast& forecast) {
  std::vector<std::string> notes;
  for (const FittedLink& link : forecast.links) {
    if (link.link.alpha > 0) continue;
    notes.push_back(
        fmt::format("{}: these times show no latency; to predict for many ranks, measure smaller vectors too, "
                    "such as --sizes 1K,4K.",
                    link.text()));
  }
  for (const std::string& reason : forecast.left_out) notes.push_back("Left out: " + reason + ".");
  return notes;
}

ordered_json json_of_link(const FittedLink& link) {
  const FitError error = error_of(link);
  return {{"backend", link.backend},      {"algorithm", link.name},     {"within", link.is_within},
          {"alpha", link.link.alpha},     {"beta", link.link.beta},     {"rows", link.rows.size()},
          {"median_error", error.median}, {"largest_error", error.most}};
}

ordered_json json_of_row(const Predicted& row) {
  return {{"ranks", row.shape.ranks()},
          {"hosts", row.shape.hosts},
          {"ranks_per_host", row.shape.per_host},
          {"step", row.step},
          {"exposed", row.exposed},
          {"throughput", row.throughput},
          {"efficiency", row.efficiency}};
}

ordered_json json_of_method(const Method& method) {
  return {{"backend", method.backend},
          {"algorithm", method.name},
          {"speed_up", {{"times", method.best.times}, {"ranks", method.best.ranks}}},
          {"rows", tools::each(method.rows, json_of_row)}};
}

}  // namespace

std::string text(const Forecast& forecast) {
  std::string text = fmt::format("{}\n\n{}", about_step(forecast), table_of_links(forecast).printed());
  for (const Method& method : forecast.methods)
    text += fmt::format("\n{}\n{}", method.text(), table_of(method).printed(2));
  text += fmt::format("\n{}\n", about_amdahl(forecast));
  for (const Method& method : forecast.methods) text += fmt::format("{}\n", about_best(method));
  for (const std::string& note : notes(forecast)) text += fmt::format("{}\n", note);
  return text;
}

std::string to_json(const Forecast& forecast, const std::vector<std::string>& command) {
  const StepParts& step = forecast.typical;
  const auto json_of_bucket = [](const Bucket& bucket) {
    return ordered_json{{"bytes", bucket.bytes}, {"remaining", bucket.remaining}};
  };
  const ordered_json object = {{"ddprun_predict", 1},
                               {"command", command},
                               {"step",
                                {{"forward", step.forward},
                                 {"backward", step.backward},
                                 {"optimizer", step.optimizer},
                                 {"samples", forecast.recording.samples},
                                 {"buckets", tools::each(forecast.recording.buckets, json_of_bucket)}}},
                               {"serial", forecast.serial()},
                               {"links", tools::each(forecast.links, json_of_link)},
                               {"methods", tools::each(forecast.methods, json_of_method)}};
  return object.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::predict
