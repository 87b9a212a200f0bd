#include "ddprun/sync_batch_norm.hpp"

#include <ATen/ops/batch_norm_native.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ddp/batch_norm_math.hpp"
#include "ddp/group_state.hpp"
#include "ddprun/error.hpp"

// LibTorch's BatchNorm::forward is not virtual, so that no other module can take its place. But it ends in the operator
// aten::batch_norm. A kernel of ours for this operator sees whether the tensors are those of a converted module. The
// operator has no other kernel for these dispatch keys, only one for all keys together, which ours calls.

namespace ddprun {
namespace {

using torch::Tensor;
using MaybeTensor = std::optional<Tensor>;

// What a converted module is known for. The module, the group and the tensors may end before it.
struct Conversion : torch::CustomClassHolder {
  std::string name;
  std::weak_ptr<torch::nn::Module> module;
  std::weak_ptr<Group::State> state;
  int size = 1;  // of the group

  // With one rank, a module stays ordinary, unless there are virtual ranks.
  bool applies() const {
    const auto alive = module.lock();
    if (alive == nullptr || !alive->is_training()) return false;
    const auto ranks = state.lock();
    return size > 1 || (ranks != nullptr && (ranks->gather_rows || ranks->in_virtual_rank));
  }

  Group group() const {
    if (auto alive = state.lock()) return Group(std::move(alive));
    throw Error(ExitCode::usage, name +
                                     " is synchronized over a group that has ended: keep the group while the "
                                     "module is in training mode");
  }
};
using ConversionPtr = c10::intrusive_ptr<Conversion>;

// The converted modules, by their parameters and buffers. A weak reference keeps the address of a TensorImpl from being
// used again.
class Registry {
 public:
  void set(const torch::nn::Module& module, const ConversionPtr& conversion) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& item) { return item.second.tensor.expired(); });
    const auto set_one = [&](const Tensor& tensor) {
      known_.erase(tensor.unsafeGetTensorImpl());
      known_.emplace(tensor.unsafeGetTensorImpl(), Known{Weak(tensor.getIntrusivePtr()), conversion});
    };
    for (const Tensor& tensor : module.parameters(false)) set_one(tensor);
    for (const Tensor& tensor : module.buffers(false)) set_one(tensor);
  }

  ConversionPtr find(const MaybeTensor& tensor) const {
    if (!tensor || !tensor->defined()) return {};
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(tensor->unsafeGetTensorImpl());
    return found == known_.end() ? ConversionPtr() : found->second.conversion;
  }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Known {
    Weak tensor;
    ConversionPtr conversion;
  };
  mutable std::mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, Known> known_;
};

Registry& registry() {
  static Registry registry;
  return registry;
}

// The row of each rank, or of each virtual rank.
Tensor gather_rows(const Tensor& row, const Group& group) {
  const auto& of_virtual_ranks = group.state().gather_rows;
  return of_virtual_ranks ? of_virtual_ranks(row) : torch::stack(group.all_gather(row));
}

// The statistics of all ranks' batches, equal bit for bit on all ranks.
ddp::BatchStatistics gather(const ddp::BatchStatistics& mine, const Group& group) {
  const int64_t channels = mine.mean.numel();
  const Tensor all = gather_rows(torch::cat({mine.count.view(1), mine.mean, mine.squares}), group);
  const Tensor count = all.narrow(1, 0, 1), mean = all.narrow(1, 1, channels);
  ddp::BatchStatistics whole;
  whole.count = count.sum();
  whole.mean = (count * mean).sum(0) / whole.count.clamp_min(1);
  whole.squares = all.narrow(1, 1 + channels, channels).sum(0) + (count * (mean - whole.mean).square()).sum(0);
  return whole;
}

struct SyncBatchNorm : torch::autograd::Function<SyncBatchNorm> {
  static Tensor forward(torch::autograd::AutogradContext* context, Tensor input, const MaybeTensor& weight,
                        const MaybeTensor& bias, const MaybeTensor& running_mean, const MaybeTensor& running_var,
                        double momentum, double eps, const ConversionPtr& conversion) {
    input = input.contiguous(input.suggest_memory_format());
    const auto whole = gather(ddp::statistics_of(input), conversion->group());
    ddp::update_running(running_mean, running_var, whole, momentum);
    const auto type = ddp::statistics_type(input);
    const Tensor mean = whole.mean.to(type), var = (whole.squares / whole.count.clamp_min(1)).to(type);
    context->save_for_backward({input, weight.value_or(Tensor()), mean, var, whole.count});
    context->saved_data["has_bias"] = bias && bias->defined();
    context->saved_data["eps"] = eps;
    context->saved_data["conversion"] = c10::IValue::make_capsule(conversion);
    return ddp::normalize(input, weight, bias, mean, var, eps);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (torch::GradMode::is_enabled()) {
      throw Error(ExitCode::usage, "create_graph: a synchronized BatchNorm has no second derivative");
    }
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1];
    const ddp::BackwardInput step{gradients[0].contiguous(input.suggest_memory_format()), input, saved[2], saved[3],
                                  context->saved_data["eps"].toDouble()};
    const auto sums = ddp::sums_of(step);
    Tensor of_input;
    if (context->needs_input_grad(0)) {
      const auto capsule = context->saved_data["conversion"].toCapsule();
      const Group group = static_cast<const Conversion&>(*capsule).group();
      Tensor whole = torch::cat({sums.gradient, sums.product}).to(torch::kFloat64);
      if (group.state().gather_rows) {
        whole = gather_rows(whole, group).sum(0);
      } else {
        group.allreduce(whole);
      }
      of_input = ddp::input_gradient(step, weight, whole, saved[4]);
    }
    const bool has_bias = context->saved_data["has_bias"].toBool();
    return {of_input, weight.defined() ? sums.product : Tensor(), has_bias ? sums.gradient : Tensor(), {}, {}, {}, {},
            {}};
  }
};

Tensor batch_norm(const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                  const MaybeTensor& running_mean, const MaybeTensor& running_var, bool training, double momentum,
                  double eps, bool cudnn_enabled) {
  if (training) {
    auto conversion = registry().find(weight);
    if (!conversion) conversion = registry().find(running_mean);
    if (conversion && conversion->applies()) {
      return SyncBatchNorm::apply(input, weight, bias, running_mean, running_var, momentum, eps, conversion);
    }
  }
  return at::native::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled);
}

// CPU and CUDA: for inference mode, in which tensors have no autograd keys.
void register_kernel() {
  static const auto libraries = [] {
    std::vector<torch::Library> made;
    for (const auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA, c10::DispatchKey::CPU,
                           c10::DispatchKey::CUDA}) {
      made.emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
      made.back().impl("batch_norm", TORCH_FN(batch_norm));
    }
    return made;
  }();
}

bool is_batch_norm(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&module) != nullptr;
}

}  // namespace

int64_t convert_sync_batchnorm(torch::nn::Module& module, const Group& group) {
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> norms;
  for (const auto& item : module.named_modules("", is_batch_norm(module))) {
    if (!is_batch_norm(*item.value())) continue;
    const std::string name = item.key().empty() ? "the BatchNorm" : "\"" + item.key() + "\"";
    if (item.value()->parameters(false).empty() && item.value()->buffers(false).empty()) {
      throw Error(ExitCode::usage, name +
                                       " has neither parameters nor running statistics, so convert_sync_batchnorm "
                                       "cannot recognize it: construct it with affine or track_running_stats");
    }
    norms.emplace_back(name, item.value());
  }
  register_kernel();
  for (const auto& [name, norm] : norms) {
    const auto conversion = c10::make_intrusive<Conversion>();
    conversion->name = name;
    conversion->module = norm;
    conversion->state = group.weak_state();
    conversion->size = group.size();
    registry().set(*norm, conversion);
  }
  return static_cast<int64_t>(norms.size());
}

bool ddp::are_synchronized(const std::vector<train::NamedTensor>& tensors, const Group& group) {
  bool any = false;
  for (const train::NamedTensor& item : tensors) {
    const ConversionPtr conversion = registry().find(item.tensor);
    if (!conversion) continue;
    any = true;
    if (conversion->state.lock().get() == &group.state()) continue;
    throw Error(ExitCode::usage, conversion->name +
                                     " is synchronized over another group than that of DistributedDataParallel, which "
                                     "is not possible with virtual_ranks");
  }
  return any;
}

}  // namespace ddprun
