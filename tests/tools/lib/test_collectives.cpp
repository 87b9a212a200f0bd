#include "tools/lib/run.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::comm;
using namespace ddprun::tools;
using testing::contains;
using testing::error_of;

namespace {

RankCollectives some_file() {
  RankCollectives file{.rank = 3, .world = 4, .host = "a", .pid = 77, .backend = "gloo", .written = 1763884399.5};
  file.reason = "this rank failed: \"x\"\n\xff";
  file.calls = {{.shape = {.number = 8}, .state = CallState::finished, .start = 1, .duration = 0.5},
                {.shape = {.number = 9, .kind = Kind::allreduce}, .step = 2, .start = 1763884398.125},
                {.shape = {.number = 10,
                           .count = 7,
                           .bucket = 4,
                           .kind = Kind::broadcast,
                           .dtype = DType::int64,
                           .memory = Memory::cuda},
                 .state = CallState::failed,
                 .start = 1,
                 .duration = 2}};
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
  CHECK(describe(file.calls[0].shape) == "barrier 8");
  CHECK(file.calls[0].end() == 1.5);
  CHECK(file.calls[1].shape == written.calls[1].shape);
  CHECK(file.calls[1].state == CallState::started);
  CHECK(file.calls[1].step == 2);
  CHECK(file.calls[1].start == 1763884398.125);
  CHECK(std::isnan(file.calls[1].duration));
  CHECK(file.calls[2].shape == written.calls[2].shape);
  CHECK(file.calls[2].state == CallState::failed);
}

TEST_CASE("a call that was refused for its arguments is read back without them") {
  const testing::TempDir folder;
  RankCollectives file = some_file();
  file.calls[1].shape.dtype = static_cast<DType>(kDTypeCount + 1);
  write_collectives(folder.path(), file);
  CHECK(describe(read_collectives(folder.path()).at(3).calls[1].shape) == "allreduce 9");
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
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":"x","op":"barrier","state":"started","start":1}]})",
       R"({"rank":0,"world":9223372036854775807,"written":1,"calls":[]})",
       R"({"rank":0,"world":0,"written":1,"calls":[]})",
       R"({"rank":2,"world":2,"written":1,"calls":[]})",
       R"({"rank":-3,"world":2,"written":1,"calls":[]})",
       R"({"rank":18446744073709551615,"world":2,"written":1,"calls":[]})",
       R"({"rank":0,"world":2,"written":1e300,"calls":[]})",
       R"({"rank":0,"world":2,"written":-1,"calls":[]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":9223372036854775807,"op":"barrier","state":"started","start":1}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"barrier","state":"started","start":1e300}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"barrier","state":"started"}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"a","state":"started","start":1}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"a\nb","state":"started","start":1}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"barrier","state":"b","start":1}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"barrier","state":"finished","start":1}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"broadcast","state":"started","start":1,"root":9999999999}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":1,"op":"broadcast","state":"started","start":1,"count":-1}]})",
       R"({"rank":0,"world":2,"written":1,"calls":[{"number":2,"op":"barrier","state":"started","start":1},{"number":2,"op":"barrier","state":"started","start":1}]})"}) {
    CHECK_MESSAGE(contains(damage(text), "collectives-rank0.json: "), text);
    CHECK_MESSAGE(damage(text).starts_with("2: "), text);
    CHECK_MESSAGE(!contains(damage(text), "\n"), text);
  }
}
