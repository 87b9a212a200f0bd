// `ddprun bench` with real rank processes, over Gloo and over fakes. No test checks speed.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ddprun/plugin/tuning.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tools/bench/command.hpp"

namespace ddprun::bench {
namespace {

using namespace testing;
using nlohmann::json;

TEST_CASE("each collective, size, algorithm and place has a line, and no files or processes are left") {
  const Place place;
  const auto result = place.run(quick({"--backend", "gloo", "--algorithm", "ring,tree", "--collective",
                                       "allreduce,broadcast,allgather,reduce_scatter", "--json", place.file("json")}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "size  count  type   redop"));
  const auto rows = rows_of(result.out);
  CHECK(rows.size() == 3 * 2 * (2 + 1 + 2 + 2));
  for (const auto& row : rows) {
    REQUIRE(row.size() == 15);
    CHECK(row[2] == "float");
    CHECK(row[4] == "gloo");
    CHECK(row[7] == "malloc");
    CHECK(std::stod(row[9]) > 0);
    CHECK(std::stod(row[11]) <= std::stod(row[9]));
    CHECK(row[14] == "0");
  }
  CHECK(rows[0][6] == "ring/tcp");
  CHECK(rows[2][6] == "tree/tcp");

  const json document = json::parse(read_file(place.file("json")));
  CHECK(document.at("ddprun_bench") == 1);
  CHECK(document.at("environment").at("plugin.gloo.version").is_string());
  CHECK(document.at("command").at(0) == std::filesystem::canonical(BENCH_PROGRAM).string());
  REQUIRE(document.at("rows").size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const json& row = document["rows"][i];
    CHECK(std::to_string(row.at("size").get<int>()) == rows[i][0]);
    CHECK(row.at("wrong") == 0);
    REQUIRE(row.at("rounds").size() == 2);
    for (const json& round : row["rounds"]) CHECK(round.at("samples").size() == 3);
  }
  CHECK(place.is_clean());
}

TEST_CASE("a backend's notice appears once, not in each round") {
  if (!contains(DDPRUN_BENCH_BACKENDS, "ucx")) {
    MESSAGE("skipped: there is no UCX");
    return;
  }
  const auto result = Place().run(quick({"--backend", "ucx"}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const std::string notice = "rank 0 reaches the others by";
  const auto first = result.err.find(notice);
  REQUIRE_MESSAGE(first != std::string::npos, result.err);
  CHECK_MESSAGE(result.err.find(notice, first + 1) == std::string::npos, result.err);
  CHECK(contains(result.err, "round 2 of 2"));
}

TEST_CASE("types and operations have the names of nccl-tests") {
  const auto result = Place().run(quick({"--backend", "good", "-o", "product", "-d", "float64", "--ranks", "1,3"}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto rows = rows_of(result.out);
  CHECK(rows.size() == 2 * 3 * 2);
  for (const auto& row : rows) {
    CHECK(row[2] == "double");
    CHECK(row[3] == "prod");
    CHECK(row[14] == "0");
  }
}

TEST_CASE("a wrong result is counted in its line, and the exit code is 6") {
  const auto result = Place().run(quick({"--backend", "good,off_by_one"}));
  CHECK(result.code == 6);
  for (const auto& row : rows_of(result.out)) CHECK(row[14] == (row[4] == "off_by_one" ? "4" : "0"));
  CHECK(contains(result.err, "off_by_one auto, 2 ranks: allreduce of 64 bytes out of place: 4 wrong elements"));
  CHECK_FALSE(contains(result.err, "good auto"));
}

TEST_CASE("without checks their column is empty") {
  const auto result = Place().run(quick({"--backend", "off_by_one", "-c", "0"}));
  CHECK(result.code == 0);
  for (const auto& row : rows_of(result.out)) CHECK(row[14] == "N/A");
}

TEST_CASE("a bus bandwidth below the limit is exit code 6, reported for the largest size") {
  const Place place;
  CHECK(place.run(quick({"--min-busbw", "0.0000001"})).code == 0);
  const auto missed = place.run(quick({"--min-busbw", "1000000"}));
  CHECK(missed.code == 6);
  CHECK(contains(missed.err, "allreduce of 4096 bytes in place: busbw "));
  CHECK_FALSE(contains(missed.err, "of 512 bytes"));
}

TEST_CASE("the written tuning table decides what auto uses") {
  const Place place;
  const std::string table = place.file("table");
  const auto tuned = place.run(quick({"--tune", table}));
  REQUIRE_MESSAGE(tuned.code == 0, tuned.err);
  const Tuning tuning = Tuning::parse(read_file(table), "gloo");
  const auto taken = place.run(quick({"--option", "tuning=" + table}));
  REQUIRE_MESSAGE(taken.code == 0, taken.err);
  const auto served = [](const std::string& by) { return by + (by == "hierarchical" ? "/memory" : "/tcp"); };
  for (const auto& row : rows_of(taken.out)) CHECK(row[6] == served(tuning.algorithm(2, std::stoull(row[0]))));

  // With each algorithm in the table: the table decides, not gloo's default.
  for (const std::string algorithm : {"ring", "tree", "hierarchical"}) {
    std::ofstream(table) << "ddprun-tuning 1\ngloo max max " << algorithm << "\n";
    for (const auto& row : rows_of(place.run(quick({"--option", "gloo.tuning=" + table})).out)) {
      CHECK(row[6] == served(algorithm));
    }
  }
}

TEST_CASE("a table that gloo cannot use is exit code 3 with the reason") {
  const Place place;
  const std::string table = place.file("table");
  const auto refused = [&](const std::string& reason) {
    const auto result = place.run(quick({"--option", "tuning=" + table}));
    CHECK(result.code == 3);
    CHECK_MESSAGE(contains(result.err, "comm.options.tuning = \"" + table + "\": " + reason), result.err);
  };
  refused("cannot be read");
  std::ofstream(table) << "ddprun-tuning 1\ngloo 2 max star\n";
  refused("names \"star\", which gloo has not");
  std::ofstream(table) << "ddprun-tuning 1\ngloo 2 many ring\n";
  refused("line 2: \"many\": expected a number from 1, or max");
}

TEST_CASE("an invalid request is one line, and starts nothing") {
  const Place place;
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& expected) {
    const auto result = place.run(std::move(arguments));
    CHECK(result.code == code);
    CHECK(result.out.empty());
    CHECK(contains(result.err, expected));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  };
  for (const char* bad : {"x", "0", "1.5M", "K", "2048G", "99999999999999999999"}) {
    refused({"-b", bad}, 2, "--minbytes: ");
  }
  refused({"--sizes", "4,4X"}, 2, "--sizes: ");
  refused({"-f", "1"}, 2, "--stepfactor: ");
  refused({"-n", "0"}, 2, "--iters: ");
  refused({"--ranks", "2,0"}, 2, "--ranks: ");
  refused({"--algorithm", "rign"}, 2, "--algorithm rign: gloo: expected \"auto\"");
  refused({"--backend", "nobody"}, 3, "nobody");
  refused({"--task", "0", "0", "/nowhere"}, 2, "--task is for the ranks");
  CHECK(place.is_clean());
}

TEST_CASE("a failed rank ends the benchmark with its exit code, and the error names the variant") {
  const auto result = Place().run(quick({"--option", "nonsense=1"}));
  CHECK(result.code == 3);
  CHECK(contains(result.err, "ended in round 1: gloo auto, 2 ranks"));
  CHECK(rows_of(result.out).empty());
}

}  // namespace
}  // namespace ddprun::bench
