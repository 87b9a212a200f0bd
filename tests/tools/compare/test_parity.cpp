#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "support/contains.hpp"
#include "tools/compare/parity.hpp"

using namespace ddprun::compare;
using ddprun::testing::contains;
using record_t = ddprun::record::ParityRecord;
using ddprun::record::TensorDigest;

namespace {

// As the writer makes them: the hash shows equality, the sketch has fixed signs for each element.
TensorDigest print_of(const std::vector<double>& values) {
  TensorDigest print;
  std::size_t hash = 1469598103934665603U;
  for (const double value : values) {
    hash = (hash ^ std::hash<double>()(value)) * 1099511628211U;
    print.norm += value * value;
  }
  print.hash = std::to_string(hash);
  print.norm = std::sqrt(print.norm);
  for (unsigned k = 0; k < 8; ++k) {
    std::mt19937_64 signs(k + 1);
    double sum = 0;
    for (const double value : values) sum += (signs() & 1U) != 0 ? value : -value;
    print.sketch.push_back(sum);
  }
  return print;
}

std::vector<double> some_values(double shift) {
  std::mt19937_64 random(7);
  std::vector<double> values(200);
  for (double& value : values) value = static_cast<double>(random() >> 40) * 0x1p-24 + shift;
  return values;
}

// Two steps of two parameters. `shift` is added to the gradient of "b" in step 2.
ParityRun some_run(std::size_t ranks, double shift = 0) {
  std::vector<record_t> records;
  for (int64_t step = 1; step <= 2; ++step) {
    for (const char* parameter : {"a", "b"}) {
      record_t record;
      record.step = step;
      record.parameter = parameter;
      record.elements = 200;
      record.gradient = print_of(some_values(step == 2 && record.parameter == "b" ? shift : 0));
      record.value = print_of(some_values(0));
      records.push_back(record);
    }
  }
  return ParityRun(ranks, records);
}

}  // namespace

TEST_CASE("the sketch estimates the distance") {
  const auto a = print_of(some_values(0)), b = print_of(some_values(1e-3));
  const double truth = 1e-3 * std::sqrt(200.0) / b.norm;
  CHECK(distance(a, b) > truth / 3);
  CHECK(distance(a, b) < truth * 3);
  CHECK(distance(a, a) == 0);
  CHECK(distance(print_of({0, 0}), print_of({0, -0.0})) == 0);
}

TEST_CASE("the bound of rounding grows with the step") {
  CHECK(rounding_bound(1) == doctest::Approx(3.05e-5).epsilon(0.01));
  CHECK(rounding_bound(10) == doctest::Approx(10 * rounding_bound(1)));
}

TEST_CASE("a variant by itself") {
  ParityRun run = some_run(2);
  run[1][2].ulp_max = 2;
  run[1][2].ulp_mean = 0.5;
  run[0][0].ulp_max = 1;
  run[0][0].ulp_mean = 0.1;
  VariantParity parity = variant_parity({run, run});
  CHECK(parity.steps == 2);
  CHECK_FALSE(parity.ranks_part);
  CHECK(parity.repeats == true);
  CHECK(parity.ulp_max == 2);
  CHECK(parity.ulp_mean == doctest::Approx(0.3));
  CHECK(parity.ulp_parameter == "a");
  CHECK(sentences(parity)[0] == "ranks: equal bit for bit over 2 steps");
  CHECK(sentences(parity)[1] == "two runs: equal bit for bit");

  ParityRun broken = run;
  broken[1][1].value = print_of(some_values(1));
  parity = variant_parity({broken, some_run(2, 1e-6)});
  REQUIRE(parity.ranks_part);
  CHECK(parity.ranks_part->step == 1);
  CHECK(parity.ranks_part->parameter == "b");
  CHECK(parity.ranks_part->tensor == "weights");
  CHECK(parity.repeats == false);
  CHECK(parity.runs_part->step == 2);
  CHECK(contains(sentences(parity)[0], "ranks: not equal, first at step 1, weights of b"));

  for (auto& rank : run) {
    for (auto& record : rank) record.ulp_max = record.ulp_mean = 0;
  }
  CHECK(sentences(variant_parity({run}))[1] ==
        "gradients against a float64 mean: equal, except for rounding to float32");
  CHECK(variant_parity({}).steps == 0);
  CHECK(sentences(variant_parity({ParityRun{}})).empty());
  CHECK_FALSE(variant_parity({run}).repeats);
}

TEST_CASE("two variants: equal, within rounding, apart") {
  const std::vector<double> losses = {2.0, 1.5, 1.2};
  PairParity parity = pair_parity(some_run(2), some_run(2), losses, losses);
  CHECK(parity.identical);
  CHECK(parity.first_other_loss == 0);
  CHECK(sentences(parity)[0] == "gradients and weights: equal bit for bit over 2 steps");
  CHECK(sentences(parity)[1] == "losses: equal bit for bit over 3 steps");

  parity = pair_parity(some_run(2), some_run(2, 1e-6), losses, {2.0, 1.5, 1.2 * (1 + 1e-6)});
  CHECK_FALSE(parity.identical);
  CHECK_FALSE(parity.parts);
  CHECK(parity.largest_distance > 0);
  CHECK(parity.first_other_loss == 3);
  CHECK(parity.first_parted_loss == 0);

  parity = pair_parity(some_run(2), some_run(2, 0.01), losses, {2.0, 1.6, 1.2});
  REQUIRE(parity.parts);
  CHECK(parity.parts->step == 2);
  CHECK(parity.parts->parameter == "b");
  CHECK(parity.parts->tensor == "gradient");
  CHECK(parity.first_parted_loss == 2);
  CHECK(contains(sentences(parity)[0], "apart by more than rounding, first at step 2, gradient of b"));
  CHECK(contains(sentences(parity)[1], "equal bit for bit up to step 1, apart by more than rounding from step 2"));
}

TEST_CASE("different world sizes or parameters are compared only by their losses") {
  const std::vector<double> losses = {2.0};
  CHECK(pair_parity(some_run(1), some_run(2), losses, losses).tensor_steps == 0);
  ParityRun renamed = some_run(1);
  renamed[0][1].parameter = std::string("c");
  CHECK(pair_parity(some_run(1), renamed, losses, losses).tensor_steps == 0);
  const PairParity parity = pair_parity({}, {}, losses, losses);
  CHECK(parity.tensor_steps == 0);
  CHECK(parity.loss_steps == 1);
  CHECK(sentences(parity).size() == 1);
}
