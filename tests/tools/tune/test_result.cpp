#include "tools/tune/result.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/contains.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

// One bucket of 1 MiB: 10 ms with tree, 5 ms with ring, behind a step of 10 ms.
tune::Result some_result() {
  tune::Result result;
  result.name = "simplenet, mnist";
  result.ranks = 4;
  const auto curve = [](double beta) { return tune::Curve({{1024, 1e-4}, {1 << 20, (1 << 20) * beta}}); };
  result.basis = {
      {0.003, 0.006, 0.001},
      {{1 << 20, 0}},
      {{{"gloo", "tree", "none"}, curve(0.010 / (1 << 20))}, {{"gloo", "ring", "none"}, curve(0.005 / (1 << 20))}},
      0,
      {{{"gloo", "none"}, 0}}};
  result.own = result.chosen = {"gloo", "tree", 25, "none"};
  return result;
}

tune::Result changed_result() {
  tune::Result result = some_result();
  result.chosen.algorithm = "ring";
  return result;
}

}  // namespace

TEST_CASE("without a change, the text says to keep the config") {
  const auto result = some_result();
  const std::string text = tune::about_choice(result);
  CHECK(contains(text, "simplenet, mnist: 4 ranks on 1 host\n"));
  CHECK(contains(text, "gloo ring  float32 "));
  CHECK(contains(text, "1 gradient, 1.00 MiB; a step takes 10.0 ms without communication, 6.00 ms of it backward\n"));
  CHECK(contains(text, "expected with the config as it is: 20.0 ms, of which 10.0 ms is exposed communication"));
  CHECK(contains(text, "nothing is expected to be more than 1 % faster: keep the config\n"));
  CHECK(tune::about_verdict(result).empty());
  CHECK_FALSE(result.is_better());
}

TEST_CASE("a change that the comparison confirms is proposed, with the error of the expectation") {
  auto result = changed_result();
  CHECK(contains(tune::about_choice(result), "expected with the lines below:     15.0 ms, of which 5.00 ms is"));
  CHECK(contains(tune::about_choice(result), "\n[comm]\nalgorithm = \"ring\"\n"));
  result.verified = tune::Verified{0.0250, 0.0150, "faster", "ring is faster."};
  CHECK(result.is_better());
  const std::string text = tune::about_verdict(result);
  CHECK(contains(text, "the config as it is (fitted)   20.0 ms   25.0 ms  -20.0 %"));
  CHECK(contains(text, "ring is faster.\nthe lines were faster in this comparison: put them into the config\n"));
  CHECK_FALSE(contains(text, "changes the numbers"));
  result.basis.curves.emplace(tune::Method{"gloo", "ring", "bf16"}, tune::Curve({{1024, 1e-4}}));
  result.basis.per_byte[{"gloo", "bf16"}] = 0;
  result.chosen.compression = "bf16";
  CHECK(contains(tune::about_verdict(result), "strategy.compression changes the numbers of training: check that"));
}

TEST_CASE("a change that the comparison does not confirm is not proposed, and the text says why") {
  auto result = changed_result();
  result.verified = tune::Verified{
      0.02, 0.02, "no verdict, because of other programs", "no verdict.", {"Other programs used up to 30 %."}};
  CHECK_FALSE(result.is_better());
  CHECK(contains(
      tune::about_verdict(result),
      "no verdict.\nOther programs used up to 30 %.\nthe lines: no verdict, because of other programs; keep the "
      "config\n"));
}

TEST_CASE("the JSON has all figures") {
  auto result = changed_result();
  auto object = nlohmann::json::parse(tune::to_json(result, {"ddprun-tune"}));
  CHECK(object.at("ddprun_tune") == 1);
  CHECK(object.at("links").size() == 2);
  CHECK(object.at("links")[0].at("points").size() == 2);
  CHECK(object.at("gradients")[0].at("bytes") == 1 << 20);
  CHECK(object.at("config").at("step").get<double>() == doctest::Approx(0.020));
  CHECK(object.at("chosen").at("settings").at("comm.algorithm") == "ring");
  CHECK(object.at("chosen").at("buckets").size() == 1);
  CHECK(object.at("per_byte")[0].at("backend") == "gloo");
  CHECK(object.at("measured").is_null());
  CHECK(object.at("is_better") == false);
  result.verified = tune::Verified{0.02, 0.015, "faster", "faster."};
  object = nlohmann::json::parse(tune::to_json(result, {"ddprun-tune"}));
  CHECK(object.at("measured").at("chosen") == 0.015);
  CHECK(object.at("is_better") == true);
}
