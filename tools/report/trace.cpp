#include "tools/report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "cli/console/units.hpp"
#include "ddprun/error.hpp"

namespace ddprun::report {
namespace {

using nlohmann::json;

constexpr const char* kAllreduce = "allreduce";
constexpr const char* kReady = "ready";
constexpr std::array kNames = {"forward", "backward", "optimizer", kAllreduce, kReady};

bool is_ours(const json& event) {
  const auto is = [&](const char* key, const char* value) { return event.contains(key) && event.at(key) == value; };
  const bool named = std::any_of(kNames.begin(), kNames.end(), [&](const char* name) { return is("name", name); });
  return named && is("ph", "X") && event.contains("args") && event.at("args").contains("step");
}

TraceEvent event_of(const json& object) {
  const json& args = object.at("args");
  TraceEvent event;
  object.at("name").get_to(event.name);
  object.at("pid").get_to(event.rank);
  args.at("step").get_to(event.step);
  object.at("ts").get_to(event.begin);
  event.end = event.begin + object.at("dur").get<double>();
  if (event.name == kAllreduce || event.name == kReady) args.at("bucket").get_to(event.bucket);
  if (event.name == kAllreduce) args.at("bytes").get_to(event.bytes);
  return event;
}

std::string label_of(const TraceEvent& event) {
  if (event.bucket < 0) return event.name;
  return fmt::format("bucket {}, {}", event.bucket, console::human_bytes(event.bytes));
}

}  // namespace

std::vector<TraceEvent> read_trace(const std::string& path) {
  try {
    const json trace = json::parse(std::ifstream(path));
    std::vector<TraceEvent> events;
    for (const json& event : trace.is_array() ? trace : trace.at("traceEvents")) {
      if (is_ours(event)) events.push_back(event_of(event));
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
  std::erase_if(events, [](const TraceEvent& event) { return event.name == kReady; });
  if (events.empty()) return std::nullopt;
  const auto by_step = [](const TraceEvent& a, const TraceEvent& b) { return a.step < b.step; };
  const int64_t step = std::max_element(events.begin(), events.end(), by_step)->step;
  std::erase_if(events, [&](const TraceEvent& event) { return event.step != step; });
  const auto by_begin = [](const TraceEvent& a, const TraceEvent& b) { return a.begin < b.begin; };
  std::sort(events.begin(), events.end(), by_begin);

  std::set<int64_t> ranks;
  for (const TraceEvent& event : events) ranks.insert(event.rank);
  Timeline timeline{{"time in the step (ms)"}, {}, {}};
  for (const int64_t rank : ranks) {
    const std::size_t lane = timeline.lanes.size();
    timeline.lanes.push_back(fmt::format("rank {}: compute", rank));
    timeline.lanes.push_back(fmt::format("rank {}: buckets", rank));
    for (const TraceEvent& event : events) {
      if (event.rank != rank) continue;
      const auto ms = [&](double at) { return (at - events.front().begin) / 1e3; };
      timeline.spans.push_back(
          {lane + (event.bucket >= 0), event.name, label_of(event), ms(event.begin), ms(event.end)});
    }
  }
  return whole_chart(fmt::format("Step {}: buckets against backward", step), "", timeline);
}

}  // namespace ddprun::report
