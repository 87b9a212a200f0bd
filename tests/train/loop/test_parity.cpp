#include "support/torch_test.hpp"

#include <cmath>
#include <filesystem>

#include "comm/joined.hpp"
#include "testing/temp_dir.hpp"
#include "tools/lib/run.hpp"
#include "train/fit.hpp"
#include "train/loop/parity.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;
using testing::TempDir;


Job train_steps(int64_t count) {
  return {std::nullopt, count, false, {0}};
}

std::vector<NamedTensor> parameters_of(Fit<LineModel>& fit) {
  return trainable_parameters(fit.model->module());
}

// A ddp fit that writes its parity log into `dir`.
void fit_with_parity(Fit<LineModel>& fit, CommBackend& backend, const std::string& dir, Job plan) {
  ParityLog log(dir, fit.rank, parameters_of(fit), 2);
  fit.observers = {&log};
  fit.run_ddp(plan, backend);
}

TEST_CASE("a digest depends on a tensor's elements, not on their memory layout") {
  const torch::Tensor matrix = torch::randn({30, 20});
  const torch::Tensor transposed = matrix.t().contiguous().t();
  const auto print = digest_of(matrix), same = digest_of(transposed);
  CHECK(print.hash.size() == 16);
  CHECK(print.hash == same.hash);
  CHECK(print.sketch == same.sketch);
  CHECK(print.norm == doctest::Approx(matrix.norm().item<double>()));
  torch::Tensor other = matrix.clone();
  other[3][4] += 1e-6;
  CHECK(digest_of(other).hash != print.hash);
}

TEST_CASE("two sketches estimate the distance of their tensors") {
  torch::manual_seed(3);
  const torch::Tensor a = torch::randn({5000}), b = a + 0.01 * torch::randn({5000});
  double squares = 0;
  const auto left = digest_of(a).sketch, right = digest_of(b).sketch;
  REQUIRE(left.size() == 8);
  for (std::size_t k = 0; k < 8; ++k) squares += (left[k] - right[k]) * (left[k] - right[k]) / 8;
  const double distance = (a - b).norm().item<double>();
  CHECK(std::sqrt(squares) > distance / 3);
  CHECK(std::sqrt(squares) < distance * 3);
}

TEST_CASE("two ranks log the first steps, equally") {
  const TempDir dir;
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 20, 5, Last::pad);
          fit_with_parity(fit, *backend, dir.path(), train_steps(4));
        })) == "");
  const auto ranks = tools::read_parity(dir.path(), 2);
  REQUIRE(ranks.size() == 2);
  REQUIRE(ranks[0].size() == 2 * 2);
  for (std::size_t i = 0; i < ranks[0].size(); ++i) {
    const record::ParityRecord &first = ranks[0][i], &second = ranks[1][i];
    CHECK(first.step == static_cast<int64_t>(i / 2) + 1);
    CHECK(first.parameter == (i % 2 == 0 ? "weight" : "bias"));
    CHECK(first.elements == (i % 2 == 0 ? 2 : 1));
    CHECK(first.gradient.hash == second.gradient.hash);
    CHECK(first.value.hash == second.value.hash);
  }
  CHECK(ranks[0][0].gradient.hash != ranks[0][2].gradient.hash);
  CHECK(ranks[0][0].value.norm != ranks[0][2].value.norm);
}

TEST_CASE("a fit on one device has digests") {
  const TempDir dir;
  Fit<LineModel> fit(0, 1, 20, 5, Last::pad);
  {
    ParityLog log(dir.path(), 0, parameters_of(fit), 1);
    fit.observers = {&log};
    fit.run_single(train_steps(1));
  }
  const auto records = tools::read_parity(dir.path(), 1).at(0);
  REQUIRE(records.size() == 2);
  CHECK(records[0].value.hash == digest_of(fit.model->module().parameters()[0]).hash);
}

}  // namespace
}  // namespace ddprun::train
