#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"
#include "tools/report/runs.hpp"

using namespace ddprun;
using nlohmann::json;
using Row = std::vector<std::string>;

namespace {

json span(const std::string& name, int rank, int step, double begin, double end) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", rank},
          {"tid", 1},
          {"ts", begin},
          {"dur", end - begin},
          {"args", {{"step", step}}}};
}

json allreduce(int rank, int step, int bucket, double begin, double end) {
  json event = span("allreduce", rank, step, begin, end);
  event["args"]["bucket"] = bucket;
  event["args"]["bytes"] = 1 << 20;
  return event;
}

void write_trace(const testing::TempDir& folder, const std::string& text) {
  std::filesystem::create_directory(folder.path() / "trace");
  folder.write("trace/trace.json", text);
}

}  // namespace

TEST_CASE("the last traced step is shown from its start, two lanes per rank") {
  const testing::TempDir folder;
  json events = {span("forward", 0, 9, 100, 200),     span("forward", 0, 10, 5000, 6000),
                 span("backward", 0, 10, 6000, 9000), allreduce(0, 10, 0, 7000, 8500),
                 span("forward", 1, 10, 5250, 6100),  span("optimizer", 1, 10, 9000, 9100)};
  events.push_back({{"name", "forward"}, {"ph", "X"}, {"pid", 0}, {"ts", 1}, {"dur", 1}});  // from the profiler
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 0}, {"args", {{"name", "rank 0"}}}});
  write_trace(folder, json{{"traceEvents", events}}.dump());
  const auto chart = report::step_timeline(folder.path().string());
  REQUIRE(chart);
  CHECK(chart->title == "Step 10: buckets against backward");
  const auto& timeline = std::get<report::Timeline>(chart->content);
  CHECK(timeline.lanes == Row{"rank 0: compute", "rank 0: buckets", "rank 1: compute", "rank 1: buckets"});
  CHECK(report::table_of(*chart).rows() ==
        std::vector<Row>{{"rank 0: compute", "forward", "0", "1", "1"},
                         {"rank 0: compute", "backward", "1", "4", "3"},
                         {"rank 0: buckets", "bucket 0, 1.00 MiB", "2", "3.500", "1.500"},
                         {"rank 1: compute", "forward", "0.2500", "1.100", "0.8500"},
                         {"rank 1: compute", "optimizer", "4", "4.100", "0.1000"}});
}

TEST_CASE("a run without a trace, or without ddprun's spans, has no timeline") {
  const testing::TempDir folder;
  CHECK_FALSE(report::step_timeline(folder.path().string()));
  write_trace(folder, R"({"traceEvents": []})");
  CHECK_FALSE(report::step_timeline(folder.path().string()));
}

TEST_CASE("a damaged trace is an error with its path") {
  for (const char* text : {"", "{", "{}", "3", R"({"traceEvents": [{"name": "allreduce", "ph": "X", "pid": "x", "ts": 1,
                           "dur": 1, "args": {"step": 1, "bucket": 0, "bytes": 1}}]})"}) {
    const testing::TempDir folder;
    write_trace(folder, text);
    const std::string error = testing::error_of([&] { report::step_timeline(folder.path().string()); });
    CHECK_MESSAGE(
        testing::contains(error, "2: " + (folder.path() / "trace/trace.json").string() + ": not a trace of ddprun"),
        text << error);
  }
}
