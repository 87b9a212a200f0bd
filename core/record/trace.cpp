#include "record/trace.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::record {
namespace {

using nlohmann::ordered_json;

ordered_json event_of(const Span& span, int rank) {
  ordered_json event = {{"name", span.name},  {"ph", "X"},        {"pid", rank},
                        {"tid", span.thread}, {"ts", span.begin}, {"dur", span.end - span.begin}};
  for (const auto& [name, value] : span.args) event["args"][name] = value;
  return event;
}

// Metadata events (phase "M") give viewers the names and the display order.
ordered_json about(const char* what, int rank, int64_t thread, const char* key, const ordered_json& value) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{key, value}}}};
}

}  // namespace

std::string events_of(const RankTrace& trace, int rank) {
  ordered_json events = ordered_json::array();
  events.push_back(about("process_name", rank, 0, "name", "rank " + std::to_string(rank)));
  events.push_back(about("process_sort_index", rank, 0, "sort_index", rank));
  int64_t position = 0;
  for (const auto& [thread, name] : trace.threads) {
    events.push_back(about("thread_name", rank, thread, "name", name));
    events.push_back(about("thread_sort_index", rank, thread, "sort_index", position++));
  }
  for (const Span& span : trace.spans) events.push_back(event_of(span, rank));
  return events.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void write_trace(const std::string& run_dir, const std::vector<std::string>& ranks) {
  ordered_json all = ordered_json::array();
  for (const std::string& events : ranks) {
    for (auto& event : ordered_json::parse(events)) all.push_back(std::move(event));
  }
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const auto& event : all) {
    if (event.contains("ts")) origin = std::min(origin, event.at("ts").get<int64_t>());
  }
  for (auto& event : all) {
    if (!event.contains("ts")) continue;
    // The format uses microseconds.
    event["ts"] = static_cast<double>(event.at("ts").get<int64_t>() - origin) / 1000;
    event["dur"] = static_cast<double>(event.at("dur").get<int64_t>()) / 1000;
  }
  const ordered_json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(all)}};
  const std::string folder = run_dir + "/trace";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw_file_error("create", folder, failed.value());
  replace_file(folder + "/trace.json", trace.dump());
}

}  // namespace ddprun::record
