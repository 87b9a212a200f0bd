// One step as a graph, recorded by LibTorch on the fake GPU: its results, and what cannot be recorded.
#include "fakes/cuda/torch_test.hpp"

#include "train/device/device_graph.hpp"
#include "train/device/streams.hpp"
#include "train/loop/graph_runner.hpp"

namespace ddprun::train {
namespace {

using fake_gpu::kGpu;

// Not in this program's folder, so it is loaded here for the loader to find.
const bool library_is_loaded = [] {
  if (dlopen(DDPRUN_CUDA_GRAPH, RTLD_NOW | RTLD_LOCAL) == nullptr) throw std::runtime_error(dlerror());
  return true;
}();

TensorBatch batch_of(double value, int64_t size = 2, double weight = 1) {
  return {torch::full({size, 3}, value, kGpu), torch::zeros({size}, torch::TensorOptions(kGpu).dtype(torch::kLong)),
          size, weight};
}

// Adds up its inputs; its loss is the mean.
struct Stepping {
  c10::StreamGuard on_side{fake_gpu::another()};
  torch::Tensor sum = torch::zeros({3}, kGpu);
  std::unique_ptr<DeviceGraph> device_graph = make_device_graph();
  StepGraph graph{*device_graph, 2};

  StepResults step(const TensorBatch& batch) const {
    sum.add_(batch.input.sum(0));
    return {{{batch.input.mean(), {}, 1}}, {}, {}};
  }
  void record(const std::function<void()>& besides = [] {}) {
    graph.record(batch_of(1), [&](const TensorBatch& fixed) {
      StepResults results = step(fixed);
      besides();
      return results;
    });
  }
  bool sum_is(double value) const { return sum.eq(value).all().item<bool>(); }
};

TEST_CASE_FIXTURE(Stepping, "full steps after the first three are replayed") {
  CHECK_FALSE(graph.takes(batch_of(1), 2));
  CHECK(graph.takes(batch_of(1), 3));
  CHECK_FALSE(graph.takes(batch_of(1, 1), 3));
  CHECK_FALSE(graph.takes(batch_of(1, 2, 0.5), 3));
}

TEST_CASE_FIXTURE(Stepping, "a replay computes with its own batch, and recording computes nothing") {
  CHECK_FALSE(graph.recorded());
  record();
  CHECK(graph.recorded());
  CHECK(sum_is(0));
  for (const double value : {1., 5.}) {
    const StepResults& results = graph.replay(batch_of(value));
    CHECK(results.parts.at(0).loss.item<double>() == value);
  }
  CHECK(sum_is(2 * (1 + 5)));
}

TEST_CASE_FIXTURE(
    Stepping, "a step that cannot be recorded is reported, changes nothing, and does not prevent another recording") {
  const c10::Stream fork = side_stream(kGpu);
  const std::vector<std::pair<std::string, std::function<void()>>> cases = {
      {"operation not permitted when stream is capturing", [&] { sum.sum().item<double>(); }},
      {"operation not permitted when stream is capturing", [&] { synchronize(kGpu); }},
      {"capturing stream has unjoined work",
       [&] {
         c10::Event ready = ordering_event(kGpu);
         ready.record(current_stream(kGpu));
         ready.block(fork);
         const c10::StreamGuard on_fork(fork);
         sum.add_(1);
       }},
  };
  for (const auto& [words, body] : cases) {
    CAPTURE(words);
    std::string told;
    try {
      record(body);
    } catch (const c10::Error& error) {
      told = error.what_without_backtrace();
    }
    CHECK(told.starts_with("CUDA error: " + words));
    CHECK_FALSE(graph.recorded());
    CHECK(sum_is(0));
  }
  CHECK(step(batch_of(3)).parts.at(0).loss.item<double>() == 3);
  record();
  graph.replay(batch_of(4));
  CHECK(sum_is(2 * (3 + 4)));
}

TEST_CASE_FIXTURE(Stepping, "another stream must wait for the results of a replay") {
  record();
  synchronize(kGpu);  // all but the following work
  graph.replay(batch_of(1));
  const c10::Stream other = fake_gpu::another();
  c10::Event done = ordering_event(kGpu);
  done.record(current_stream(kGpu));
  const c10::StreamGuard on_other(other);
  CHECK_THROWS_AS(sum.clone(), fake_gpu::Race);
  done.block(other);
  CHECK_NOTHROW(sum.clone());
}

}  // namespace
}  // namespace ddprun::train
