#include "train/optim/optimizer_state.hpp"

#include <set>
#include <string>

#include "ddprun/error.hpp"
#include "train/loop/weights.hpp"

namespace ddprun::train {
namespace {

namespace optim = torch::optim;

const std::string kMomentum = ".momentum_buffer", kMean = ".exp_avg", kSquare = ".exp_avg_sq",
                  kLargest = ".max_exp_avg_sq", kStep = ".step";

torch::Tensor counter(int64_t step) {
  return torch::full({}, step, torch::kInt64);
}

template <class State>
void append_adam(std::vector<NamedTensor>& list, const std::string& name, optim::OptimizerParamState& kept) {
  auto& state = static_cast<State&>(kept);
  list.push_back({name + kMean, state.exp_avg()});
  list.push_back({name + kSquare, state.exp_avg_sq()});
  if (state.max_exp_avg_sq().defined()) list.push_back({name + kLargest, state.max_exp_avg_sq()});
  list.push_back({name + kStep, counter(state.step())});
}

// The names of one parameter's state tensors in a file.
class Parts {
 public:
  // Adds the names of the tensors that it gets to `used`.
  Parts(const checkpoint::File& file, std::string name, std::set<std::string>& used)
      : file_(file), name_(std::move(name)), used_(used) {}

  bool has(const std::string& part) const { return find_tensor(file_, name_ + part) != nullptr; }
  torch::Tensor get(const std::string& part, const torch::Tensor& like) const {
    used_.insert(name_ + part);
    return tensor_like(like, file_, file_.at(name_ + part));
  }

 private:
  const checkpoint::File& file_;
  const std::string name_;
  std::set<std::string>& used_;
};

template <class State>
std::unique_ptr<optim::OptimizerParamState> adam_of(const Parts& parts, const torch::Tensor& parameter, bool amsgrad) {
  if (!parts.has(kStep) && !parts.has(kMean)) return nullptr;
  auto state = std::make_unique<State>();
  state->exp_avg(parts.get(kMean, parameter));
  state->exp_avg_sq(parts.get(kSquare, parameter));
  if (amsgrad || parts.has(kLargest)) state->max_exp_avg_sq(parts.get(kLargest, parameter));
  state->step(parts.get(kStep, counter(0)).template item<int64_t>());
  return state;
}

std::unique_ptr<optim::OptimizerParamState> sgd_of(const Parts& parts, const torch::Tensor& parameter) {
  if (!parts.has(kMomentum)) return nullptr;
  auto state = std::make_unique<optim::SGDParamState>();
  state->momentum_buffer(parts.get(kMomentum, parameter));
  return state;
}

[[noreturn]] void refuse_kind() {
  throw Error(ExitCode::failure, "the state of this kind of optimizer cannot be saved: expected SGD, Adam or AdamW");
}

// The options show the kind of a ShardedOptimizer too.
std::unique_ptr<optim::OptimizerParamState> state_of(const optim::Optimizer& optimizer, const Parts& parts,
                                                     const torch::Tensor& parameter) {
  const optim::OptimizerOptions* const options = &optimizer.defaults();
  if (dynamic_cast<const optim::SGDOptions*>(options) != nullptr) return sgd_of(parts, parameter);
  if (const auto* adam = dynamic_cast<const optim::AdamOptions*>(options)) {
    return adam_of<optim::AdamParamState>(parts, parameter, adam->amsgrad());
  }
  if (const auto* adamw = dynamic_cast<const optim::AdamWOptions*>(options)) {
    return adam_of<optim::AdamWParamState>(parts, parameter, adamw->amsgrad());
  }
  refuse_kind();
}

}  // namespace

std::vector<NamedTensor> optimizer_state(optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters) {
  std::vector<NamedTensor> list;
  for (const NamedTensor& parameter : parameters) {
    const auto found = optimizer.state().find(parameter.tensor.unsafeGetTensorImpl());
    if (found == optimizer.state().end() || found->second == nullptr) continue;
    optim::OptimizerParamState& state = *found->second;
    if (auto* sgd = dynamic_cast<optim::SGDParamState*>(&state)) {
      if (sgd->momentum_buffer().defined()) list.push_back({parameter.name + kMomentum, sgd->momentum_buffer()});
    } else if (dynamic_cast<optim::AdamParamState*>(&state) != nullptr) {
      append_adam<optim::AdamParamState>(list, parameter.name, state);
    } else if (dynamic_cast<optim::AdamWParamState*>(&state) != nullptr) {
      append_adam<optim::AdamWParamState>(list, parameter.name, state);
    } else {
      refuse_kind();
    }
  }
  return list;
}

void load_optimizer_state(optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
                          const checkpoint::File& file, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  std::set<std::string> used;
  std::vector<std::unique_ptr<optim::OptimizerParamState>> states;
  for (const NamedTensor& parameter : parameters) {
    states.push_back(state_of(optimizer, Parts(file, prefix + parameter.name, used), parameter.tensor));
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
