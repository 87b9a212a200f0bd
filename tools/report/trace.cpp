#include "tools/report/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/console/table.hpp"
#include "ddprun/error.hpp"

namespace ddprun::report {
namespace {

using nlohmann::json;

// Of an event of ddprun; nothing of others.
std::optional<TraceEvent> event_of(const json& object) {
  const auto name = object.find("name"), phase = object.find("ph"), args = object.find("args");
  if (name == object.end() || phase == object.end() || args == object.end()) return std::nullopt;
  const bool of_bucket = *name == "allreduce" || *name == "ready";
  const bool named = of_bucket || *name == "forward" || *name == "backward" || *name == "optimizer";
  if (!named || *phase != "X" || !args->contains("step")) return std::nullopt;
  TraceEvent event{*name, object.at("pid"), args->at("step")};
  if (of_bucket) args->at("bucket").get_to(event.bucket);
  if (of_bucket) event.bytes = args->value("bytes", event.bytes);
  object.at("ts").get_to(event.begin);
  event.end = event.begin + object.at("dur").get<double>();
  return event;
}

}  // namespace

std::vector<TraceEvent> read_trace(const std::string& path) {
  try {
    const json trace = json::parse(std::ifstream(path));
    std::vector<TraceEvent> events;
    for (const json& event : trace.is_array() ? trace : trace.at("traceEvents")) {
      if (auto ours = event_of(event)) events.push_back(std::move(*ours));
    }
    return events;
  } catch (const json::exception& error) {
    throw Error(ExitCode::usage, path + ": not a trace of ddprun: " + error.what());
  }
}

std::optional<Chart> step_timeline(const std::string& run_dir) {
  const std::string path = (std::filesystem::path(run_dir) / "trace" / "trace.json").string();
  if (!std::filesystem::exists(path)) return std::nullopt;
  std::vector<TraceEvent> events = read_trace(path);
  std::erase_if(events, [](const TraceEvent& event) { return event.name == "ready"; });
  if (std::ranges::none_of(events, [](auto& event) { return event.name == "forward"; })) return std::nullopt;
  const int64_t step = std::ranges::max_element(events, {}, &TraceEvent::step)->step;
  std::erase_if(events, [&](const TraceEvent& event) { return event.step != step; });
  const double first = std::ranges::min_element(events, {}, &TraceEvent::begin)->begin;
  std::ranges::sort(events, {}, [](const TraceEvent& event) { return std::pair(event.rank, event.begin); });
  Timeline timeline{{"time in the step (ms)"}, {}, {}};
  std::optional<int64_t> rank;
  for (const TraceEvent& event : events) {
    if (rank != event.rank) {
      rank = event.rank;
      timeline.lanes.push_back(fmt::format("rank {}: compute", event.rank));
      timeline.lanes.push_back(fmt::format("rank {}: buckets", event.rank));
    }
    const bool of_bucket = event.bucket >= 0;
    const std::string bucket = fmt::format("bucket {}, {}", event.bucket, console::human_bytes(event.bytes));
    const auto ms = [&](double at) { return (at - first) / 1e3; };
    timeline.spans.push_back({timeline.lanes.size() - (of_bucket ? 1 : 2), event.name, of_bucket ? bucket : event.name,
                              ms(event.begin), ms(event.end)});
  }
  return whole_chart(fmt::format("Step {}: buckets against backward", step), "", timeline);
}

}  // namespace ddprun::report
