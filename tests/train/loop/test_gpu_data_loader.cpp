// The copy of batches to a GPU: the same batches as on a CPU, for any number of workers, and no race between streams.
#include "fakes/cuda/torch_test.hpp"

#include <algorithm>

#include "data/memory_dataset.hpp"
#include "ddprun/error.hpp"
#include "train/device/streams.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::train {
namespace {

using fake_gpu::kGpu;

testing::MemoryDataset<float, int64_t> numbers(int64_t count) {
  std::vector<float> inputs;
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < count; ++i) {
    inputs.insert(inputs.end(), {static_cast<float>(i), static_cast<float>(-i)});
    targets.push_back(i);
  }
  return {{2}, inputs, {}, targets};
}

DataLoader feed_of(const Dataset& dataset, int workers, Target target) {
  const auto sampler_of = [size = dataset.size()](int) {
    return data::distributed_sampler(size, 0, 1, 3, true, Last::exact);
  };
  return DataLoader(dataset, sampler_of, 4, {}, {workers, 2, {}}, target);
}

struct Seen {
  std::vector<torch::Tensor> inputs, targets;
  std::vector<double> weights;
};

// Uses each batch as a step does, on the device's current stream.
Seen epoch_of(DataLoader& loader, int64_t epoch, int64_t from_step = 0) {
  Seen seen;
  loader.start(epoch, from_step);
  for (TensorBatch batch; loader.next(batch);) {
    seen.inputs.push_back(batch.input * 2);
    seen.targets.push_back(batch.target + 1);
    seen.weights.push_back(batch.weight);
  }
  return seen;
}

void check_equal(const std::vector<torch::Tensor>& on_gpu, const std::vector<torch::Tensor>& expected) {
  REQUIRE(on_gpu.size() == expected.size());
  for (std::size_t i = 0; i < on_gpu.size(); ++i) {
    CHECK(on_gpu[i].device() == kGpu);
    CHECK(on_gpu[i].cpu().equal(expected[i]));
  }
}

TEST_CASE("a GPU gets the batches that a CPU gets") {
  const auto dataset = numbers(57);
  for (const int workers : {0, 1, 3}) {
    for (const bool pinned : {true, false}) {
      CAPTURE(workers);
      CAPTURE(pinned);
      DataLoader cpu = feed_of(dataset, workers, {}), gpu = feed_of(dataset, workers, {kGpu, pinned});
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        const Seen expected = epoch_of(cpu, epoch, epoch), seen = epoch_of(gpu, epoch, epoch);
        check_equal(seen.inputs, expected.inputs);
        check_equal(seen.targets, expected.targets);
        CHECK(seen.weights == expected.weights);
      }
    }
  }
}

TEST_CASE("a step without samples has a batch without rows on the GPU") {
  const auto dataset = numbers(5);
  // Of three steps, this rank has samples in two.
  const auto sampler_of = [](int rank) { return data::distributed_sampler(5, rank, 2, 3, true, Last::exact); };
  DataLoader loader(dataset, sampler_of, 1, {1, 2}, {0, 2, {}}, {kGpu, true});
  loader.start(0);
  TensorBatch batch;
  for (int step = 0; step < 3; ++step) REQUIRE(loader.next(batch));
  CHECK(batch.size == 0);
  CHECK(batch.input.sizes() == torch::IntArrayRef({0, 2}));
  CHECK(batch.input.device() == kGpu);
  CHECK_FALSE(loader.next(batch));
}

TEST_CASE("an epoch that restarts in its middle gives only its own batches") {
  const auto dataset = numbers(64);
  DataLoader cpu = feed_of(dataset, 2, {}), gpu = feed_of(dataset, 2, {kGpu, true});
  TensorBatch batch;
  gpu.start(0);
  for (int step = 0; step < 5; ++step) REQUIRE(gpu.next(batch));
  const Seen expected = epoch_of(cpu, 1, 2), seen = epoch_of(gpu, 1, 2);
  check_equal(seen.inputs, expected.inputs);
}

TEST_CASE("copies go from page-locked memory on a separate stream, and the host does not wait for them") {
  const auto dataset = numbers(12);
  DataLoader loader = feed_of(dataset, 0, {kGpu, true});
  loader.start(0);
  TensorBatch batch;
  ddprun_fake_gpu_forget();
  REQUIRE(loader.next(batch));
  const std::string record = ddprun_fake_gpu_record();
  CHECK_MESSAGE(record.find("page-locked memory to cuda:0") != std::string::npos, record);
  CHECK_MESSAGE(record.find("cuda:0 stream 0 copies") == std::string::npos, record);
  CHECK_MESSAGE(record.find("the host waits") == std::string::npos, record);
  CHECK_MESSAGE(record.find("host waits for cuda:0 stream 0") == std::string::npos, record);
}

TEST_CASE("a sample that cannot be read is reported at its own step") {
  const auto dataset = numbers(16);
  class Failing final : public Dataset {
   public:
    explicit Failing(const Dataset& inner) : inner_(inner) {}
    int64_t size() const override { return inner_.size(); }
    const Field& input() const override { return inner_.input(); }
    const Field& target() const override { return inner_.target(); }
    const std::vector<std::string>& classes() const override { return inner_.classes(); }
    void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
      if (std::find(indices.begin(), indices.end(), 9) != indices.end()) throw Error(ExitCode::usage, "sample 9");
      inner_.fetch(indices, epoch, inputs, targets);
    }

   private:
    const Dataset& inner_;
  } const failing(dataset);
  for (const int workers : {0, 1}) {
    const auto sampler_of = [](int) { return data::distributed_sampler(16, 0, 1, 0, false, Last::pad); };
    DataLoader loader(failing, sampler_of, 4, {}, {workers, 4, {}}, {kGpu, true});
    loader.start(0);
    TensorBatch batch;
    REQUIRE(loader.next(batch));
    REQUIRE(loader.next(batch));
    CHECK(batch.target.cpu().equal(torch::tensor({4, 5, 6, 7}, torch::kInt64)));
    CHECK_THROWS_AS(loader.next(batch), Error);
    REQUIRE(loader.next(batch));
    CHECK(batch.target.cpu().equal(torch::tensor({12, 13, 14, 15}, torch::kInt64)));
  }
}

}  // namespace
}  // namespace ddprun::train
