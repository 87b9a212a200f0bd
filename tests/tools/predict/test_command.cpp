// `ddprun predict` as a user runs it.
#include <doctest/doctest.h>

#include "support/golden.hpp"
#include "support/process.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tools/predict/inputs.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

ProcessResult predict_with(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), PREDICT_PROGRAM);
  return Process(arguments, {}).wait();
}

// bench.json: ring and tree of ucx between two hosts; host.json: shm with two ranks.
void write_benches(const InTempDir& folder) {
  auto rows = rows_between("ucx", "ring", 2, {5e-5, 1e-9}), tree = rows_between("ucx", "tree", 2, {5e-5, 1e-9});
  rows.insert(rows.end(), tree.begin(), tree.end());
  folder.write("bench.json", bench_file(2, rows).dump());
  std::vector<json> host;
  for (const double bytes : kSizes) host.push_back(bench_row("shm", "direct", 2, bytes, 1e-6 + bytes * 1e-10));
  folder.write("host.json", bench_file(1, host).dump());
}

}  // namespace

TEST_CASE("what predict prints, also for a link without latency") {
  const InTempDir folder;
  const std::string run = write_traced_run(folder);
  write_benches(folder);
  folder.write("large.json", bench_file(2, rows_between("gloo", "ring", 2, {0, 1e-9})).dump());
  const auto result = predict_with({run, "--bench", "bench.json", "--bench", "host.json", "--ranks-per-host", "2",
                                    "--ranks", "16", "--json", "p.json"});
  const auto large = predict_with({run, "--bench", "large.json", "--ranks", "4"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  REQUIRE_MESSAGE(large.code == 0, large.err);
  check_golden("tools/predict/predict.txt", result.out + "\n" + large.out);
  const json written = json::parse(read_file("p.json"));
  CHECK(written.at("ddprun_predict") == 1);
  CHECK(written.at("step").at("buckets").size() == 2);
  CHECK(written.at("links").at(0).at("alpha").get<double>() == doctest::Approx(5e-5));
  const json& hierarchical = written.at("methods").at(1);
  CHECK(hierarchical.at("algorithm") == "hierarchical");
  REQUIRE(hierarchical.at("rows").size() == 5);  // 1, 2, 4, 8 and 16 ranks
  // Of four hosts with two ranks: each bucket in shared memory, then round a ring of four hosts, after the comparison
  // of the calls of eight ranks.
  const auto seconds = [](double bytes) {
    return 7 * (5e-5 + 32e-9) + 1e-6 + bytes * 1e-10 + 6 * 5e-5 + 1.5 * bytes * 1e-9;
  };
  const double over = std::max(0.004, 0.002 + seconds(1 << 20)) + seconds(1 << 18);
  const json& row = hierarchical.at("rows").at(3);
  CHECK(row.at("ranks") == 8);
  CHECK(row.at("hosts") == 4);
  CHECK(row.at("step").get<double>() == doctest::Approx(0.003 + over));
}

TEST_CASE("4,096 ranks are predicted, and no more") {
  const InTempDir folder;
  const std::string run = write_traced_run(folder);
  write_benches(folder);
  const auto result = predict_with({run, "--bench", "bench.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "   4096  4096 x 1"));
  const auto listed = predict_with({run, "--bench", "bench.json", "--hosts", "6,3,6", "--compute", "0.5"});
  CHECK(contains(listed.out, "a recorded step of one rank took 3.50 ms"));
  const std::size_t three = listed.out.find("3 x 1"), six = listed.out.find("6 x 1");
  CHECK(three < six);
  CHECK(listed.out.find("6 x 1", six + 1) > listed.out.find("ucx tree\n"));  // once in each table
  CHECK_FALSE(contains(listed.out, "  2 x 1"));
}

TEST_CASE("what a user gets wrong is one line, with exit code 2") {
  const InTempDir folder;
  const std::string run = write_traced_run(folder);
  write_benches(folder);
  folder.write("sweep.json", "{\"ddprun_sweep\": 1}");
  const auto check = [](const std::vector<std::string>& arguments, const std::string& part) {
    const auto result = predict_with(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK_MESSAGE(contains(result.err, part), result.err);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  };
  check({run}, "--bench");
  check({"--bench", "bench.json"}, "run is required");
  check({"nowhere", "--bench", "bench.json"}, "nowhere: no folder of a run");
  check({run, "--bench", "nowhere.json"}, "nowhere.json: No such file or directory");
  check({run, "--bench", "sweep.json"}, "sweep.json: not a file of `ddprun bench --json`");
  check({run, "--bench", "host.json"}, "no file of --bench has an algorithm between hosts");
  check({run, "--bench", "bench.json", "--ranks", "4097"}, "--ranks");
  check({run, "--bench", "bench.json", "--compute", "0"}, "--compute");
  check({run, "--bench", "bench.json", "--hosts", "1024", "--ranks-per-host", "8"}, "at most 4096 ranks in all");
}
