#include "train/optim/optimizers.hpp"

#include <set>
#include <string>

#include "ddprun/error.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::train {
namespace {

namespace optim = torch::optim;

// visit(part, value) or visit(part, tensor, is_needed) for what a state consists of. Parts that are not needed
// may be undefined.
template <class State, class Options, class Visit>
void visit_adam(State& state, const Options& options, const Visit& visit) {
  visit(".exp_avg", state.exp_avg(), true);
  visit(".exp_avg_sq", state.exp_avg_sq(), true);
  visit(".max_exp_avg_sq", state.max_exp_avg_sq(), options.amsgrad());
  visit(".step", state.step());
}

using StatePtr = std::unique_ptr<optim::OptimizerParamState>;

// The state, if the options are of this kind: they show the kind of a ShardedOptimizer too. Null becomes an empty
// state.
template <class Options, class State>
State* state_of(const optim::OptimizerOptions& options, StatePtr& state) {
  if (dynamic_cast<const Options*>(&options) == nullptr) return nullptr;
  if (state == nullptr) state = std::make_unique<State>();
  return dynamic_cast<State*>(state.get());
}

void visit_parts(StatePtr& state, const optim::OptimizerOptions& options, const auto& visit) {
  if (auto* sgd = state_of<optim::SGDOptions, optim::SGDParamState>(options, state)) {
    visit(".momentum_buffer", sgd->momentum_buffer(), false);
  } else if (auto* adam = state_of<optim::AdamOptions, optim::AdamParamState>(options, state)) {
    visit_adam(*adam, static_cast<const optim::AdamOptions&>(options), visit);
  } else if (auto* adamw = state_of<optim::AdamWOptions, optim::AdamWParamState>(options, state)) {
    visit_adam(*adamw, static_cast<const optim::AdamWOptions&>(options), visit);
  } else if (auto* rmsprop = state_of<optim::RMSpropOptions, optim::RMSpropParamState>(options, state)) {
    const auto& chosen = static_cast<const optim::RMSpropOptions&>(options);
    visit(".square_avg", rmsprop->square_avg(), true);
    visit(".momentum_buffer", rmsprop->momentum_buffer(), chosen.momentum() > 0);
    visit(".grad_avg", rmsprop->grad_avg(), chosen.centered());
    visit(".step", rmsprop->step());
  } else if (auto* adagrad = state_of<optim::AdagradOptions, optim::AdagradParamState>(options, state)) {
    visit(".sum", adagrad->sum(), true);
    visit(".step", adagrad->step());
  } else {
    throw Error(ExitCode::failure,
                "the state of this kind of optimizer cannot be saved: expected SGD, Adam, AdamW, RMSprop or Adagrad");
  }
}

template <class Number>
torch::Tensor number(Number value) {
  return torch::full({}, value, torch::CppTypeToScalarType<Number>::value);
}

// Appends the tensors of one parameter's state.
struct Save {
  std::vector<NamedTensor>& list;
  const NamedTensor& parameter;

  void operator()(const std::string& part, const torch::Tensor& tensor, bool) const {
    if (tensor.defined()) list.push_back({parameter.name + part, tensor});
  }
  void operator()(const std::string& part, auto value) const { list.push_back({parameter.name + part, number(value)}); }
};

// Reads them. Adds the names of the tensors that it gets to `used`.
struct Load {
  const checkpoint::File& file;
  const std::string name;
  const torch::Tensor& parameter;
  std::set<std::string>& used;

  bool has(const std::string& part) const { return file.find(name + part) != nullptr; }

  void operator()(const std::string& part, torch::Tensor& tensor, bool is_needed) const {
    if (is_needed || has(part)) tensor = get(part, parameter);
  }
  template <class Number>
  void operator()(const std::string& part, Number& value) const {
    value = get(part, number(Number{})).template item<Number>();
  }

 private:
  torch::Tensor get(const std::string& part, const torch::Tensor& like) const {
    used.insert(name + part);
    return tensor_like(like, file, file.at(name + part));
  }
};

// Null if the file has none for this parameter.
StatePtr state_in_file(const optim::Optimizer& optimizer, const Load& load) {
  StatePtr state;
  bool is_there = false;
  visit_parts(state, optimizer.defaults(),
              [&](const std::string& part, auto&&...) { is_there = is_there || load.has(part); });
  if (!is_there) return nullptr;
  visit_parts(state, optimizer.defaults(), load);
  return state;
}

}  // namespace

std::vector<NamedTensor> optimizer_state(optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters) {
  std::vector<NamedTensor> list;
  for (const NamedTensor& parameter : parameters) {
    const auto found = optimizer.state().find(parameter.tensor.unsafeGetTensorImpl());
    if (found == optimizer.state().end() || found->second == nullptr) continue;
    visit_parts(found->second, optimizer.defaults(), Save{list, parameter});
  }
  return list;
}

void load_optimizer_state(optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
                          const checkpoint::File& file, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  std::set<std::string> used;
  std::vector<StatePtr> states;
  for (const NamedTensor& parameter : parameters) {
    states.push_back(state_in_file(optimizer, {file, prefix + parameter.name, parameter.tensor, used}));
  }
  for (const checkpoint::Tensor& tensor : file.tensors) {
    if (!tensor.name.starts_with(prefix) || used.contains(tensor.name)) continue;
    throw Error(ExitCode::usage, file.path + ": tensor " + checkpoint::quoted_name(tensor.name) +
                                     " is of another kind of optimizer, or of a parameter that the model does not "
                                     "have");
  }
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    auto* const key = parameters[index].tensor.unsafeGetTensorImpl();
    if (states[index] == nullptr) {
      optimizer.state().erase(key);
    } else {
      optimizer.state()[key] = std::move(states[index]);
    }
  }
}

}  // namespace ddprun::train
