#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "record/trace.hpp"
#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using nlohmann::json;
using record::RankTrace;
using testing::TempDir;

namespace {

json events_of(const TempDir& dir) {
  return json::parse(testing::read_file(dir.path() / "trace/trace.json")).at("traceEvents");
}

json first_named(const json& events, const std::string& name, int pid) {
  for (const json& event : events) {
    if (event.at("name") == name && event.at("pid") == pid) return event;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("the ranks' traces are merged on one clock, with each rank as a named process") {
  const TempDir dir;
  record::write_trace(dir.path(),
                      {record::events_of({{{"forward", 5'000'000, 7'500'500, 1, {{"step", 3}}}}, {{1, "phases"}}}, 0),
                       record::events_of({{{"forward", 4'000'000, 4'250'000, 1, {{"step", 3}}}}, {{1, "phases"}}}, 1)});
  const json events = events_of(dir);
  const json first = first_named(events, "forward", 0), second = first_named(events, "forward", 1);
  CHECK(first.at("ph") == "X");
  CHECK(first.at("ts") == 1000.0);  // microseconds after the first span of all ranks
  CHECK(first.at("dur") == 2500.5);
  CHECK(first.at("tid") == 1);
  CHECK(first.at("args").at("step") == 3);
  CHECK(second.at("ts") == 0.0);
  CHECK(first_named(events, "process_name", 1).at("args").at("name") == "rank 1");
  CHECK(first_named(events, "thread_name", 0).at("args").at("name") == "phases");
}

TEST_CASE("a name with any bytes gives a valid trace") {
  const TempDir dir;
  record::write_trace(dir.path(), {record::events_of({{{"a\"b\n\xff", 1, 2, 0, {}}}, {}}, 0)});
  CHECK(events_of(dir).back().at("name").get<std::string>().starts_with("a\"b\n"));
}

TEST_CASE("a folder that cannot be created is named") {
  const TempDir dir;
  dir.write("trace", "a file");
  CHECK(testing::error_of([&] {
          record::write_trace(dir.path(), {record::events_of({}, 0)});
        }).find("cannot create " + dir.path().string()) != std::string::npos);
}
