#include "tools/tune/tune.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/golden.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

// One bucket of 1 MiB: 10 ms with tree, 5 ms with ring, behind a step of 10 ms.
tune::Result some_result() {
  tune::Result result;
  result.name = "simplenet, mnist";
  result.ranks = 4;
  const auto curve = [](double beta) { return tune::Curve{{1024, 1e-4}, {1 << 20, (1 << 20) * beta}}; };
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

TEST_CASE("all that tune says: nothing to change, a change, and what the comparison says of it") {
  std::string text = tune::about_choice(some_result());
  CHECK(tune::about_verdict(some_result()).empty());
  auto result = changed_result();
  result.other_cpu = 0.3;
  result.verified = tune::Verified{0.0250, 0.0150, "faster", "ring is faster."};
  CHECK(result.is_better());
  text += tune::about_choice(result) + tune::about_verdict(result);
  result.verified = tune::Verified{
      0.02, 0.02, "no verdict, because of other programs", "no verdict.", {"Other programs used up to 30 %."}};
  CHECK_FALSE(result.is_better());
  text += tune::about_verdict(result);
  result.verified->verdict = "faster";
  result.basis.curves.emplace(tune::Method{"gloo", "ring", "bf16"}, tune::Curve{{1024, 1e-4}});
  result.basis.per_byte[{"gloo", "bf16"}] = 0;
  result.chosen.compression = "bf16";
  check_golden("tools/tune/result.txt", text + tune::about_verdict(result));
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
