#include "train/optim/optimizers.hpp"

#include <cstdint>
#include <deque>
#include <numeric>
#include <set>
#include <string>

#include "ddprun/error.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::train {
namespace {

namespace optim = torch::optim;

// Of a part: that of the parameter, all of the optimizer's parameters in one row, or one number of their dtype.
enum class Shape { parameter, row, number };

// visit(part, value) or visit(part, tensor, is_needed, shape) for what a state consists of. Parts that are not needed
// may be undefined. `options` are of the same kind.
template <class State, class Options, class Visit>
void visit_adam(State& state, const Options& options, const Visit& visit) {
  visit(".exp_avg", state.exp_avg(), true, Shape::parameter);
  visit(".exp_avg_sq", state.exp_avg_sq(), true, Shape::parameter);
  visit(".max_exp_avg_sq", state.max_exp_avg_sq(), options.amsgrad(), Shape::parameter);
  visit(".step", state.step());
}

template <class Visit>
void visit_rmsprop(optim::RMSpropParamState& state, const optim::RMSpropOptions& options, const Visit& visit) {
  visit(".square_avg", state.square_avg(), true, Shape::parameter);
  visit(".momentum_buffer", state.momentum_buffer(), options.momentum() > 0, Shape::parameter);
  visit(".grad_avg", state.grad_avg(), options.centered(), Shape::parameter);
  visit(".step", state.step());
}

// Without `al`, which each step computes anew.
template <class Visit>
void visit_lbfgs(optim::LBFGSParamState& state, const Visit& visit) {
  visit(".func_evals", state.func_evals());
  visit(".n_iter", state.n_iter());
  visit(".t", state.t());
  visit(".prev_loss", state.prev_loss());
  visit(".d", state.d(), true, Shape::row);
  visit(".H_diag", state.H_diag(), true, Shape::number);
  visit(".prev_flat_grad", state.prev_flat_grad(), true, Shape::row);
  visit(".old_dirs", state.old_dirs(), Shape::row);
  visit(".old_stps", state.old_stps(), Shape::row);
  visit(".ro", state.ro(), Shape::number);
}

[[noreturn]] void refuse_kind() {
  throw Error(
      ExitCode::failure,
      "the state of this kind of optimizer cannot be saved: expected SGD, Adam, AdamW, RMSprop, Adagrad or LBFGS");
}

template <class Visit>
void visit_parts(optim::OptimizerParamState& state, const optim::OptimizerOptions& options, const Visit& visit) {
  if (auto* sgd = dynamic_cast<optim::SGDParamState*>(&state)) {
    visit(".momentum_buffer", sgd->momentum_buffer(), false, Shape::parameter);
  } else if (auto* adam = dynamic_cast<optim::AdamParamState*>(&state)) {
    visit_adam(*adam, dynamic_cast<const optim::AdamOptions&>(options), visit);
  } else if (auto* adamw = dynamic_cast<optim::AdamWParamState*>(&state)) {
    visit_adam(*adamw, dynamic_cast<const optim::AdamWOptions&>(options), visit);
  } else if (auto* rmsprop = dynamic_cast<optim::RMSpropParamState*>(&state)) {
    visit_rmsprop(*rmsprop, dynamic_cast<const optim::RMSpropOptions&>(options), visit);
  } else if (auto* adagrad = dynamic_cast<optim::AdagradParamState*>(&state)) {
    visit(".sum", adagrad->sum(), true, Shape::parameter);
    visit(".step", adagrad->step());
  } else if (auto* lbfgs = dynamic_cast<optim::LBFGSParamState*>(&state)) {
    visit_lbfgs(*lbfgs, visit);
  } else {
    refuse_kind();
  }
}

template <class Options, class State>
void make_if(const optim::OptimizerOptions& options, std::unique_ptr<optim::OptimizerParamState>& state) {
  if (dynamic_cast<const Options*>(&options) != nullptr) state = std::make_unique<State>();
}

// The options show the kind of a ShardedOptimizer too.
std::unique_ptr<optim::OptimizerParamState> empty_state(const optim::OptimizerOptions& options) {
  std::unique_ptr<optim::OptimizerParamState> state;
  make_if<optim::SGDOptions, optim::SGDParamState>(options, state);
  make_if<optim::AdamOptions, optim::AdamParamState>(options, state);
  make_if<optim::AdamWOptions, optim::AdamWParamState>(options, state);
  make_if<optim::RMSpropOptions, optim::RMSpropParamState>(options, state);
  make_if<optim::AdagradOptions, optim::AdagradParamState>(options, state);
  make_if<optim::LBFGSOptions, optim::LBFGSParamState>(options, state);
  if (state == nullptr) refuse_kind();
  return state;
}

template <class Number>
torch::Tensor number(Number value) {
  return torch::full({}, value, torch::CppTypeToScalarType<Number>::value);
}

std::string indexed(const std::string& part, std::size_t index) {
  return part + "." + std::to_string(index);
}

// Appends the tensors of one parameter's state.
struct Save {
  std::vector<NamedTensor>& list;
  const NamedTensor& parameter;

  void operator()(const std::string& part, const torch::Tensor& tensor, bool, Shape shape) const {
    if (!tensor.defined()) return;
    // LBFGS begins with a number of type int64.
    list.push_back(
        {parameter.name + part, shape == Shape::number ? tensor.to(parameter.tensor.scalar_type()) : tensor});
  }
  void operator()(const std::string& part, const std::deque<torch::Tensor>& tensors, Shape shape) const {
    for (std::size_t i = 0; i < tensors.size(); ++i) (*this)(indexed(part, i), tensors[i], true, shape);
  }
  template <class Number>
  void operator()(const std::string& part, Number value) const {
    list.push_back({parameter.name + part, number(value)});
  }
};

// Reads them. Adds the names of the tensors that it gets to `used`.
struct Load {
  const checkpoint::File& file;
  const std::string name;
  const torch::Tensor& parameter;
  const int64_t total;  // elements of all parameters
  std::set<std::string>& used;

  bool has(const std::string& part) const { return find_tensor(file, name + part) != nullptr; }

  void operator()(const std::string& part, torch::Tensor& tensor, bool is_needed, Shape shape) const {
    if (!is_needed && !has(part)) return;
    const auto options = parameter.options().requires_grad(false);
    tensor = get(part, shape == Shape::parameter ? parameter
                       : shape == Shape::row     ? torch::empty({total}, options)
                                                 : torch::empty({}, options));
  }
  void operator()(const std::string& part, std::deque<torch::Tensor>& tensors, Shape shape) const {
    for (std::size_t i = 0; has(indexed(part, i)); ++i) (*this)(indexed(part, i), tensors.emplace_back(), true, shape);
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
std::unique_ptr<optim::OptimizerParamState> state_in_file(const optim::Optimizer& optimizer, const Load& load) {
  auto state = empty_state(optimizer.defaults());
  bool is_there = false;
  visit_parts(*state, optimizer.defaults(),
              [&](const std::string& part, auto&&...) { is_there = is_there || load.has(part); });
  if (!is_there) return nullptr;
  visit_parts(*state, optimizer.defaults(), load);
  return state;
}

}  // namespace

std::vector<NamedTensor> optimizer_state(optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters) {
  std::vector<NamedTensor> list;
  for (const NamedTensor& parameter : parameters) {
    const auto found = optimizer.state().find(parameter.tensor.unsafeGetTensorImpl());
    if (found == optimizer.state().end() || found->second == nullptr) continue;
    visit_parts(*found->second, optimizer.defaults(), Save{list, parameter});
  }
  return list;
}

void load_optimizer_state(optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
                          const checkpoint::File& file, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  std::set<std::string> used;
  std::vector<std::unique_ptr<optim::OptimizerParamState>> states;
  const int64_t total = std::accumulate(parameters.begin(), parameters.end(), int64_t{0},
                                        [](int64_t sum, const NamedTensor& item) { return sum + item.tensor.numel(); });
  for (const NamedTensor& parameter : parameters) {
    states.push_back(state_in_file(optimizer, {file, prefix + parameter.name, parameter.tensor, total, used}));
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
