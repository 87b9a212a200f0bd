#include "elastic/part_states.hpp"

#include <c10/util/ScopeExit.h>

#include <utility>

#include "ddprun/error.hpp"
#include "ddprun/plugin/detail/mix.hpp"

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
  enter(part, true, step);
  body();
  leave(part, true);
}

void PartStates::enter(int part, bool is_first, int64_t step) {
  if (states_.empty()) return;
  if (is_first) return begin(part, step);
  const torch::NoGradGuard no_grad;
  set_random(states_[static_cast<std::size_t>(part)].random);
  copy(buffers(), states_[static_cast<std::size_t>(part)].buffers);
}

void PartStates::leave(int part, bool is_last) {
  if (states_.empty()) return;
  if (is_last) return end(part);
  states_[static_cast<std::size_t>(part)] = {random(), copies_of(buffers())};
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

}  // namespace ddprun::elastic
