// Copies, as CUDA orders them. One between page-locked memory and the device that the host does not wait for ends when
// the host has waited for its stream: until then the host finds no numbers in the memory that is copied to, and must
// leave the memory that is copied from as it is.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>

#include "torch_fallback.hpp"
#include "torch_streams.hpp"

namespace ddprun::fake_gpu {
namespace {

std::string place_of(const at::Tensor& tensor) {
  if (tensor.is_cuda()) return tensor.device().str();
  return is_page_locked(tensor.const_data_ptr()) ? "page-locked memory" : "pageable memory";
}

bool is_plain(const at::Tensor& to, const at::Tensor& from) {
  return to.dtype() == from.dtype() && to.sizes() == from.sizes() && to.strides() == from.strides() &&
         to.is_non_overlapping_and_dense();
}

// From the device into page-locked memory, to be seen there later.
Launch arriving_later(const at::Tensor& to, const at::Tensor& from) {
  return [to, from](Stream stream) {
    const at::Tensor sent = at::empty_like(to);
    std::memset(to.mutable_data_ptr(), 0xff, to.nbytes());
    when_known(stream, [to, sent] { std::memcpy(to.mutable_data_ptr(), sent.const_data_ptr(), to.nbytes()); });
    return [sent, from] { std::memcpy(sent.mutable_data_ptr(), from.const_data_ptr(), from.nbytes()); };
  };
}

// From page-locked memory to the device: when it is done, what was sent must still be there.
Launch left_alone(const at::Tensor& to, const at::Tensor& from) {
  return [to, from](Stream stream) {
    const at::Tensor sent = at::empty_like(from);
    when_known(stream, [from, sent] {
      if (std::memcmp(from.const_data_ptr(), sent.const_data_ptr(), from.nbytes()) == 0) return;
      fail("race: the host has written to page-locked memory before it was copied to the device");
    });
    return [to, from, sent] {
      std::memcpy(sent.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
      std::memcpy(to.mutable_data_ptr(), sent.const_data_ptr(), to.nbytes());
    };
  };
}

// Between two devices the copy runs on the stream of the one that it comes from, and the other waits before and after.
void meet(Stream waits, Stream comes) {
  const auto event = make_event();
  record(*event, comes);
  block(waits, *event);
}

Launch plain(at::Tensor to, const at::Tensor& from) {
  return [to, from](Stream) {
    return [to, from]() mutable {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      to.copy_(from);
    };
  };
}

at::Tensor& do_copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (self.numel() == 0) return self;
  const at::Device device = source.is_cuda() ? source.device() : self.device();
  const Stream stream = current_stream(device);
  const bool crosses = source.is_cuda() && self.is_cuda() && source.device() != self.device();
  if (crosses) meet(stream, current_stream(self.device()));
  begin(stream);
  if (source.is_cuda()) access(stream, source, false, "aten::copy_");
  if (self.is_cuda()) access(stream, self, true, "aten::copy_");

  Disguise disguise;
  const at::Tensor from = disguise.of(source);
  at::Tensor to = disguise.of(self);
  const bool with_host = source.is_cpu() || self.is_cpu();
  const at::Tensor& host = source.is_cpu() ? from : to;
  const bool later = with_host && non_blocking && is_page_locked(host.const_data_ptr()) && is_plain(to, from);
  if (with_host || crosses) {
    note(name_of(stream) + " copies " + std::to_string(self.nbytes()) + " bytes from " + place_of(source) + " to " +
         place_of(self) + (with_host && !later ? ", the host waits" : ""));
  }
  if (with_host && !later && is_capturing(stream)) synchronize(stream);  // is refused
  const Launch launch = !later ? plain(to, from) : self.is_cpu() ? arriving_later(to, from) : left_alone(to, from);
  if (is_capturing(stream)) {
    if (self.is_cuda()) to.copy_(from);
    on_launch(stream, launch);
  } else {
    launch(stream)();
  }
  if (with_host && !later) synchronize(stream);
  if (crosses) meet(current_stream(self.device()), stream);
  return self;
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  return as_torch([&]() -> at::Tensor& { return do_copy(self, source, non_blocking); });
}

}  // namespace
}  // namespace ddprun::fake_gpu

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("copy_", &ddprun::fake_gpu::copy);
}
