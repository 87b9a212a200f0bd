#include "elastic/virtual_ranks.hpp"

#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/sha256.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/detail/mix.hpp"
#include "train/tensor/tensor_buffer.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::elastic {
namespace {

std::vector<torch::Tensor> copies_of(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

void copy(const std::vector<torch::Tensor>& to, const std::vector<torch::Tensor>& from) {
  if (to.size() != from.size()) {
    throw Error(ExitCode::usage,
                "strategy.virtual_ranks: the model has registered a buffer during a step; register all "
                "buffers when the model is made");
  }
  if (!to.empty()) at::_foreach_copy_(to, from);
}

// In the order of their names: each name, then the bytes.
std::string sha256_of(std::vector<train::NamedTensor> tensors) {
  std::ranges::sort(tensors, {}, &train::NamedTensor::name);
  train::FileTensors on_host;
  on_host.add(tensors);
  Sha256 hash;
  for (const checkpoint::TensorView& view : on_host.views()) {
    hash.add(view.name.data(), view.name.size());
    hash.add(view.data, view.bytes);
  }
  return hash.hex();
}

std::optional<torch::ScalarType> wire_of(const std::string& compression) {
  if (compression == "none") return std::nullopt;
  return compression == "fp16" ? torch::kFloat16 : torch::kBFloat16;
}

const VirtualRanksOptions& checked(const VirtualRanksOptions& options, int ranks) {
  if (options.count >= ranks && std::has_single_bit(static_cast<unsigned>(options.count))) return options;
  throw Error(ExitCode::usage, "virtual_ranks = " + std::to_string(options.count) +
                                   ": expected a power of two that is at least the number of ranks, " +
                                   std::to_string(ranks));
}

class VirtualStrategy final : public train::Strategy {
 public:
  VirtualStrategy(Model& model, std::unique_ptr<train::Strategy> ddp, TreeReduction& reduction, PartStates& states,
                  const VirtualRanksOptions& options)
      : Strategy(model),
        ddp_(std::move(ddp)),
        reduction_(reduction),
        states_(states),
        options_(options),
        is_compared_(options.is_checked) {}

  void prepare() override {
    ddp_->attach(monitor());
    ddp_->prepare();
    states_.seed(options_.seed);
    if (options_.survives) states_.keep();
  }
  void synchronize_buffers() override {
    if (!options_.survives) ddp_->synchronize_buffers();
  }
  void in_part(int part, const std::function<void()>& body) override {
    if (model_.module().is_training() && !is_compared_) is_compared_ = require_same_again(body);
    is_last_ = part + 1 == reduction_.share().count;
    is_empty_ = false;
    states_.run(part, body, monitor().step);
    if (!is_last_ && model_.module().is_training())
      reduction_.end_part(part, is_empty_ || options_.find_unused_parameters);
  }
  void begin_micro_batch(bool last) override { ddp_->begin_micro_batch(last && !is_trial_); }
  // A sum of V gradients of losses divided by V, a power of two: this rounds nothing but subnormal numbers.
  void backward(const torch::Tensor& loss) override { loss.backward(torch::full_like(loss, 1.0 / options_.count)); }
  void skip_backward() override {
    is_empty_ = true;
    if (is_last_ && !is_trial_) ddp_->skip_backward();
  }
  void finish_gradients() override {
    ddp_->finish_gradients();
    reduction_.end_step();
    if (options_.survives) ddp_->synchronize_buffers();
  }
  void after_step(int64_t step) override {
    if (options_.survives) states_.keep();
    ddp_->after_step(step);
  }
  void summarize(const record::RunTotals& totals, int64_t steps, record::Summary& summary) override {
    ddp_->summarize(totals, steps, summary);
    summary.virtual_ranks = options_.count;
    if (reduction_.share().first == 0) summary.weights_sha256 = sha256_of(train::state(model_.module()));
  }

 private:
  // Computes the first part of the first step twice. What a model keeps elsewhere than in buffers, and random numbers
  // that are not Torch's, would not belong to a virtual rank; they change the gradients. Returns whether there were
  // any.
  bool require_same_again(const std::function<void()>& body) {
    const auto parameters = train::trainable_parameters(model_.module());
    std::vector<std::vector<uint64_t>> hashes(2);
    is_trial_ = true;
    for (auto& of_trial : hashes) {
      states_.run_and_undo(body, monitor().step);
      for (const train::NamedTensor& parameter : parameters) {
        torch::Tensor& gradient = parameter.tensor.mutable_grad();
        const bool is_dense = gradient.defined() && gradient.layout() == torch::kStrided;
        of_trial.push_back(is_dense ? train::hash_of(gradient) : 0);
        gradient.reset();
      }
    }
    is_trial_ = false;
    const auto differs = std::ranges::mismatch(hashes[0], hashes[1]).in1 - hashes[0].begin();
    if (static_cast<std::size_t>(differs) == parameters.size()) return std::ranges::any_of(hashes[0], std::identity());
    throw Error(
        ExitCode::usage,
        "strategy.virtual_ranks: the gradient of " + parameters[static_cast<std::size_t>(differs)].name +
            " changed when the same samples were computed twice: the model keeps a state outside its buffers, or "
            "draws random numbers that are not Torch's, or a kernel adds in a varying order (then set "
            "train.deterministic = true)");
  }

  const std::unique_ptr<train::Strategy> ddp_;
  TreeReduction& reduction_;
  PartStates& states_;
  const VirtualRanksOptions& options_;
  bool is_last_ = true, is_empty_ = false, is_compared_, is_trial_ = false;
};

}  // namespace

PartStates::PartStates(train::ModelTensors model, Range share, const VirtualRanksOptions& options)
    : model_(std::move(model)), share_(share), own_buffers_(options.own_buffers), seeds_steps_(options.survives) {
  generators_.push_back(at::detail::getDefaultCPUGenerator());
  for (const torch::Device gpu : options.gpus) {
    if (!gpu.is_cpu()) generators_.push_back(torch::globalContext().defaultGenerator(gpu));
  }
  if (share.count > 1 || options.survives || options.in_program) states_.resize(static_cast<std::size_t>(share.count));
}

void PartStates::seed(uint64_t seed) {
  seed_ = seed;
  for (int part = 0; part < share_.count; ++part) {
    torch::manual_seed(seed + static_cast<uint64_t>(share_.first + part));
    if (!states_.empty()) end(part);
  }
}

void PartStates::apart(const std::function<void()>& body) {
  const auto after = c10::make_scope_exit([this, before = random()] { set_random(before); });
  body();
}

void PartStates::run_and_undo(const std::function<void()>& body, int64_t step) {
  if (!states_.empty()) begin(0, step);
  const std::vector<torch::Tensor> random_before = random(), buffers_before = copies_of(buffers());
  body();
  const torch::NoGradGuard no_grad;
  set_random(random_before);
  copy(buffers(), buffers_before);
}

void PartStates::run(int part, const std::function<void()>& body, int64_t step) {
  if (states_.empty()) return body();
  begin(part, step);
  body();
  end(part);
}

void PartStates::begin(int part, int64_t step) {
  const torch::NoGradGuard no_grad;
  const State& state = states_[static_cast<std::size_t>(part)];
  if (seeds_steps_) {
    torch::manual_seed(mix(seed_ ^ mix(static_cast<uint64_t>(step) ^ mix(static_cast<uint64_t>(share_.first + part)))));
  } else {
    set_random(state.random);
  }
  if (own_buffers_) return copy(buffers(), state.buffers);
  if (part > 0) return copy(buffers(), before_);
  before_ = copies_of(buffers());
}

void PartStates::end(int part) {
  const torch::NoGradGuard no_grad;
  State& state = states_[static_cast<std::size_t>(part)];
  state.random = random();
  if (own_buffers_) state.buffers = copies_of(buffers());
  if (part == 0) first_ = copies_of(buffers());
  if (part + 1 == share_.count) copy(buffers(), first_);  // those that a checkpoint has
}

void PartStates::keep() {
  kept_ = copies_of(buffers());
}

void PartStates::roll_back() {
  if (!kept_.empty()) copy(buffers(), kept_);
}

std::vector<torch::Tensor> PartStates::random() const {
  std::vector<torch::Tensor> states;
  for (const at::Generator& generator : generators_) states.push_back(generator.get_state());
  return states;
}

void PartStates::set_random(const std::vector<torch::Tensor>& states) {
  for (std::size_t i = 0; i < generators_.size(); ++i) generators_[i].set_state(states[i]);
}

std::vector<torch::Tensor> PartStates::buffers() const {
  std::vector<torch::Tensor> tensors;
  for (const train::NamedTensor& buffer : model_.buffers()) tensors.push_back(buffer.tensor.variable_data());
  return tensors;
}

void require_same_samples(const Dataset& dataset) {
  const std::size_t inputs = dataset.input().bytes(), targets = dataset.target().bytes();
  std::vector<int64_t> indices(static_cast<std::size_t>(std::min<int64_t>(dataset.size(), 4)));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<char> all_inputs(indices.size() * inputs), all_targets(indices.size() * targets);
  std::vector<char> input(inputs), target(targets);
  dataset.fetch(indices, 0, all_inputs.data(), all_targets.data());
  for (std::size_t index = indices.size(); index-- > 0;) {
    dataset.fetch({&indices[index], 1}, 0, input.data(), target.data());
    const bool is_same = std::memcmp(&all_inputs[index * inputs], input.data(), inputs) == 0 &&
                         std::memcmp(&all_targets[index * targets], target.data(), targets) == 0;
    if (is_same) continue;
    throw Error(ExitCode::usage, "sample " + std::to_string(index) +
                                     " of this data set changes when the samples are fetched in another order, and "
                                     "strategy.virtual_ranks needs samples that depend on seed, epoch and index only");
  }
}

VirtualRanks::VirtualRanks(train::ModelTensors model, train::GradientSync& sync, comm::Group ranks,
                           const VirtualRanksOptions& options)
    : options_(checked(options, ranks.size())),
      sync_(sync),
      reduction_(sync, ranks, options.count, wire_of(options.compression)),
      states_(std::move(model), reduction_.share(), options) {}

void VirtualRanks::survive(int64_t step) {
  steps_ = step;
  states_.seed_steps();
  states_.keep();
}

void VirtualRanks::run(const std::function<void(int rank)>& step) {
  if (sync_.hooks().hold(true)) throw Error(ExitCode::usage, "for_each_virtual_rank: not within no_sync()");
  for (const train::NamedTensor& parameter : sync_.parameters()) parameter.tensor.mutable_grad().reset();
  const Range share = reduction_.share();
  const auto after = c10::make_scope_exit([&] {
    is_last_ = false;
    sync_.hooks().hold(false);
    reduction_.end_step();
  });
  states_.apart([&] {
    for (int part = 0; part < share.count; ++part) {
      is_last_ = part + 1 == share.count;
      sync_.hooks().hold(!is_last_);
      states_.run(
          part, [&] { step(share.first + part); }, steps_);
      if (!is_last_) reduction_.end_part(part, options_.find_unused_parameters);
    }
  });
  if (is_last_) throw Error(ExitCode::failure, "for_each_virtual_rank: the last step has not called backward()");
  sync_.broadcast_buffers();
  ++steps_;
}

void VirtualRanks::finalize() {
  if (!is_last_) {
    throw Error(ExitCode::usage,
                "with virtual_ranks, call backward() once for each virtual rank, within for_each_virtual_rank()");
  }
  is_last_ = false;
  sync_.finalize();
  std::vector<torch::Tensor> gradients;
  for (const train::NamedTensor& parameter : sync_.parameters()) {
    if (const torch::Tensor& gradient = parameter.tensor.grad(); gradient.defined()) gradients.push_back(gradient);
  }
  const torch::NoGradGuard no_grad;
  at::_foreach_mul_(gradients, 1.0 / options_.count);  // rounds nothing but subnormal numbers, as in backward()
}

std::unique_ptr<train::Strategy> VirtualRanks::strategy(Model& model, std::unique_ptr<train::Strategy> ddp) {
  return std::make_unique<VirtualStrategy>(model, std::move(ddp), reduction_, states_, options_);
}

}  // namespace ddprun::elastic
