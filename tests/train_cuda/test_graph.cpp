// Steps that are replayed as a CUDA graph: which ones, their results, what the host waits for, and for how long.
#include "fakes/cuda/torch_test.hpp"

#include <cmath>
#include <thread>

#include "comm/call.hpp"
#include "comm/plugin_backend.hpp"
#include "ddprun/error.hpp"
#include "support/error_of.hpp"
#include "train/device/device_graph.hpp"
#include "train/fit.hpp"
#include "train/optim/fused.hpp"
#include "train/optim/optimizers.hpp"

namespace ddprun::train {
namespace {

using fake_gpu::kGpu;
using testing::error_of;

// Not in this program's folder, so it is loaded here for the loader to find.
const bool library_is_loaded = [] {
  if (dlopen(DDPRUN_CUDA_GRAPH, RTLD_NOW | RTLD_LOCAL) == nullptr) throw std::runtime_error(dlerror());
  return true;
}();

using FitOnGpu = Fit<NormModel>;
using SetUp = std::function<void(FitOnGpu&)>;

// Twenty-two samples, in steps of six: the last step of an epoch has four.
constexpr int64_t kStepsPerEpoch = 4;

struct OnSideStream {
  c10::StreamGuard on{fake_gpu::another()};
};

void use_sgd(FitOnGpu& fit) {
  fit.optimizer = fused_sgd(fit.model->module().parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
}
void use_adam(FitOnGpu& fit) {
  fit.optimizer = fused_adam(fit.model->module().parameters(), torch::optim::AdamOptions(0.01));
}

// A fit that uses a non-default stream from its beginning.
struct Replayed {
  explicit Replayed(const SetUp& set_up, bool with_graph = true) {
    use_sgd(fit);
    set_up(fit);
    if (!with_graph) return;
    graph = make_device_graph();
    fit.graph = graph.get();
  }
  std::unique_ptr<DeviceGraph> graph;
  FitOnGpu fit{0, 1, 22, 6, Last::pad, kGpu};
};

void run(Replayed& one, bool ddp, const Job& plan) {
  const auto backend = comm::single_process_backend();
  ddp ? one.fit.run_ddp(plan, *backend) : one.fit.run_single(plan);
}

std::vector<int64_t> replays(const FitOnGpu& fit) {
  std::vector<int64_t> steps;
  for (const record::StepRecord& step : fit.notes.steps) {
    if (is_replayed(step)) steps.push_back(step.step);
  }
  return steps;
}

TEST_CASE_FIXTURE(OnSideStream, "a fit with a graph equals the fit without") {
  const std::vector<std::pair<std::string, SetUp>> cases = {{"sgd", [](auto&) {}},
                                                            {"adam", use_adam},
                                                            {"accumulate", [](auto& fit) { fit.step.accumulate = 2; }},
                                                            {"clip", [](auto& fit) { fit.step.clip_norm = 0.1; }},
                                                            {"bf16", [](auto& fit) { fit.step.amp = Amp::bf16; }},
                                                            {"fp16, clip, adam", [](auto& fit) {
                                                               fit.step.amp = Amp::fp16;
                                                               fit.step.clip_norm = 0.1;
                                                               use_adam(fit);
                                                             }}};
  for (const auto& [name, set_up] : cases) {
    for (const bool ddp : {false, true}) {
      CAPTURE(name);
      CAPTURE(ddp);
      Replayed expected(set_up, false), one(set_up);
      run(expected, ddp, epochs(3));
      run(one, ddp, epochs(3));
      CHECK(torch::equal(one.fit.weights(), expected.fit.weights()));
      REQUIRE(one.fit.notes.steps.size() == 3 * kStepsPerEpoch);
      for (std::size_t i = 0; i < one.fit.notes.steps.size(); ++i) {
        const auto &step = one.fit.notes.steps[i], &other = expected.fit.notes.steps[i];
        CHECK(step.loss == other.loss);
        CHECK(step.skipped == other.skipped);
        CHECK((step.scale == other.scale || std::isnan(other.scale)));
      }
      CHECK(one.fit.notes.epochs.back().test_loss == expected.fit.notes.epochs.back().test_loss);
      CHECK(one.fit.saved.positions.back().numbers == expected.fit.saved.positions.back().numbers);
      CHECK(replays(one.fit) == std::vector<int64_t>{5, 6, 7, 9, 10, 11});
      CHECK(replays(expected.fit).empty());
    }
  }
}

TEST_CASE_FIXTURE(OnSideStream, "a replayed step has all its time in one part") {
  Replayed one([](auto&) {});
  const record::Summary summary = one.fit.run_single(epochs(2));
  for (const record::StepRecord& step : one.fit.notes.steps) {
    for (const double part : {step.forward, step.backward, step.comm, step.optimizer}) {
      CHECK(std::isnan(part) == is_replayed(step));
    }
    CHECK(step.total > 0);
  }
  CHECK(summary.split.graph > 0);
  CHECK(summary.split.forward > 0);
}

TEST_CASE_FIXTURE(OnSideStream, "an optimizer's count of steps is known after an epoch") {
  Replayed one(use_adam);
  one.fit.run_single(epochs(2));
  const auto state = optimizer_state(*one.fit.optimizer, trainable_parameters(one.fit.model->module()));
  int counts = 0;
  for (const NamedTensor& item : state) {
    if (!item.name.ends_with(".step")) continue;
    ++counts;
    CHECK(item.tensor.item<int64_t>() == 2 * kStepsPerEpoch);
  }
  CHECK(counts == 4);
}

TEST_CASE_FIXTURE(OnSideStream, "each replay uses the learning rate of its own step") {
  const auto warm = [](FitOnGpu& fit) { fit.step.schedule = Schedule{Decay::none, 0.05, 12}; };
  Replayed expected(warm, false), one(warm), fixed([](auto&) {});
  for (Replayed* fit : {&expected, &one, &fixed}) fit->fit.run_single(epochs(3));
  CHECK(torch::allclose(one.fit.weights(), expected.fit.weights(), 1e-5, 1e-6));
  CHECK_FALSE(torch::allclose(one.fit.weights(), fixed.fit.weights(), 1e-3, 1e-3));
  for (std::size_t i = 0; i < one.fit.notes.steps.size(); ++i) {
    CHECK(one.fit.notes.steps[i].lr == expected.fit.notes.steps[i].lr);
  }
}

TEST_CASE_FIXTURE(OnSideStream, "between replays the host waits for single events, and never for a stream") {
  Replayed one([](auto&) {});
  std::vector<std::string> records;
  one.fit.notes.at_phase = [&](Phase phase, int64_t) {
    if (phase != Phase::data) return;
    records.emplace_back(ddprun_fake_gpu_record());
    ddprun_fake_gpu_forget();
  };
  one.fit.run_single({std::nullopt, 11, false, {0}});
  int replays = 0;
  for (const std::string& record : records) {
    const auto has = [&](const char* text) { return record.find(text) != std::string::npos; };
    if (!has("replays") || has("begins a capture")) continue;
    ++replays;
    CAPTURE(record);
    CHECK(has("host waits for event"));
    CHECK_FALSE(has("host waits for cuda"));
  }
  CHECK(replays >= 4);
}

// A backend of one rank that can fail, and whose destructor completes work that hangs on the GPU.
class Failing final : public comm::ForwardingBackend {
 public:
  Failing() : Failing(comm::single_process_backend()) {}
  void async_error() override {
    if (asked++ == fails_at) throw CommError(CommStatus::peer_lost, "the backend has failed");
  }
  void abort() noexcept override { at_abort(); }
  std::function<void()> at_abort = [] {};
  int asked = 0, fails_at = -1;

 private:
  explicit Failing(std::unique_ptr<CommBackend> inner) : ForwardingBackend(*inner), owned_(std::move(inner)) {}
  const std::unique_ptr<CommBackend> owned_;
};

// Recorded work is run immediately, and replayed work does not end by itself.
class Hanging final : public DeviceGraph {
 public:
  void begin() override {}
  void end() override {}
  void replay() override { work = fake_gpu::queue_work(fake_gpu::stream_of(fake_gpu::current().id(), 0)); }
  std::shared_ptr<fake_gpu::Work> work;
};

TEST_CASE_FIXTURE(OnSideStream, "a replay that does not end is aborted at the timeout, and reported in one line") {
  Hanging graph;
  Failing backend;
  backend.at_abort = [&] { fake_gpu::finish(graph.work); };
  Replayed one([](auto&) {}, false);
  one.fit.graph = &graph;
  one.fit.timeout = std::chrono::milliseconds(200);
  CHECK(error_of([&] {
          one.fit.run_ddp({std::nullopt, 5, false, {0}}, backend);
        }) ==
        "5: the CUDA graph of a step has not ended within 200 ms: a rank that hangs or is gone, or a step that takes "
        "longer than comm.timeout");
  CHECK((one.fit.notes.phases.back() == Phase::graph));
  CHECK(one.fit.notes.phase_step == 5);
}

TEST_CASE_FIXTURE(OnSideStream,
                  "the backend's error has precedence over the replay's, during the replay and after it") {
  for (const bool ends : {false, true}) {
    CAPTURE(ends);
    Hanging graph;
    Failing backend;
    backend.fails_at = ends ? 0 : 3;
    Replayed one([](auto&) {}, false);
    one.fit.graph = &graph;
    one.fit.notes.at_phase = [&](Phase phase, int64_t) {
      const bool is_waited_for = phase == Phase::graph && graph.work != nullptr;
      if (ends && is_waited_for) fake_gpu::finish(graph.work);
    };
    one.fit.timeout = std::chrono::seconds(60);
    CHECK(error_of([&] { one.fit.run_ddp({std::nullopt, 5, false, {0}}, backend); }) == "5: the backend has failed");
    fake_gpu::finish(graph.work);
  }
}

}  // namespace
}  // namespace ddprun::train
