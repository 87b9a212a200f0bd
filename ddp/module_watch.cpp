#include "ddp/module_watch.hpp"

#include <ATen/record_function.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "ddprun/error.hpp"
#include "train/reduce/gradient_hooks.hpp"

namespace ddprun::ddp {
namespace {

using train::NamedTensor;

std::string describe(const torch::Tensor& form, torch::Device device) {
  return c10::str(form.scalar_type(), ' ', form.sizes(), " on ", device);
}

const NamedTensor* find(const std::vector<NamedTensor>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const NamedTensor& item) { return item.name == name; });
  return found == list.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& name, const std::string& change) {
  throw Error(ExitCode::failure, "parameter \"" + name + "\" " + change +
                                     " after DistributedDataParallel was constructed: construct it again after the "
                                     "module has changed");
}

}  // namespace

// The callback of at::RecordFunction, which is a plain function: it finds the objects in a list.
class ModuleWatch::Callback {
 public:
  static void add(const ModuleWatch* watch) {
    const std::lock_guard lock(mutex);
    if (list.empty()) {
      handle = at::addGlobalCallback(
          at::RecordFunctionCallback(before_function).scopes({at::RecordScope::BACKWARD_FUNCTION}));
    }
    list.push_back(watch);
  }

  static void remove(const ModuleWatch* watch) {
    const std::lock_guard lock(mutex);
    std::erase(list, watch);
    if (list.empty()) at::removeCallback(handle);
  }

 private:
  static std::unique_ptr<at::ObserverContext> before_function(const at::RecordFunction&) {
    const auto node = torch::autograd::get_current_node();
    const auto* accumulate = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get());
    if (accumulate != nullptr && !train::GradientHooks::has(accumulate->variable)) report(accumulate->variable);
    return nullptr;
  }

  static void report(const torch::Tensor& parameter) {
    const std::lock_guard lock(mutex);
    for (const ModuleWatch* watch : list) {
      const auto all = watch->model_.parameters();
      if (std::ranges::none_of(all, [&](const auto& one) { return one.tensor.is_same(parameter); })) continue;
      // RecordFunction logs what a callback throws. What the end of backward throws leaves backward().
      torch::autograd::Engine::get_default_engine().queue_callback([watch] { watch->require_unchanged(); });
    }
  }

  static inline std::mutex mutex;
  static inline std::vector<const ModuleWatch*> list;
  static inline at::CallbackHandle handle = 0;
};

ModuleWatch::ModuleWatch(train::ModelTensors model, const std::vector<NamedTensor>& parameters)
    : model_(std::move(model)), parameters_(parameters) {
  for (const auto& [name, tensor] : parameters)
    forms_.emplace_back(torch::empty_like(tensor, torch::kMeta), tensor.device());
  Callback::add(this);
}

ModuleWatch::~ModuleWatch() {
  Callback::remove(this);
}

void ModuleWatch::require_unchanged() const {
  const std::vector<NamedTensor> now = train::trainable_parameters(model_);
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const NamedTensor& known = parameters_[index];
    const bool has_place = index < now.size() && now[index].name == known.name;
    const NamedTensor* item = has_place ? &now[index] : find(now, known.name);
    if (item == nullptr) refuse(known.name, "was removed, frozen or tied to another one");
    if (!item->tensor.is_same(known.tensor)) refuse(known.name, "was replaced");
    const auto& [before, device] = forms_[index];
    const torch::Tensor& form = item->tensor;
    if (form.sizes() == before.sizes() && form.scalar_type() == before.scalar_type() && form.device() == device)
      continue;
    refuse(known.name, "changed from " + describe(before, device) + " to " + describe(form, form.device()));
  }
  if (now.size() == parameters_.size()) return;
  for (const NamedTensor& item : now) {
    if (find(parameters_, item.name) == nullptr) refuse(item.name, "was added or unfrozen");
  }
}

}  // namespace ddprun::ddp
