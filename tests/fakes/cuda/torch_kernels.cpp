// The operators that each device implements: allocation, record_stream, and waits of the host.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "torch_fallback.hpp"
#include "torch_streams.hpp"

namespace ddprun::fake_gpu {
namespace {

using c10::IntArrayRef;
constexpr c10::DispatchKeySet kKey(c10::DispatchKey::CUDA);

at::Tensor empty(IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard here(c10::device_or_default(device));
  return at::detail::empty_generic(sizes, c10::GetAllocator(c10::kCUDA), kKey, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard here(c10::device_or_default(device));
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::kCUDA), kKey,
                                           c10::dtype_or_default(dtype));
}

void record_stream(at::Tensor& tensor, c10::Stream stream) {
  used_on(tensor.storage().data_ptr().get(), stream_of(stream));
}

// On a device also from half precision to float32 in one operator, which the CPU does not have.
at::Tensor& log_softmax_out(const at::Tensor& input, std::int64_t dim, bool half_to_float, at::Tensor& out) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const Stream stream = current_stream(input.device());
  begin(stream);
  access(stream, input, false, "aten::_log_softmax");
  access(stream, out, true, "aten::_log_softmax");
  Disguise disguise;
  const at::Tensor from = disguise.of(input);
  at::Tensor to = disguise.of(out);
  at::cpu::_log_softmax_out(to, half_to_float ? from.to(at::kFloat) : from, dim, false);
  disguise.take_over(out);
  return out;
}

// The CPU kernel draws from the CPU's generator, for any device.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (p == 0 || !train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  const at::Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p);
  return {input.mul(mask).mul_(p == 1 ? 0 : 1 / (1 - p)), mask};
}

}  // namespace
}  // namespace ddprun::fake_gpu

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  using namespace ddprun::fake_gpu;
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("record_stream", &record_stream);
  library.impl("_log_softmax.out", &log_softmax_out);
  library.impl("native_dropout", &native_dropout);
}
