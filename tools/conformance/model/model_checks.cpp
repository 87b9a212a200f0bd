// The checks of a model.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/subprocess.hpp"
#include "data/datasets.hpp"
#include "ddprun/error.hpp"
#include "tools/conformance/checks.hpp"
#include "tools/conformance/process_state.hpp"
#include "train/loop/model_loader.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::conformance {
namespace {

using train::ModelPtr;
using train::NamedTensor;

constexpr uint64_t kSeed = 7;
constexpr int64_t kBatch = 6;

struct Samples {
  torch::Tensor input;
  torch::Tensor target;

  Samples slice(int64_t first, int64_t count) const {
    return {input.narrow(0, first, count).clone(), target.narrow(0, first, count).clone()};
  }
};

// The data of a check, and models for it.
class Bench {
 public:
  explicit Bench(const ModelSettings& settings)
      : settings_(settings), splits_(data::open_splits(*settings.data_table, settings.data)) {
    torch::set_num_threads(1);  // results that do not depend on the machine
  }

  ModelPtr make(const std::map<std::string, std::string>& more_options = {}) const {
    ModelContext context = train::model_context(settings_.options, *splits_.train);
    context.options.insert(more_options.begin(), more_options.end());
    torch::manual_seed(kSeed);
    return train::make_model(settings_.plugin, context);
  }

  Samples samples() const {
    const Dataset& train = *splits_.train;
    std::vector<int64_t> indices(kBatch);
    for (int64_t i = 0; i < kBatch; ++i) indices[static_cast<std::size_t>(i)] = i % train.size();
    const auto batch_of = [](const Field& field) {
      std::vector<int64_t> shape = field.shape;
      shape.insert(shape.begin(), kBatch);
      return torch::empty(shape, field.type == ElementType::int64 ? torch::kLong : torch::kFloat);
    };
    Samples samples{batch_of(train.input()), batch_of(train.target())};
    train.fetch(indices, 0, samples.input.data_ptr(), samples.target.data_ptr());
    return samples;
  }

 private:
  const ModelSettings& settings_;
  const Splits splits_;
};

bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  const auto x = a.detach().contiguous(), y = b.detach().contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

std::string shape_of(const NamedTensor& one) {
  return one.name + " " + c10::str(one.tensor.sizes()) + " " + c10::str(one.tensor.dtype());
}

// The first name, shape or dtype that differs, or "".
std::string different_names(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string x = i < a.size() ? shape_of(a[i]) : "nothing", y = i < b.size() ? shape_of(b[i]) : "nothing";
    if (x != y) return "\"" + x + "\" became \"" + y + "\"";
  }
  return "";
}

std::string different_values(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  const std::string names = different_names(a, b);
  if (!names.empty()) return names;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i].tensor, b[i].tensor)) return a[i].name + " differs";
  }
  return "";
}

std::vector<NamedTensor> state_of(const ModelPtr& model) {
  return train::state(model->module());
}

std::vector<NamedTensor> copy_of(const std::vector<NamedTensor>& state) {
  std::vector<NamedTensor> copies;
  for (const auto& [name, tensor] : state) copies.push_back({name, tensor.detach().clone()});
  return copies;
}

// One step of training without an optimizer. Returns what is wrong with the loss, or "".
std::string step(const ModelPtr& model, const Samples& samples) {
  model->module().train();
  const torch::Tensor loss = model->loss(model->forward(samples.input), samples.target);
  if (loss.dim() != 0) return "the loss is no scalar: it has the shape " + c10::str(loss.sizes());
  if (!loss.requires_grad()) return "the loss has no gradient";
  if (!std::isfinite(loss.item<double>())) return "the loss is " + std::to_string(loss.item<double>());
  loss.backward();
  return "";
}

std::vector<NamedTensor> gradients_of(const ModelPtr& model) {
  std::vector<NamedTensor> gradients;
  for (const auto& [name, tensor] : train::trainable_parameters(model->module())) {
    if (tensor.grad().defined()) gradients.push_back({name, tensor.grad()});
  }
  return gradients;
}

torch::Tensor evaluated_loss(const ModelPtr& model, const Samples& samples) {
  return model->loss(model->forward(samples.input), samples.target);
}

std::string same_weights(const Bench& bench) {
  const ModelPtr first = bench.make(), second = bench.make();
  const std::string wrong = different_values(state_of(first), state_of(second));
  return wrong.empty() ? "" : "two models made after the same torch::manual_seed: " + wrong;
}

std::string same_names(const Bench& bench) {
  const ModelPtr first = bench.make(), second = bench.make();
  const std::string wrong = different_names(state_of(first), state_of(second));
  if (!wrong.empty()) return "in the second model, " + wrong;
  return train::trainable_parameters(first->module()).empty() ? "no parameter requires a gradient" : "";
}

std::string keeps_state(const Bench& bench) {
  const ModelPtr model = bench.make();
  const auto before = state_of(model);
  for (int i = 0; i < 2; ++i) {
    if (const std::string wrong = step(model, bench.samples()); !wrong.empty()) return wrong;
  }
  const auto after = state_of(model);
  const std::string wrong = different_names(before, after);
  if (!wrong.empty()) return "after two steps, " + wrong;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].tensor.is_same(after[i].tensor)) continue;
    return "after two steps, " + before[i].name + " is another tensor: gradients and weights would get lost";
  }
  return "";
}

std::string same_gradients(const Bench& bench) {
  std::vector<ModelPtr> models;
  for (int i = 0; i < 2; ++i) {
    models.push_back(bench.make());
    torch::manual_seed(kSeed);  // for dropout
    if (const std::string wrong = step(models.back(), bench.samples()); !wrong.empty()) return wrong;
  }
  const auto gradients = gradients_of(models[0]);
  if (gradients.empty()) return "no parameter has a gradient";
  for (const auto& [name, gradient] : gradients) {
    if (!torch::isfinite(gradient).all().item<bool>()) return "the gradient of " + name + " is not finite";
  }
  const std::string wrong = different_values(gradients, gradients_of(models[1]));
  return wrong.empty() ? "" : "equal models, seeds and batches: the gradient of " + wrong;
}

std::string takes_any_batch(const Bench& bench) {
  const ModelPtr model = bench.make();
  model->module().eval();
  const torch::NoGradGuard no_grad;
  for (const int64_t count : {int64_t{1}, int64_t{2}, kBatch}) {
    const torch::Tensor output = model->forward(bench.samples().slice(0, count).input);
    if (output.dim() > 0 && output.size(0) == count) continue;
    return "the output for " + std::to_string(count) + " samples has the shape " + c10::str(output.sizes());
  }
  return "";
}

std::string loss_is_mean(const Bench& bench) {
  const ModelPtr model = bench.make();
  model->module().eval();
  const torch::NoGradGuard no_grad;
  const Samples samples = bench.samples();
  double sum = 0;
  for (int64_t i = 0; i < kBatch; ++i) sum += evaluated_loss(model, samples.slice(i, 1)).item<double>();
  const double mean = sum / kBatch, loss = evaluated_loss(model, samples).item<double>();
  if (std::abs(loss - mean) <= 1e-3 * std::max(std::abs(mean), 1e-3)) return "";
  return "the loss of " + std::to_string(kBatch) + " samples is " + std::to_string(loss) +
         ", but the mean of their losses is " + std::to_string(mean);
}

std::string counts_correct(const Bench& bench) {
  const ModelPtr model = bench.make();
  model->module().eval();
  const torch::NoGradGuard no_grad;
  const Samples samples = bench.samples();
  const auto correct = [&](const Samples& some) { return model->correct(model->forward(some.input), some.target); };
  const torch::Tensor all = correct(samples);
  if (!all.defined()) return "";
  if (all.dim() != 0 || all.scalar_type() != torch::kLong) {
    return "correct is no int64 scalar: it has the shape " + c10::str(all.sizes()) + " and the type " +
           c10::str(all.dtype());
  }
  int64_t sum = 0;
  for (int64_t i = 0; i < kBatch; ++i) sum += correct(samples.slice(i, 1)).item<int64_t>();
  if (all.item<int64_t>() == sum) return "";
  return "correct is " + std::to_string(all.item<int64_t>()) + " for " + std::to_string(kBatch) +
         " samples, but one by one the sum is " + std::to_string(sum);
}

std::string evaluation_changes_nothing(const Bench& bench) {
  const ModelPtr model = bench.make();
  model->module().eval();
  const torch::NoGradGuard no_grad;
  const auto before = copy_of(state_of(model));
  const torch::Tensor first = model->forward(bench.samples().input).clone();
  const torch::Tensor second = model->forward(bench.samples().input);
  if (const std::string wrong = different_values(before, state_of(model)); !wrong.empty()) {
    return "after an evaluation, " + wrong;
  }
  return same_bits(first, second) ? "" : "the second evaluation of a batch has another output";
}

std::string refuses_other_options(const Bench& bench) {
  const std::string key = "no_such_option";
  try {
    bench.make({{key, "1"}});
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find(key) != std::string::npos) return "";
    return "the unknown option " + key + " is refused, but the error does not name it: \"" + text + "\"";
  }
  return "the unknown option " + key + " is not refused";
}

std::string changes_no_setting(const Bench& bench) {
  const ProcessState before = ProcessState::now();
  const auto dtype = torch::get_default_dtype();
  const int threads = torch::get_num_threads();
  const ModelPtr model = bench.make();
  if (const std::string wrong = step(model, bench.samples()); !wrong.empty()) return wrong;
  std::string changed = before.difference(ProcessState::now());
  if (torch::get_default_dtype() != dtype) changed = "torch's default dtype";
  if (torch::get_num_threads() != threads) changed = "torch's number of threads";
  if (!torch::GradMode::is_enabled()) changed = "torch's gradient mode";
  return changed.empty() ? "" : "the model changed " + changed;
}

std::string frees_its_memory(const Bench& bench) {
  constexpr int kTimes = 4;
  constexpr std::ptrdiff_t kSlack = 16'384;  // bytes for each model
  std::ptrdiff_t weights = 0;
  const auto repeat = [&] {
    for (int i = 0; i < kTimes; ++i) {
      const ModelPtr model = bench.make();
      weights = 0;
      for (const auto& one : state_of(model)) weights += static_cast<std::ptrdiff_t>(one.tensor.nbytes());
      step(model, bench.samples());
    }
    return held_now().heap;
  };
  const std::ptrdiff_t before = repeat();  // libraries keep what they need first
  const std::ptrdiff_t grown = repeat() - before;
  if (grown < kTimes * (weights / 2 + kSlack)) return "";
  return std::to_string(grown) + " bytes of the heap were left by " + std::to_string(kTimes) + " models with " +
         std::to_string(weights) + " bytes of weights each";
}

// The weights of a new model, as text.
std::string weights_of(const ModelSettings& settings) {
  std::size_t hash = 0;
  const ModelPtr model = Bench(settings).make();
  for (const auto& [name, tensor] : state_of(model)) {
    const torch::Tensor values = tensor.detach().contiguous();
    const std::string_view bytes(static_cast<const char*>(values.data_ptr()), values.nbytes());
    hash = hash * 31 + std::hash<std::string_view>()(bytes);
  }
  return std::to_string(hash);
}

// Every rank makes the model, and so does a resumed run.
std::string same_in_another_process(const ModelSettings& settings) {
  const std::string first = text_from_subprocess([&] { return weights_of(settings); }, std::nullopt);
  const std::string second = text_from_subprocess([&] { return weights_of(settings); }, std::nullopt);
  return first == second ? "" : "another process gets other weights after the same torch::manual_seed";
}

}  // namespace

plugin::ModelPlugin find_model(const std::string& name, const plugin::Registry& registry) {
  return registry.model(name, train::torch_version(), train::cxx11_abi());
}

Suite model_suite(const ModelSettings& settings) {
  Suite suite{.what = "model", .option = "--data-option", .open = [&settings] { Bench(settings).make(); }};
  const auto add = [&](const std::string& group, const std::string& name, std::string (*body)(const Bench&)) {
    suite.checks.push_back({group, group + ": " + name, [&settings, body] {
                              try {
                                return body(Bench(settings));
                              } catch (const c10::Error& error) {
                                return std::string(error.what_without_backtrace());
                              }
                            }});
  };
  add("weights", "the same seed gives the same initial weights", same_weights);
  suite.checks.push_back(
      {"weights", "weights: the same in another process", [&settings] { return same_in_another_process(settings); }});
  add("state_dict", "every model has the same names", same_names);
  add("state_dict", "training keeps names and tensors", keeps_state);
  add("training", "the same seed gives the same gradients", same_gradients);
  add("evaluation", "any batch size", takes_any_batch);
  add("evaluation", "the loss is the mean over the batch", loss_is_mean);
  add("evaluation", "correct counts samples", counts_correct);
  add("evaluation", "changes nothing", evaluation_changes_nothing);
  add("errors", "an unknown option is refused", refuses_other_options);
  add("process", "settings stay as they are", changes_no_setting);
  add("process", "a destroyed model leaves no memory", frees_its_memory);
  return suite;
}

}  // namespace ddprun::conformance
