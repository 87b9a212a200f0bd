// Runs every operator on device tensors with the CPU's kernel on the same memory. As on a real device, tensors of two
// devices, or of a device and the CPU, are refused. All reads and writes are checked for races between streams.
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>

#include "torch_fallback.hpp"
#include "torch_streams.hpp"

namespace ddprun::fake_gpu {
namespace {

using torch::jit::Stack;

// A tensor argument or a list of tensors, with its properties in the schema.
struct Part {
  at::Tensor tensor;
  bool is_written;
  bool is_viewed;  // neither read nor written
};

class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack& stack) : op_(op), stack_(stack) {}

  void run() {
    const auto& arguments = op_.schema().arguments();
    const std::size_t first = stack_.size() - arguments.size();
    for (std::size_t i = 0; i < arguments.size(); ++i) collect(stack_[first + i], arguments[i]);
    check_devices();
    const c10::DeviceGuard here(device_);
    if (touches()) begin(current_stream(device_));
    if (returns_number() || has_host_tensor_) host_waits();
    for (const Part& part : parts_) touch(part.tensor, part.is_written, part.is_viewed);
    for (std::size_t i = 0; i < arguments.size(); ++i) stack_[first + i] = disguised(stack_[first + i], arguments[i]);
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    for (const Part& part : parts_) {
      if (part.is_written) disguise_.take_over(part.tensor);
    }
    const std::size_t results = stack_.size() - op_.schema().returns().size();
    for (std::size_t i = results; i < stack_.size(); ++i) stack_[i] = undone(stack_[i]);
  }

 private:
  void collect(const c10::IValue& value, const c10::Argument& argument) {
    const auto* const alias = argument.alias_info();
    const auto add = [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      const bool is_written = (alias && alias->isWrite()) || is_running_average(argument);
      if (tensor.is_cuda()) parts_.push_back({tensor, is_written, alias && !alias->isWrite()});
      if (tensor.is_cpu() && tensor.dim() > 0) has_host_tensor_ = true;
      if (!tensor.is_cuda()) return;
      TORCH_CHECK(device_.is_cpu() || device_ == tensor.device(),
                  "Expected all tensors to be on the same device, but found at least two devices, ", device_, " and ",
                  tensor.device(), "! (", op_.schema().name(), ")");
      device_ = tensor.device();
    };
    if (value.isTensor()) add(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) add(tensor);
    }
    if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) add(tensor.value_or(at::Tensor()));
    }
    if (value.isDevice() && value.toDevice().is_cuda() && device_.is_cpu()) device_ = value.toDevice();
  }

  // Batch normalization writes to these, although this schema does not declare it.
  bool is_running_average(const c10::Argument& argument) const {
    return op_.schema().name() == "aten::native_batch_norm" && argument.name().starts_with("running_");
  }

  void check_devices() {
    // Indices may be on the host: these operators copy them.
    const std::string& name = op_.schema().name();
    const bool takes_indices = name.find("index") != std::string::npos;
    TORCH_CHECK(!has_host_tensor_ || takes_indices,
                "Expected all tensors to be on the same device, but found at least two devices, ", device_,
                " and cpu! (", name, ")");
    if (device_.is_cpu() || device_.index() < 0) {
      device_ = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(current_device()));
    }
  }

  bool touches() const {
    return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return !part.is_viewed; });
  }

  // A number or a size that depends on the elements.
  bool returns_number() const {
    const auto& returns = op_.schema().returns();
    const std::string& name = op_.schema().name();
    return name == "aten::nonzero" || name == "aten::masked_select" ||
           std::any_of(returns.begin(), returns.end(), [](const c10::Argument& one) {
             return one.type()->kind() != c10::TypeKind::TensorType && one.type()->kind() != c10::TypeKind::ListType;
           });
  }

  void host_waits() const {
    const Stream stream = current_stream(device_);
    note("host waits for " + name_of(stream) + " (" + op_.schema().name() + ")");
    synchronize(stream);
  }

  void touch(const at::Tensor& tensor, bool writes, bool views) const {
    if (views) return;
    access(current_stream(device_), tensor, writes, op_.schema().name());
  }

  c10::IValue disguised(const c10::IValue& value, const c10::Argument& argument) {
    static const auto generator = c10::OptionalType::create(c10::GeneratorType::get());
    if (value.isNone() && *argument.type() == *generator) return at::globalContext().defaultGenerator(device_);
    if (value.isTensor()) return disguise_.of(value.toTensor());
    if (value.isStorage()) return disguise_.of(value.toStorage());
    if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(disguise_.of(tensor));
      return tensors;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
        tensors.push_back(tensor ? std::optional(disguise_.of(*tensor)) : std::nullopt);
      }
      return tensors;
    }
    if (value.isDevice()) return c10::Device(c10::kCPU);
    return value;
  }

  c10::IValue undone(const c10::IValue& value) {
    if (value.isTensor()) return written(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(written(tensor));
    return tensors;
  }

  // A result; if it has its own memory, this call has written it.
  at::Tensor written(const at::Tensor& tensor) {
    const bool is_new = tensor.defined() && tensor.is_cpu() && !disguise_.has(tensor);
    const at::Tensor result = disguise_.undo(tensor, device_);
    if (is_new) touch(result, true, false);
    return result;
  }

  const c10::OperatorHandle& op_;
  Stack& stack_;
  std::vector<Part> parts_;
  Disguise disguise_;
  c10::Device device_{c10::kCPU};
  bool has_host_tensor_ = false;
};

void on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Call(op, *stack).run();
}

}  // namespace
}  // namespace ddprun::fake_gpu

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&ddprun::fake_gpu::on_cpu>());
}
// CUDA decomposes these operators differently than the CPU: with the CPU's decomposition, results are equal.
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  for (const char* const name : {"convolution", "convolution_backward"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&ddprun::fake_gpu::on_cpu>());
  }
}
