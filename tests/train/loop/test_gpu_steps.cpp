// A fit on a GPU: the steps of a CPU, each reported after the next one is queued; the host never waits for a running
// step.
#include "fakes/cuda/torch_test.hpp"

#include <ATen/autocast_mode.h>

#include <sstream>

#include "comm/plugin_backend.hpp"
#include "support/error_of.hpp"
#include "train/counting_backend.hpp"
#include "train/fit.hpp"
#include "train/optim/fused.hpp"
#include "train/optim/optimizers.hpp"

namespace ddprun::train {
namespace {

using fake_gpu::kGpu;

// Two classes of points, distinguished by the sign of the target.
class SignModel final : public Model {
 public:
  torch::nn::Module& module() override { return *net_; }
  torch::Tensor forward(const torch::Tensor& input) override { return net_->forward(input); }
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    return torch::nn::functional::cross_entropy(output, classes(target));
  }
  torch::Tensor correct(const torch::Tensor& output, const torch::Tensor& target) override {
    return output.argmax(1).eq(classes(target)).sum();
  }

 private:
  static torch::Tensor classes(const torch::Tensor& target) { return target.squeeze(1).gt(0).to(torch::kInt64); }
  torch::nn::Sequential net_{torch::nn::Linear(2, 8), torch::nn::Functional(torch::relu), torch::nn::Linear(8, 2)};
};

// Twenty samples, in steps of six: the last of an epoch is short.
template <class ModelType>
Fit<ModelType> fit_on(torch::Device device) {
  return Fit<ModelType>(0, 1, 20, 6, Last::pad, device);
}

Job steps(int64_t count) {
  return {std::nullopt, count, false, {0}};
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

void check_equal(const record::StepRecord& step, const record::StepRecord& expected) {
  CHECK(step.step == expected.step);
  CHECK(step.epoch == expected.epoch);
  CHECK(step.samples == expected.samples);
  CHECK(step.lr == expected.lr);
  CHECK(step.loss == expected.loss);
  CHECK(step.skipped == expected.skipped);
  CHECK(same(step.correct, expected.correct));
  CHECK(same(step.scale, expected.scale));
}

template <class ModelType>
void check_equal(Fit<ModelType>& fit, Fit<ModelType>& expected) {
  REQUIRE(fit.notes.steps.size() == expected.notes.steps.size());
  for (std::size_t i = 0; i < fit.notes.steps.size(); ++i) check_equal(fit.notes.steps[i], expected.notes.steps[i]);
  REQUIRE(fit.notes.epochs.size() == expected.notes.epochs.size());
  for (std::size_t i = 0; i < fit.notes.epochs.size(); ++i) {
    CHECK(same(fit.notes.epochs[i].train_loss, expected.notes.epochs[i].train_loss));
    CHECK(same(fit.notes.epochs[i].test_loss, expected.notes.epochs[i].test_loss));
    CHECK(same(fit.notes.epochs[i].test_accuracy, expected.notes.epochs[i].test_accuracy));
  }
  REQUIRE(fit.saved.positions.size() == expected.saved.positions.size());
  for (std::size_t i = 0; i < fit.saved.positions.size(); ++i) {
    const Position &mine = fit.saved.positions[i], &other = expected.saved.positions[i];
    CHECK(mine.step == other.step);
    CHECK(mine.step_of_epoch == other.step_of_epoch);
    CHECK(mine.totals.loss == other.totals.loss);
    CHECK(mine.totals.samples == other.totals.samples);
    CHECK(mine.numbers == other.numbers);
  }
  CHECK(torch::equal(fit.weights(), expected.weights()));
}

template <class ModelType>
void check_like_cpu(const std::function<void(Fit<ModelType>&)>& set_up, const Job& plan) {
  auto expected = fit_on<ModelType>(torch::kCPU);
  auto fit = fit_on<ModelType>(kGpu);
  for (auto* one : {&expected, &fit}) {
    set_up(*one);
    one->run_single(plan);
  }
  check_equal(fit, expected);
}

TEST_CASE("the steps, epochs and commits of a GPU are those of a CPU") {
  const auto as_it_is = [](auto&) {};
  check_like_cpu<SignModel>(as_it_is, epochs(3));
  check_like_cpu<LineModel>(as_it_is, epochs(2));  // without accuracy
  check_like_cpu<NormModel>(as_it_is, steps(5));
  check_like_cpu<SignModel>([](auto& fit) { fit.step.accumulate = 4; }, epochs(2));
  check_like_cpu<SignModel>([](auto& fit) { fit.step.clip_norm = 0.1; }, epochs(2));
  check_like_cpu<SignModel>([](auto& fit) { fit.step.schedule = Schedule{Decay::none, 0.1, 4}; }, epochs(2));
  check_like_cpu<WatchedModel>([](auto& fit) { fit.step.amp = Amp::bf16; }, epochs(2));
}

// The GPU's operations from each step's forward until the next step or the end of the epoch.
template <class ModelType>
std::vector<std::string> records_of(Fit<ModelType>& fit, const std::function<void()>& run) {
  std::vector<std::string> records;
  fit.notes.at_phase = [&](Phase phase, int64_t step) {
    if (phase == Phase::forward) ddprun_fake_gpu_forget();
    if (phase == Phase::barrier || (phase == Phase::data && step > 1)) records.emplace_back(ddprun_fake_gpu_record());
  };
  run();
  return records;
}

std::vector<std::string> lines_with(const std::string& record, const std::string& word) {
  std::vector<std::string> found;
  std::istringstream lines(record);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(word) != std::string::npos) found.push_back(line);
  }
  return found;
}

std::string last_line(const std::string& record) {
  const auto lines = lines_with(record, "");
  return lines.empty() ? "" : lines.back();
}

// Of four steps: the host waits only for the end of the step before, at the very end.
void check_waits(const std::vector<std::string>& records) {
  REQUIRE(records.size() == 4);
  std::string end_before;  // the event at the end of the step before
  for (std::size_t step = 0; step < records.size(); ++step) {
    CAPTURE(records[step]);
    const std::string mark = lines_with(records[step], " records ").back();
    const std::string end = mark.substr(mark.find("event"));
    const auto waits = lines_with(records[step], "host waits");
    if (step == 0) CHECK(waits.empty());
    if (step > 0) CHECK(waits.at(0) == "host waits for " + end_before);
    if (step == 1 || step == 2) CHECK(last_line(records[step]) == waits.at(0));
    // The last pending step is read at the end of the epoch.
    if (step == 3) CHECK(waits.at(1) == "host waits for " + end);
    end_before = end;
  }
}

using SetUp = std::function<void(Fit<SignModel>&)>;

void use_adam(Fit<SignModel>& fit) {
  fit.optimizer = fused_adam(fit.model->module().parameters(), torch::optim::AdamOptions(0.01));
}

TEST_CASE("within a step the host waits only for the end of the step before, at the very end") {
  const std::vector<std::pair<std::string, SetUp>> cases = {{"as it is", [](auto&) {}},
                                                            {"accumulate", [](auto& fit) { fit.step.accumulate = 3; }},
                                                            {"clip", [](auto& fit) { fit.step.clip_norm = 0.1; }},
                                                            {"adam", [](auto& fit) { use_adam(fit); }},
                                                            {"bf16", [](auto& fit) { fit.step.amp = Amp::bf16; }},
                                                            {"fp16, clip, adam", [](auto& fit) {
                                                               fit.step.amp = Amp::fp16;
                                                               fit.step.clip_norm = 0.1;
                                                               use_adam(fit);
                                                             }}};
  for (const auto& [name, set_up] : cases) {
    CAPTURE(name);
    auto fit = fit_on<SignModel>(kGpu);
    set_up(fit);
    check_waits(records_of(fit, [&fit = fit] { fit.run_single(steps(4)); }));
  }
}

TEST_CASE("a ddp rank with buffers to synchronise does not wait either") {
  const auto backend = comm::single_process_backend();
  auto fit = fit_on<NormModel>(kGpu);
  check_waits(records_of(fit, [&] { fit.run_ddp(steps(4), *backend); }));
  auto alone = fit_on<NormModel>(kGpu);
  alone.run_single(steps(4));
  CHECK(torch::equal(fit.weights(), alone.weights()));
}

// A group that has lost a peer: its collectives have ended without a result.
struct LostGroup final : comm::CountingBackend {
  using CountingBackend::CountingBackend;
  void async_error() override { throw CommError(CommStatus::peer_lost, "rank 1 is gone"); }
};

TEST_CASE("if a peer was lost, that is reported, and not the loss that follows from missing gradients") {
  const auto single = comm::single_process_backend();
  LostGroup lost(*single);
  const auto error_with = [](CommBackend& backend, torch::Device device) {
    auto fit = fit_on<LineModel>(device);
    fit.train_data.poisoned = 3;
    return testing::error_of([&] { fit.run_ddp(epochs(1), backend); });
  };
  for (const torch::Device device : {torch::Device(torch::kCPU), kGpu}) {
    CAPTURE(device.str());
    CHECK(error_with(lost, device) == "5: rank 1 is gone");
    CHECK(error_with(*single, device).starts_with("1: the loss is nan; "));
  }
}

TEST_CASE("half precision on a GPU is that of the GPU's autocast, which ends with the step") {
  for (const auto& [amp, type] : {std::pair{Amp::bf16, at::kBFloat16}, {Amp::fp16, at::kHalf}}) {
    CAPTURE(static_cast<int>(amp));
    auto fit = fit_on<WatchedModel>(kGpu);
    fit.step.amp = amp;
    fit.run_single(epochs(1));
    CHECK((fit.model->trained_in == type));
    CHECK((fit.model->evaluated_in == type));
    CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCUDA));
  }
}

using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;

std::vector<torch::Tensor> state_of(Fit<WatchedModel>& fit) {
  std::vector<torch::Tensor> tensors;
  for (const auto& item : optimizer_state(*fit.optimizer, trainable_parameters(fit.model->module()))) {
    tensors.push_back(item.tensor.cpu());
  }
  return tensors;
}

TEST_CASE("fp16: a GPU itself skips the steps that a CPU skips, with every optimizer") {
  namespace optim = torch::optim;
  const std::vector<std::pair<std::string, Make>> all = {
      {"sgd", [](auto p) { return fused_sgd(p, optim::SGDOptions(0.05)); }},
      {"sgd with momentum",
       [](auto p) { return fused_sgd(p, optim::SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(0.01)); }},
      {"adam", [](auto p) { return fused_adam(p, optim::AdamOptions(0.05)); }},
      {"adamw", [](auto p) { return fused_adamw(p, optim::AdamWOptions(0.05)); }},
      {"sgd, operation by operation", [](auto p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.05)); }}};
  for (const auto& [name, make] : all) {
    CAPTURE(name);
    auto expected = fit_on<WatchedModel>(torch::kCPU);
    auto fit = fit_on<WatchedModel>(kGpu);
    for (auto* one : {&expected, &fit}) {
      one->step.amp = Amp::fp16;
      one->step.clip_norm = 0.5;
      one->optimizer = make(one->model->module().parameters());
      // The first step overflows, and one in the middle.
      one->notes.at_phase = [one](Phase phase, int64_t step) {
        if (phase == Phase::forward) one->model->hot = step == 1 || step == 6;
      };
      one->run_single(epochs(3));
    }
    CHECK(fit.notes.steps.at(0).skipped == 1);
    CHECK(fit.notes.steps.at(5).skipped == 1);
    CHECK(fit.notes.steps.back().skipped == 0);
    check_equal(fit, expected);
    const auto state = state_of(fit), expected_state = state_of(expected);
    REQUIRE(state.size() == expected_state.size());
    for (std::size_t i = 0; i < state.size(); ++i) CHECK(torch::equal(state[i], expected_state[i]));
  }
}

TEST_CASE("a loss that is not finite is reported with its own step, and nothing is committed") {
  for (const int64_t poisoned_step : {2, 4}) {  // followed by another, and the last
    CAPTURE(poisoned_step);
    auto fit = fit_on<LineModel>(kGpu);
    fit.notes.at_phase = [&](Phase phase, int64_t step) {
      if (phase != Phase::forward || step != poisoned_step) return;
      const torch::NoGradGuard no_grad;
      for (auto& parameter : fit.model->module().parameters()) parameter.fill_(NAN);
    };
    const std::string error = testing::error_of([&] { fit.run_single(epochs(1)); });
    CHECK(error.find("1: the loss is nan; ") == 0);
    CHECK(fit.notes.phase_step == poisoned_step);
    CHECK(fit.notes.phases.back() == Phase::forward);
    CHECK(static_cast<int64_t>(fit.notes.steps.size()) == poisoned_step - 1);
    CHECK(fit.saved.steps.empty());
  }
}

TEST_CASE("a fit that is stopped reports all its steps, and commits the last") {
  auto fit = fit_on<LineModel>(kGpu);
  fit.stop_at.step = 2;
  const auto summary = fit.run_single(epochs(3));
  CHECK(summary.stopped == "interrupted");
  CHECK(fit.notes.steps.size() == 2);
  CHECK(fit.saved.steps == std::vector<int64_t>{2});
  CHECK(fit.saved.positions.at(0).totals.samples == 12);
}

TEST_CASE("a step is reported during the next one, or immediately if an observer requests it") {
  auto fit = fit_on<LineModel>(kGpu);
  fit.notes.sync_step = 3;
  std::vector<std::size_t> reported;  // before each step begins
  fit.notes.at_phase = [&](Phase phase, int64_t) {
    if (phase == Phase::data) reported.push_back(fit.notes.steps.size());
  };
  fit.run_single(steps(7));
  // The fifth call is at the end of the epoch of four steps.
  CHECK(reported == std::vector<std::size_t>{0, 0, 2, 3, 3, 4, 4, 5});
}

TEST_CASE("the parts of a step have the GPU's times") {
  auto fit = fit_on<LineModel>(kGpu);
  const auto summary = fit.run_single(epochs(1));
  double total = 0;
  for (const record::StepRecord& step : fit.notes.steps) {
    CHECK(step.forward > 0);
    CHECK(step.backward > 0);
    CHECK(step.optimizer > 0);
    CHECK(step.comm >= 0);
    const double parts = step.data + step.forward + step.backward + step.comm + step.optimizer;
    CHECK_MESSAGE(step.total >= parts - 1e-7, step.step << ": " << step.total << " < " << parts);
    total += step.total;
  }
  CHECK(total <= summary.total_time);
  CHECK(summary.split.forward > 0);
}

}  // namespace
}  // namespace ddprun::train
