#include "tools/lib/run.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::record;
using namespace ddprun::tools;
using testing::contains;
using testing::error_of;

namespace {

RankCollectives some_file() {
  RankCollectives file{.rank = 3, .world = 4, .host = "a", .pid = 77, .backend = "gloo", .written = 1763884399.5};
  file.reason = "this rank failed: \"x\"\n\xff";
  file.calls = {{.number = 8, .op = "barrier", .step = 0, .state = "finished", .start = 1, .end = 2, .duration = 0.5},
                {.number = 9,
                 .op = "allreduce",
                 .dtype = "float32",
                 .count = 0,
                 .reduction = "sum",
                 .memory = "host",
                 .step = 2,
                 .state = "started",
                 .start = 1763884398.125},
                {.number = 10,
                 .op = "broadcast",
                 .dtype = "int64",
                 .count = 7,
                 .root = 0,
                 .bucket = 4,
                 .state = "failed",
                 .start = 1}};
  return file;
}

}  // namespace

TEST_CASE("collectives are read back as they were written") {
  const testing::TempDir folder;
  const std::string dir = folder.path();
  CHECK(read_collectives(dir).empty());
  const RankCollectives written = some_file();
  write_collectives(dir, written);
  write_collectives(dir, written);
  folder.write("collectives-rank1.json.tmp-12", "half");
  const auto files = read_collectives(dir);
  REQUIRE(files.size() == 1);
  const RankCollectives& file = files.at(3);
  CHECK(file.world == 4);
  CHECK(file.host == "a");
  CHECK(file.pid == 77);
  CHECK(file.backend == "gloo");
  CHECK(file.reason == "this rank failed: \"x\"\n\xef\xbf\xbd");
  CHECK(file.written == 1763884399.5);
  REQUIRE(file.calls.size() == 3);
  CHECK(file.calls[0].op == "barrier");
  CHECK(file.calls[0].dtype.empty());
  CHECK(file.calls[0].duration == 0.5);
  CHECK(file.calls[1].number == 9);
  CHECK(file.calls[1].count == 0);
  CHECK(file.calls[1].reduction == "sum");
  CHECK(file.calls[1].step == 2);
  CHECK(file.calls[1].start == 1763884398.125);
  CHECK(std::isnan(file.calls[1].end));
  CHECK(file.calls[1].root == -1);
  CHECK(file.calls[2].root == 0);
  CHECK(file.calls[1].bucket == -1);
  CHECK(file.calls[2].bucket == 4);
}

TEST_CASE("the file has one call per line, with the documented keys") {
  const testing::TempDir folder;
  write_collectives(folder.path(), some_file());
  const auto lines = testing::read_lines(folder.path() / "collectives-rank3.json");
  REQUIRE(lines.size() == 5);
  CHECK(contains(lines[0], R"({"rank":3,"world":4,"host":"a","pid":77,"backend":"gloo","reason":)"));
  CHECK(lines[2] == R"({"number":9,"op":"allreduce","dtype":"float32","count":0,"reduction":"sum","memory":"host",)"
                    R"("step":2,"state":"started","start":1763884398.125},)");
}

TEST_CASE("a damaged file is an error with its path") {
  const auto damage = [](const std::string& text) {
    const testing::TempDir folder;
    folder.write("collectives-rank0.json", text);
    return error_of([&] { read_collectives(folder.path()); });
  };
  for (
      const char* text :
      {"",
       "{",
       "[]",
       "7",
       R"({"rank":0})",
       R"({"rank":0,"world":2,"written":1})",
       R"({"rank":0,"world":2,"written":1,"calls":{}})",
       R"({"rank":0,"world":2,"written":1,"calls":[7]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":"x","op":"a","state":"b"}]})",
       R"({"rank":0,"world":9223372036854775807,"written":1,"calls":[]})",
       R"({"rank":0,"world":0,"written":1,"calls":[]})",
       R"({"rank":2,"world":2,"written":1,"calls":[]})",
       R"({"rank":-3,"world":2,"written":1,"calls":[]})",
       R"({"rank":18446744073709551615,"world":2,"written":1,"calls":[]})",
       R"({"rank":0,"world":2,"written":1e300,"calls":[]})",
       R"({"rank":0,"world":2,"written":-1,"calls":[]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":9223372036854775807,"op":"a","state":"b","start":1}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"a","state":"b","start":1e300}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"a","state":"b"}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":2,"op":"a","state":"b","start":1},{"number":2,"op":"a","state":"b","start":1}]})"}) {
    CHECK_MESSAGE(contains(damage(text), "collectives-rank0.json: "), text);
    CHECK_MESSAGE(damage(text).starts_with("2: "), text);
  }
}
