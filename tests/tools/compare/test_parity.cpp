#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tools/compare/parity.hpp"

using namespace ddprun::compare;
using record_t = ddprun::record::ParityRecord;
using ddprun::record::TensorDigest;
namespace config = ddprun::config;

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

TEST_CASE("a variant by itself") {
  const ParityRun run = some_run(2);
  VariantParity parity = variant_parity({run, run});
  CHECK(parity.steps == 2);
  CHECK_FALSE(parity.ranks_part);
  CHECK(parity.repeats == true);

  ParityRun broken = run;
  broken[1][1].value = print_of(some_values(1));
  parity = variant_parity({broken, some_run(2, 1e-6)});
  REQUIRE(parity.ranks_part);
  CHECK(parity.ranks_part->step == 1);
  CHECK(parity.ranks_part->parameter == "b");
  CHECK(parity.ranks_part->tensor == "weights");
  CHECK(parity.repeats == false);
  CHECK(parity.runs_part->step == 2);
  CHECK(variant_parity({}).steps == 0);
  CHECK(sentences(variant_parity({ParityRun{}})).empty());
  CHECK_FALSE(variant_parity({run}).repeats);
}

TEST_CASE("two variants: the first difference and the largest, of tensors and of losses") {
  const std::vector<double> losses = {2.0, 1.5, 1.2};
  PairParity parity = pair_parity(some_run(2), some_run(2), losses, losses);
  CHECK_FALSE(parity.differs());
  CHECK(parity.tensor_steps == 2);
  CHECK(parity.loss_steps == 3);

  parity = pair_parity(some_run(2), some_run(2, 0.01), losses, {2.0, 1.6, 1.2 * (1 + 1e-6)});
  REQUIRE(parity.first_tensor);
  CHECK(parity.first_tensor->step == 2);
  CHECK(parity.first_tensor->parameter == "b");
  CHECK(parity.first_tensor->tensor == "gradient");
  CHECK(parity.first_other_loss == 2);
  CHECK(parity.at_first_step() == 0);
  CHECK(parity.first_loss_distance == doctest::Approx(0.0625));
  CHECK(parity.largest_loss_step == 2);

  parity = pair_parity({}, {}, {1, 2}, {1, NAN}, 101);
  CHECK(parity.first_other_loss == 102);
  CHECK(std::isinf(parity.first_loss_distance));
  CHECK(pair_parity({}, {}, losses, {}).loss_steps == 0);
}

TEST_CASE("16-bit numbers or compressed gradients are not float32") {
  config::Experiment single, ddp;
  ddp.strategy.kind = "ddp";
  CHECK(in_float32(single, ddp));
  ddp.strategy.compression = "bf16";
  CHECK_FALSE(in_float32(single, ddp));
  ddp.strategy.compression = "none";
  ddp.train.amp = "bf16";
  CHECK_FALSE(in_float32(single, ddp));
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
