// Strategy dp on fake GPUs: the same results as one device, and no race between streams.
#include "fakes/cuda/torch_test.hpp"

#include "train/fit.hpp"

namespace ddprun::train {
namespace {

// A fit on these GPUs; the model is on the first one.
struct GpuFit : Fit<LineModel> {
  explicit GpuFit(const std::vector<int>& gpus) : Fit<LineModel>(0, 1, 22, 8, Last::pad, gpu(gpus.at(0))) {
    for (std::size_t number = 1; number < gpus.size(); ++number) {
      others.push_back(std::make_unique<LineModel>());
      others.back()->module().to(gpu(gpus[number]));
    }
  }
  static torch::Device gpu(int number) { return {torch::kCUDA, static_cast<c10::DeviceIndex>(number)}; }

  record::Summary run(const Job& plan) {
    std::vector<Model*> models;
    for (const auto& other : others) models.push_back(other.get());
    return this->fit(plan, *dp_strategy(*model, models));
  }

  std::vector<std::unique_ptr<LineModel>> others;
};

TEST_CASE("dp on GPUs gives the results of one device, whichever is the main one") {
  Fit<LineModel> alone(0, 1, 22, 8, Last::pad);
  alone.run_single(epochs(3));
  for (const std::vector<int>& gpus : {std::vector{0, 1}, {1, 0}, {0, 0}, {1, 0, 1}, {1}}) {
    CAPTURE(gpus.size());
    GpuFit fit(gpus);
    const record::Summary summary = fit.run(epochs(3));
    CHECK(torch::allclose(fit.weights(), alone.weights(), 1e-5, 1e-6));
    REQUIRE(fit.notes.epochs.size() == 3);
    CHECK(fit.notes.epochs[2].test_loss == doctest::Approx(alone.notes.epochs[2].test_loss).epsilon(1e-4));
    CHECK(summary.devices == static_cast<int64_t>(gpus.size()));
  }
}

TEST_CASE("the parts of communication are timed on the GPU, and add up to the communication") {
  GpuFit fit({0, 1});
  const record::Summary summary = fit.run(epochs(2));
  REQUIRE(fit.notes.steps.size() == 6);
  for (const record::StepRecord& step : fit.notes.steps) {
    for (const double part : {step.scatter, step.replicate, step.gather, step.reduce}) CHECK(part >= 0);
    CHECK(step.scatter + step.replicate + step.gather + step.reduce <= step.comm * (1 + 1e-9));
    CHECK(step.forward > 0);
    CHECK(step.backward > 0);
  }
  CHECK(summary.split.comm ==
        summary.split.scatter + summary.split.replicate + summary.split.gather + summary.split.reduce);
}

TEST_CASE("within a step the host waits for no device") {
  GpuFit fit({0, 1});
  std::vector<std::string> records;  // of each step, from its forward until the next one begins
  fit.notes.at_phase = [&](Phase phase, int64_t step) {
    if (phase == Phase::forward) ddprun_fake_gpu_forget();
    if (phase == Phase::data && step > 1) records.emplace_back(ddprun_fake_gpu_record());
  };
  fit.run({std::nullopt, 3, false, {0}});
  REQUIRE(records.size() == 2);
  for (std::size_t step = 0; step < records.size(); ++step) {
    CAPTURE(records[step]);
    const std::size_t wait = records[step].find("host waits");
    if (step == 0) {
      CHECK(wait == std::string::npos);
      continue;
    }
    // Waits for the end of the step before, when all of this one is queued.
    REQUIRE(wait != std::string::npos);
    CHECK(records[step].find('\n', wait) == records[step].size() - 1);
  }
}

TEST_CASE("each GPU's memory is counted separately") {
  GpuFit fit({1, 0});
  const record::Summary summary = fit.run(epochs(1));
  REQUIRE(summary.memory_by_device.size() == 2);
  constexpr int64_t state = 3 * sizeof(float);
  for (const int64_t bytes : summary.memory_by_device) CHECK(bytes > state);
  CHECK(summary.memory_by_device[0] > summary.memory_by_device[1]);  // gathers, and holds the batch
}

TEST_CASE("a replica's exception on a GPU ends the step, after all have ended") {
  GpuFit fit({0, 1});
  fit.train_data.poisoned = 3;
  CHECK_THROWS_WITH(fit.run(epochs(1)), "the loss is nan; a smaller optimizer.lr usually helps");
}

}  // namespace
}  // namespace ddprun::train
