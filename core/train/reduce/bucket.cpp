#include "train/reduce/bucket.hpp"

#include "ddprun/error.hpp"

namespace ddprun::train {
namespace {

torch::Tensor allocate(CommBackend& backend, const comm::BucketPlan& plan, const torch::Tensor& parameter) {
  const Capabilities& can = backend.capabilities();
  const auto options = parameter.options().requires_grad(false).dtype(c10::toRealValueType(parameter.scalar_type()));
  const auto elements = static_cast<int64_t>(plan.elements);
  const bool gives_cuda = can.alloc && can.alloc_memory == Memory::cuda;
  if (parameter.is_cuda() && !gives_cuda) return torch::empty({elements}, options);
  std::shared_ptr<void> memory = backend.allocate(plan.elements * size_of(plan.dtype));
  void* data = memory.get();
  // The tensor, and with it every gradient that is a view of it, keeps the memory alive.
  return at::for_blob(data, {elements})
      .deleter([owner = std::move(memory)](void*) mutable { owner.reset(); })
      .options(options)
      .target_device(parameter.device())
      .make_tensor();
}

}  // namespace

Bucket::Bucket(CommBackend& backend, const comm::BucketPlan& plan, const std::vector<NamedTensor>& parameters)
    : plan_(plan), flat_(allocate(backend, plan, parameters.at(plan.slots.at(0).parameter).tensor)) {
  for (const comm::Slot& slot : plan_.slots) {
    const torch::Tensor& parameter = parameters.at(slot.parameter).tensor;
    // Uses the parameter's strides if they cover memory without gaps, so that the optimizer iterates over both in the
    // same order. A tensor of its own on the bucket's memory, because autograd refuses to detach a view in place, which
    // zero_grad(set_to_none = false) does.
    const bool dense = parameter.is_non_overlapping_and_dense();
    const c10::DimVector strides =
        dense ? c10::DimVector(parameter.strides()) : c10::contiguous_strides(parameter.sizes());
    const int64_t offset = static_cast<int64_t>(slot.offset) / (parameter.is_complex() ? 2 : 1);
    views_.push_back(at::empty({0}, flat_.options().dtype(parameter.dtype()))
                         .set_(flat_.storage(), offset, parameter.sizes(), strides));
  }
}

void Bucket::copy_in(std::size_t slot, const NamedTensor& parameter, const torch::Tensor& scale) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& view = views_.at(slot);
  const torch::Tensor& gradient = parameter.tensor.grad();
  if (!gradient.defined()) {
    view.zero_();
    return;
  }
  if (gradient.layout() != torch::kStrided) {
    throw Error(ExitCode::failure, "parameter \"" + parameter.name +
                                       "\" has a sparse gradient, which cannot be averaged: construct the module "
                                       "without sparse gradients");
  }
  at::mul_out(view, gradient, scale);
}

void Bucket::make_gradient(std::size_t slot, const NamedTensor& parameter) const {
  const torch::Tensor& view = views_.at(slot);
  torch::Tensor& gradient = parameter.tensor.mutable_grad();
  if (!gradient.defined() || gradient.data_ptr() != view.data_ptr()) gradient = view;
}

void Bucket::reduce(const BucketHook& hook, std::size_t index) {
  const auto begin = std::chrono::steady_clock::now();
  const Reduced reduced = hook.reduce(*this, index);
  execution_ = reduced.execution;
  transfer_ = {.bytes = reduced.bytes, .begin = begin, .end = std::chrono::steady_clock::now()};
}

void Bucket::run(const BucketHook& hook, std::size_t index) {
  if (hook.prepare) hook.prepare(*this, index);
  reduce(hook, index);
  if (hook.complete) hook.complete(*this, index);
}

}  // namespace ddprun::train
