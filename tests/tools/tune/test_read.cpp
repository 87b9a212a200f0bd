#include "tools/tune/tune.hpp"

#include <doctest/doctest.h>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/predict/inputs.hpp"

using namespace ddprun;
using namespace ddprun::testing;

TEST_CASE("a call takes as long as on the rank that waits least, in the median of the traced steps") {
  const InTempDir folder;
  std::vector<json> events;
  const auto add = [&](int64_t rank, int64_t step, double microseconds) {
    events.push_back(event("allreduce", rank, step, 100, 100 + microseconds, {{"bucket", 0}, {"bytes", 4096}}));
  };
  add(0, 1, 9);  // one of the first steps
  add(0, 3, 900), add(1, 3, 300);
  add(0, 4, 400), add(1, 4, 800);
  add(0, 5, 5000), add(1, 5, 6000);
  events.push_back(event("allreduce", 0, 5, 0, 70, {{"bucket", 1}, {"bytes", 16}}));
  write_trace(folder, "run", events);
  const auto calls = tune::calls_of("run");
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].bytes == 4096);
  CHECK(calls[0].seconds == doctest::Approx(400e-6));
  CHECK(calls[1].bytes == 16);
  CHECK(calls[1].seconds == doctest::Approx(70e-6));
}

TEST_CASE("a step is that of the slowest rank, without the first and the traced ones") {
  const TempDir folder;
  SomeRun run;  // step n takes n milliseconds on rank 0, and one more on rank 1
  run.steps = 6;
  const std::string dir = write_run(folder, "run", run);
  CHECK(tune::step_of(dir, {}) == doctest::Approx(5.5e-3));  // of 3 .. 6
  CHECK(tune::step_of(dir, {6}) == doctest::Approx(5e-3));
}

TEST_CASE("a curve has the rows of the requested algorithm, also of several ranks on a host") {
  const InTempDir folder;
  json automatic = bench_row("gloo", "ring", 4, 4096, 3e-3);
  automatic["algorithm"] = "auto";
  json file =
      bench_file(2, {bench_row("gloo", "ring", 4, 4096, 2e-3), automatic, bench_row("gloo", "ring", 4, 65536, 5e-3)});
  file["hosts"][0]["ranks"] = {0, 1};
  file["hosts"][1]["ranks"] = {2, 3};
  folder.write("bench.json", file.dump());
  const auto curves = tune::curves_of("bench.json");
  REQUIRE(curves.size() == 2);
  CHECK(curves.at("auto") == tune::Curve{{4096, 3e-3}});
  CHECK(curves.at("ring") == tune::Curve{{4096, 2e-3}, {65536, 5e-3}});
}

TEST_CASE("the result of a comparison is its two steps, its verdict and its sentence") {
  const InTempDir folder;
  const auto variant = [](double step) { return json{{"median", {{"step", step}}}}; };
  json file = {{"variants", {variant(0.5), variant(0.25)}},
               {"warnings", {"a warning"}},
               {"against_first", {{{"verdict", "faster"}, {"sentence", "twice as fast."}}}}};
  std::filesystem::create_directories("compare/compare-1");
  folder.write("compare/compare-1/compare.json", file.dump());
  const auto verified = tune::read_comparison("compare");
  CHECK(verified.before == 0.5);
  CHECK(verified.after == 0.25);
  CHECK(verified.is_faster());
  CHECK(verified.warnings == std::vector<std::string>{"a warning"});
  CHECK(verified.sentence == "twice as fast.");
  for (const char* verdict : {"slower", "no verdict, because of other programs"}) {
    file["against_first"][0]["verdict"] = verdict;
    folder.write("compare/compare-1/compare.json", file.dump());
    CHECK_FALSE(tune::read_comparison("compare").is_faster());
  }
  folder.write("compare/compare-1/compare.json", "{}");
  CHECK(contains(error_of([] { tune::read_comparison("compare"); }), "1: cannot read the comparison in compare: "));
}
