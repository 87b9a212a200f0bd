#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/contains.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/compare/output.hpp"

using namespace ddprun::compare;
using ddprun::testing::contains;

namespace {

Figures some_figures(double step) {
  Figures figures;
  figures.step = step;
  figures.total_time = 100 * step;
  figures.throughput = 128 / step;
  figures.split = {0.1 * step, 0.3 * step, 0.4 * step, 0.1 * step, 0.05 * step, 0.05 * step};
  figures.step_times = {step, 1.1 * step, 0.9 * step};
  figures.losses = {2, 1, 0.5};
  figures.samples = 1280;
  return figures;
}

Member some_member(const std::string& name, const std::vector<double>& steps) {
  Member member;
  member.variant.name = name;
  member.variant.loaded.experiment.strategy.kind = name == "single" ? "single" : "ddp";
  for (const double step : steps) {
    member.runs.push_back(some_figures(step));
    member.dirs.push_back("runs/" + name);
  }
  return member;
}

// b is 10 % slower than a, c is a with noise, and a has a twin.
Comparison some_comparison() {
  Comparison comparison;
  comparison.members = {
      some_member("a", {1.00, 1.01, 0.99, 1.00, 1.01}), some_member("a (twin)", {1.01, 0.99, 1.00, 1.00, 1.00}),
      some_member("b", {1.10, 1.12, 1.09, 1.10, 1.11}), some_member("c", {0.98, 1.03, 1.00, 0.99, 1.02})};
  comparison.members[1].twin = true;
  comparison.members[2].variant.loaded.experiment.comm.algorithm = "tree";
  comparison.environment = {{"ddprun", "0.1.0"}, {"host", "<here>"}};
  return comparison;
}

}  // namespace

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
  CHECK(comparison.ceiling ==
        "b: 40 % backward, 10 % exposed communication; without the latter, a step would be 11 % faster. In "
        "the "
        "runs with the median step time, a step took 100 ms longer than with a: backward +40.0 ms, forward +30.0 ms, "
        "data "
        "wait +10.0 ms, exposed communication +10.0 ms, optimizer +5.00 ms, other +5.00 ms.");
  CHECK_FALSE(comparison.gates[0].held);
  CHECK(comparison.gates[1].held);
  CHECK(comparison.loss_repeats.size() == 4);
}

TEST_CASE("no verdict where other programs can explain the difference") {
  Comparison comparison = some_comparison();
  for (Member& member : comparison.members) {
    for (Figures& run : member.runs) run.other_cpu = 0.3;
  }
  judge(comparison, {});
  CHECK(comparison.against[1].verdict == Verdict::disturbed);
  CHECK(contains(sentence(comparison, comparison.against[1]), "b and a: no verdict, because of other programs"));
  CHECK(contains(sentence(comparison, comparison.against[1]), "Other programs used 30 % of a machine's CPU time"));
  CHECK(contains(text(comparison), "Other programs used up to 30 % of a machine's CPU time during a run."));
  for (Figures& run : comparison.members[2].runs)
    run.step *= 2;  // with 30 % gone, a run takes up to 1.43 times as long
  judge(comparison, {});
  CHECK(comparison.against[1].verdict == Verdict::slower);
}

TEST_CASE("a gate is not decided where other programs can explain the distance to its bound") {
  Comparison comparison = some_comparison();
  for (Member& member : comparison.members) {
    for (Figures& run : member.runs) run.other_cpu = 0.3;
  }
  const auto names = names_of(comparison.members);
  judge(comparison, {parse_gate("b/a <= 1.2", names), parse_gate("b/a <= 9", names)});
  CHECK_FALSE(comparison.gates[0].held);
  CHECK(contains(text(comparison.gates[0]), "gate 'b/a <= 1.2' is not decided: b is "));
  CHECK(contains(text(comparison.gates[0]), "other programs used 30 % of a machine's CPU time"));
  CHECK(comparison.gates[1].held);
}

TEST_CASE("sentences have the ratio, the interval and the number of runs") {
  Comparison comparison = some_comparison();
  judge(comparison, {});
  CHECK(contains(sentence(comparison, comparison.against[1]),
                 "b is 9.1 % slower than a (ratio of the times for a step 1.100, 95 % "));
  CHECK(contains(sentence(comparison, comparison.against[1]), "5 runs each)."));
  CHECK(contains(sentence(comparison, comparison.against[2]),
                 "c and a: no difference that this number of runs can show (ratio of the times for a step"));
  comparison.against[1].ratio.value = 0.186;
  comparison.against[1].verdict = Verdict::faster;
  CHECK(contains(sentence(comparison, comparison.against[1]),
                 "b is 5.4 times as fast as a (ratio of the times for a step 0.186, "));
  comparison.against[1].ratio.value = 0.8;
  CHECK(contains(sentence(comparison, comparison.against[1]),
                 "b is 25.0 % faster than a (ratio of the times for a step 0.800, "));
  comparison.against[1].ratio.value = 4;
  comparison.against[1].verdict = Verdict::slower;
  CHECK(contains(sentence(comparison, comparison.against[1]),
                 "b is 0.25 times as fast as a (ratio of the times for a step 4.000, "));
  comparison.interleaved = false;
  comparison.members[2].runs.resize(2);
  judge(comparison, {});
  CHECK(contains(sentence(comparison, comparison.against[1]), "2 and 5 runs, not interleaved)."));
  comparison.against[2].ratio = {1.05, 1.01, 1.09, 0.03};
  comparison.against[2].verdict = Verdict::unclear;
  CHECK(contains(sentence(comparison, comparison.against[2]), "among several, it can be chance"));
}

TEST_CASE(
    "the figures of a tutorial give its speed-up, efficiency and time saved; a table shows those of the variants") {
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

  Comparison comparison = some_comparison();
  CHECK((judge(comparison, {}), speedup_tables(comparison).empty()));
  auto& dp = comparison.members[2].variant.loaded.experiment.strategy;
  dp.kind = "dp";
  dp.devices = 3;
  const auto tables = speedup_tables(comparison);
  REQUIRE(tables.size() == 1);
  const std::string text = tables[0].table.text();
  for (const char* part : {"b (3 workers)", "0.91x", "3.00x", "30.3 %"}) {
    CHECK_MESSAGE(contains(text, part), text);
  }
  for (const auto& section : page_of(comparison).sections) {
    if (section.title != "Speed-up") continue;
    REQUIRE(section.charts.size() == 1);
    const auto& bars = std::get<ddprun::report::Bars>(section.charts[0].content);
    CHECK(bars.groups == std::vector<std::string>{"b"});
    CHECK(bars.series[0].values[0] == doctest::Approx(-10).epsilon(0.01));  // time saved: 1 - 1 / 0.909
    CHECK(bars.series[1].values[0] == doctest::Approx(-9.1).epsilon(0.01));
  }
  CHECK(std::ranges::any_of(page_of(comparison).sections, [](const auto& one) { return one.title == "Speed-up"; }));
  CHECK_FALSE(contains(ddprun::compare::text(comparison), "efficiency of"));
  for (Figures& run : comparison.members[2].runs) run.throughput *= 20;
  judge(comparison, {});
  CHECK(contains(ddprun::compare::text(comparison), "b has an efficiency of 606 %. More than 100 % is rare"));
}

TEST_CASE("text, JSON and page are complete") {
  Comparison comparison = some_comparison();
  comparison.members[3].runs[0].losses[1] = NAN;
  comparison.unfair = {"data.name: \"a\" in a, \"b\" in b"};
  judge(comparison, {parse_gate("3/1 <= 1", names_of(comparison.members))});
  const std::string out = text(comparison);
  for (const char* part :
       {"Verdict", "slower", "Noise floor: a (twin) and a", "Different work: data.name", "gate '3/1 <= 1'"}) {
    CHECK_MESSAGE(contains(out, part), out);
  }
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

TEST_CASE("with one run of each, there is one statement: no verdict, and why") {
  Comparison comparison;
  comparison.members = {some_member("a", {1}), some_member("b", {2})};
  judge(comparison, {parse_gate("b/a <= 1.5", {"a", "b"})});
  const std::string out = text(comparison);
  CHECK(contains(out,
                 "gate 'b/a <= 1.5' is not decided: a single run has no interval (ratio of the times for a step "
                 "2.000)"));
  CHECK(contains(out, "b and a: no verdict from a single run (ratio of the times for a step 2.000, 1 run each)."));
  CHECK_FALSE(contains(out, "no difference"));
  CHECK_FALSE(contains(out, "inf"));
  CHECK(nlohmann::json::parse(to_json(comparison)).at("against_first")[0].at("ratio").at("high").is_null());
  CHECK_FALSE(contains(ddprun::report::vega_lite(page_of(comparison).sections[0].charts[3]), "inf"));
}

TEST_CASE("earlier runs of one configuration: the load of the machine, and no setting that explains a difference") {
  Comparison comparison;
  comparison.interleaved = false;
  comparison.members = {some_member("old", {1, 1.01, 0.99}), some_member("new", {2, 2.01, 1.99})};
  for (Figures& run : comparison.members[0].runs) run.load = 0.5;
  for (Figures& run : comparison.members[1].runs) run.load = 3.25;
  comparison.members[1].runs[0].load = 2.5;
  judge(comparison, {parse_gate("new/old >= 1.5", {"old", "new"})});
  const std::string out = text(comparison);
  for (const char* part : {"Load of the host at the start (average of a minute): 0.50 in old, 2.50 to 3.25 in new.",
                           "No setting differs: a difference comes from what no config holds",
                           "gate 'new/old >= 1.5' holds: new is 0.50 times as fast as old", ", not interleaved)"}) {
    CHECK_MESSAGE(contains(out, part), out);
  }
  comparison.members[1].variant.loaded.experiment.optimizer.lr *= 2;
  judge(comparison, {});
  CHECK_FALSE(contains(text(comparison), "No setting differs"));
}

TEST_CASE("where the batches differ, the verdict, its table and the speed-up are all by the time for a sample") {
  Comparison comparison;
  comparison.members = {some_member("a", {1, 1, 1}), some_member("b", {1.6, 1.6, 1.6})};
  for (Figures& run : comparison.members[1].runs) {  // twice the samples in a step
    run.samples *= 2;
    run.throughput *= 2;
  }
  auto& experiment = comparison.members[1].variant.loaded.experiment;
  experiment.strategy.kind = "dp";
  experiment.data.batch_size *= 2;
  judge(comparison, {});
  CHECK(comparison.against[0].ratio.value == doctest::Approx(0.8));
  const std::string out = text(comparison);
  for (const char* part :
       {"b is 25.0 % faster than a (ratio of the times for a sample 0.800", "1.25x",
        "The batches differ, so speeds are compared by the time for a sample.", "Verdict by the time for a sample",
        "Why not faster? a: 40 % backward, ", "a sample took "}) {
    CHECK_MESSAGE(contains(out, part), out);
  }
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
  CHECK(comparison.ceiling.starts_with("ddp: 40 % backward, 10 % exposed communication; without the latter"));
  CHECK(contains(comparison.ceiling, "a step took 1.00 s longer than with single: "));
  CHECK(contains(comparison.ceiling, "exposed communication +200 ms"));
  comparison.members[1].variant.loaded.experiment.strategy.kind = "dp";
  judge(comparison, {});
  CHECK(contains(comparison.ceiling, "exposed communication +200 ms"));
  for (Figures& run : comparison.members[1].runs) run.step /= 4;
  judge(comparison, {});
  CHECK(comparison.ceiling.starts_with("single: 40 % backward, no exposed communication."));
}
