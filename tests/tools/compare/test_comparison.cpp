#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/text.hpp"
#include "tools/compare/output.hpp"
#include "tools/compare/some_comparison.hpp"

using namespace ddprun::compare;
using ddprun::testing::contains;

TEST_CASE("each variant is compared with the first, and the twin separately") {
  Comparison comparison = some_comparison();
  judge(comparison, {parse_gate("b/a <= 1.05", names_of(comparison.members)),
                     parse_gate("b/a <= 1.2", names_of(comparison.members))});
  REQUIRE(comparison.against.size() == 3);
  CHECK(comparison.against[0].verdict == Verdict::unclear);
  CHECK(comparison.against[0].adjusted_p == comparison.against[0].ratio.p);
  CHECK(comparison.against[1].verdict == Verdict::slower);
  CHECK(comparison.against[1].adjusted_p == doctest::Approx(2 * comparison.against[1].ratio.p));
  CHECK(comparison.against[2].verdict == Verdict::unclear);
  CHECK(comparison.differing == std::vector<std::string>{"comm.algorithm"});
  CHECK_FALSE(comparison.gates[0].held);
  CHECK(comparison.gates[1].held);
  CHECK(comparison.loss_repeats.size() == 4);
}

TEST_CASE("no verdict, and no decision of a gate, where other programs can explain the difference") {
  Comparison comparison = some_comparison();
  set_other_cpu(comparison, 0.3);
  const auto names = names_of(comparison.members);
  judge(comparison, {parse_gate("b/a <= 1.2", names), parse_gate("b/a <= 9", names)});
  CHECK(comparison.against[1].verdict == Verdict::disturbed);
  CHECK_FALSE(comparison.gates[0].held);
  CHECK(comparison.gates[0].disturbance == 0.3);
  CHECK(comparison.gates[1].held);
  for (Figures& run : comparison.members[2].runs)
    run.step *= 2;  // with 30 % gone, a run takes up to 1.43 times as long
  judge(comparison, {});
  CHECK(comparison.against[1].verdict == Verdict::slower);
}

TEST_CASE("the figures of a tutorial give its speed-up, efficiency and time saved") {
  Figures one, two;
  one.throughput = 1952.69;
  two.throughput = 3029.55;
  const Speedup gain = speedup_of(one, two, 2);
  CHECK(gain.speedup == doctest::Approx(1.55).epsilon(0.002));
  CHECK(gain.efficiency() == doctest::Approx(0.776).epsilon(0.002));
  CHECK(gain.time_saved() == doctest::Approx(1 - 16.64 / 25.74).epsilon(0.01));
  CHECK(std::string(bound_of({0.0034, 0.03, 0.03, 0, 0.0022, 0})) == "compute-bound");
  CHECK(std::string(bound_of({0.5, 0.1, 0.1, 0.2, 0, 0})) == "data-bound");
  CHECK(std::string(bound_of({0.1, 0.1, 0.1, 0.5, 0, 0})) == "communication-bound");
}

TEST_CASE("variants with several workers are compared with the first one that has one") {
  Comparison comparison = some_comparison();
  judge(comparison, {});
  CHECK(speedups_of(comparison).empty());
  comparison.members[0].variant.loaded.experiment.strategy.kind = "single";
  for (const std::size_t other : {1, 3}) comparison.members[other].variant.loaded.experiment.launch.nproc = 1;
  auto& dp = comparison.members[2].variant.loaded.experiment.strategy;
  dp.kind = "dp";
  dp.devices = 3;
  REQUIRE(speedups_of(comparison).size() == 1);
  CHECK(speedups_of(comparison)[0].second.workers == 3);
  const auto sections = page_of(comparison).sections;
  const auto section = std::ranges::find(sections, "Speed-up", &ddprun::report::Section::title);
  REQUIRE(section != sections.end());
  const auto& bars = std::get<ddprun::report::Bars>(section->charts.at(0).content);
  CHECK(bars.groups == std::vector<std::string>{"b"});
  CHECK(bars.series[0].values[0] == doctest::Approx(-10).epsilon(0.01));  // time saved: 1 - 1 / 0.909
  CHECK(bars.series[1].values[0] == doctest::Approx(-9.1).epsilon(0.01));
  CHECK(warnings(comparison).empty());
  for (Figures& run : comparison.members[2].runs) run.throughput *= 20;
  judge(comparison, {});
  REQUIRE(warnings(comparison).size() == 1);
  CHECK(contains(warnings(comparison)[0], "b has an efficiency of 606 %"));
}

TEST_CASE("JSON and page are complete") {
  Comparison comparison = some_comparison();
  comparison.members[3].runs[0].losses[1] = NAN;
  judge(comparison, {parse_gate("3/1 <= 1", names_of(comparison.members))});
  const auto object = nlohmann::json::parse(to_json(comparison));
  CHECK(object.at("variants").size() == 4);
  CHECK(object.at("variants")[2].at("median").at("step") == doctest::Approx(1.10));
  CHECK(object.at("variants")[0].at("median").at("comm.busbw").is_null());
  CHECK(object.at("against_first")[1].at("verdict") == "slower");
  CHECK(object.at("gates")[0].at("holds") == false);

  const auto page = page_of(comparison);
  CHECK(page.title == "Comparison: a, a (twin), b, c");
  std::vector<std::string> charts;
  for (const auto& section : page.sections) {
    for (const auto& chart : section.charts) {
      charts.push_back(chart.title);
      CHECK_FALSE(nlohmann::json::parse(ddprun::report::vega_lite(chart)).empty());
    }
  }
  CHECK(charts == std::vector<std::string>{"Total time", "Average batch", "Throughput", "Performance gain",
                                           "Parts of the average step", "Parts of the average step in per cent",
                                           "Training loss", "Step time over steps", "Distribution of step times"});
}

TEST_CASE("one run of each has no verdict and no interval") {
  Comparison comparison;
  comparison.members = {some_member("a", {1}), some_member("b", {2})};
  judge(comparison, {});
  CHECK(comparison.against[0].verdict == Verdict::single_run);
  CHECK_FALSE(contains(text(comparison), "inf"));
  CHECK(nlohmann::json::parse(to_json(comparison)).at("against_first")[0].at("ratio").at("high").is_null());
  CHECK_FALSE(contains(ddprun::report::vega_lite(page_of(comparison).sections[0].charts[3]), "inf"));
}

TEST_CASE("where the batches differ, variants are compared by the time for a sample") {
  Comparison comparison;
  comparison.members = {some_member("a", {1, 1, 1}), some_member("b", {1.6, 1.6, 1.6})};
  for (Figures& run : comparison.members[1].runs) run.samples *= 2;
  comparison.members[1].variant.loaded.experiment.data.batch_size *= 2;
  judge(comparison, {});
  CHECK(comparison.against[0].ratio.value == doctest::Approx(0.8));
  CHECK(nlohmann::json::parse(to_json(comparison)).at("measure") == "sample");
}

TEST_CASE("the slower variant is explained, also where the first has nothing to communicate") {
  Comparison comparison;
  comparison.members = {some_member("single", {1, 1.01}), some_member("ddp", {2, 2.02})};
  for (Figures& run : comparison.members[0].runs) {
    run.split.other += run.split.comm;
    run.split.comm = 0;
  }
  judge(comparison, {});
  CHECK(comparison.ceiling.starts_with("ddp: "));
  CHECK(contains(comparison.ceiling, "exposed communication +200 ms"));
  comparison.members[1].variant.loaded.experiment.strategy.kind = "dp";
  judge(comparison, {});
  CHECK(contains(comparison.ceiling, "exposed communication +200 ms"));
  for (Figures& run : comparison.members[1].runs) run.step /= 4;
  judge(comparison, {});
  CHECK(comparison.ceiling.starts_with("single: "));
}
