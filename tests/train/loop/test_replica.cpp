#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "train/small_models.hpp"
#include "train/tensor/replicas.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


TEST_CASE("rank 0's tensors reach all ranks, whatever their types and strides") {
  CHECK(failures(run_ranks(3, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          const float mine = static_cast<float>(rank.rank());
          std::vector<NamedTensor> tensors{{"a", torch::full({2, 3}, mine + 1)},
                                           {"count", torch::full({}, rank.rank() + 5, torch::kInt64)},
                                           {"t", torch::full({4, 2}, mine).t()},
                                           {"empty", torch::empty({0})}};
          broadcast_tensors({*backend, kTimeout}, tensors);
          require(torch::equal(tensors[0].tensor, torch::full({2, 3}, 1.0F)), "a");
          require(tensors[1].tensor.item<int64_t>() == 5, "count");
          require(torch::equal(tensors[2].tensor, torch::zeros({2, 4})), "t");
        })) == "");
}

TEST_CASE("a layer with two names has its parameters listed once") {
  struct Tied : torch::nn::Module {
    Tied() {
      torch::nn::Linear layer(2, 2);
      register_module("encoder", layer);
      register_module("decoder", layer);
    }
  } tied;
  const auto parameters = trainable_parameters(tied);
  REQUIRE(parameters.size() == 2);
  CHECK(parameters[0].name == "encoder.weight");
  CHECK(parameters[1].name == "encoder.bias");
}

TEST_CASE("equal parameters pass the comparison; one bit of difference is named on every rank") {
  const auto outcomes = run_ranks(3, As::processes, kDeadline, [](testing::Rank& rank) {
    const auto backend = comm::join_good(rank);
    std::vector<NamedTensor> tensors{{"fc.weight", torch::ones({100})}, {"fc.bias", torch::ones({3})}};
    compare_tensors({*backend, kTimeout}, tensors, 1);
    if (rank.rank() == 2) tensors[1].tensor[1] = std::nextafter(1.0F, 2.0F);
    compare_tensors({*backend, kTimeout}, tensors, 2);
  });
  for (const auto& outcome : outcomes) {
    CHECK(outcome.error ==
          "step 2: parameter \"fc.bias\" differs between rank 0 and rank 2: the replicas have drifted apart");
    CHECK(outcome.number == 5);
  }
}

}  // namespace
}  // namespace ddprun::train
