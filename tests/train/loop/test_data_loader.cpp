#include "support/torch_test.hpp"

#include "data/opening.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::train {
namespace {

Splits linear_data(int samples) {
  return testing::open_builtin({"linear", "", {{"samples", std::to_string(samples)}}, 1});
}

DataLoader feed_of(const Dataset& dataset, int rank, int world, int64_t batch, Last last) {
  const auto sampler_of = [size = dataset.size(), world, last](int of) {
    return data::distributed_sampler(size, of, world, 3, true, last);
  };
  return DataLoader(dataset, sampler_of, batch, {rank, world}, {0, 2}, {}, last);
}

TEST_CASE("all ranks have the same number of steps, and the weights of exact add up to the world size") {
  const auto splits = linear_data(11);
  for (const int world : {1, 2, 3, 4}) {
    std::vector<DataLoader> loaders;
    for (int rank = 0; rank < world; ++rank) loaders.push_back(feed_of(*splits.train, rank, world, 2, Last::exact));
    int64_t samples = 0;
    for (auto& loader : loaders) loader.start(0);
    for (int64_t step = 0; step < loaders[0].steps(); ++step) {
      double weights = 0;
      for (auto& loader : loaders) {
        TensorBatch batch;
        REQUIRE(loader.next(batch));
        CHECK(batch.input.sizes() == torch::IntArrayRef({batch.size, 1}));
        weights += batch.weight;
        samples += batch.size;
      }
      CHECK(weights == doctest::Approx(world));
    }
    for (auto& loader : loaders) {
      TensorBatch batch;
      CHECK_FALSE(loader.next(batch));
    }
    CHECK(samples == 11);
  }
}

TEST_CASE("drop leaves out a last batch that is not full, as drop_last of PyTorch; pad and exact keep it") {
  const auto splits = linear_data(11);
  for (const int world : {1, 2}) {
    CAPTURE(world);
    CHECK(feed_of(*splits.train, 0, world, 4, Last::pad).steps() == (world == 1 ? 3 : 2));
    CHECK(feed_of(*splits.train, 0, world, 4, Last::exact).steps() == (world == 1 ? 3 : 2));
    DataLoader loader = feed_of(*splits.train, 0, world, 4, Last::drop);
    CHECK(loader.steps() == (world == 1 ? 2 : 1));
    loader.start(0);
    int64_t samples = 0;
    for (TensorBatch batch; loader.next(batch);) samples += batch.size;
    CHECK(samples == 4 * loader.steps());
  }
  CHECK(feed_of(*splits.train, 0, 1, 11, Last::drop).steps() == 1);
  CHECK(feed_of(*splits.train, 0, 1, 12, Last::drop).steps() == 0);
}

TEST_CASE("if all ranks have the same number of samples the weight is exactly one") {
  const auto splits = linear_data(12);
  DataLoader loader = feed_of(*splits.train, 1, 3, 2, Last::pad);
  loader.start(0);
  TensorBatch batch;
  while (loader.next(batch)) CHECK(batch.weight == 1.0);
}

TEST_CASE("a rank may have a step without samples") {
  const auto splits = linear_data(5);
  DataLoader loader = feed_of(*splits.train, 1, 2, 1, Last::exact);  // 3 + 2 samples
  CHECK(loader.steps() == 3);
  loader.start(0);
  TensorBatch batch;
  REQUIRE(loader.next(batch));
  REQUIRE(loader.next(batch));
  REQUIRE(loader.next(batch));
  CHECK(batch.size == 0);
  CHECK(batch.weight == 0);
}

}  // namespace
}  // namespace ddprun::train
