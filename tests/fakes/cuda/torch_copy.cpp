// Copies in CUDA's order. An asynchronous copy between page-locked memory and the device ends when the host waits for
// its stream: until then, the host finds NaN in the target, and must not change the source.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstring>
#include <utility>

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

// A copy: called when it is queued on the stream. The function that it returns is called when the GPU reaches it.
using Launch = std::function<std::function<void()>(Stream)>;

// From the device to page-locked memory; visible there later.
Launch arriving_later(const at::Tensor& to, const at::Tensor& from) {
  return [to, from](Stream stream) {
    const at::Tensor sent = at::empty_like(to);
    std::memset(to.mutable_data_ptr(), 0xff, to.nbytes());
    when_known(stream, [to, sent] { std::memcpy(to.mutable_data_ptr(), sent.const_data_ptr(), to.nbytes()); });
    return [sent, from] { std::memcpy(sent.mutable_data_ptr(), from.const_data_ptr(), from.nbytes()); };
  };
}

// From page-locked memory to the device: at its end, the source must be unchanged.
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

// A piece of work on a stream. The host waits for the stream only if it needs the result immediately.
class Piece {
 public:
  Piece(Stream stream, bool host_waits) : stream_(stream) {
    if (host_waits || !is_busy(stream)) {
      begin(stream);
    } else {
      work_ = queue_work(stream);
    }
  }
  ~Piece() {
    if (work_ != nullptr) finish(work_);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  void run(const Launch& launch) {
    work_ == nullptr ? launch(stream_)() : do_later(std::exchange(work_, nullptr), launch(stream_));
  }

 private:
  const Stream stream_;
  std::shared_ptr<Work> work_;
};

// A copy between two devices runs on the source's stream, and the other device waits before and after it.
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

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (self.numel() == 0) return self;
  const at::Device device = source.is_cuda() ? source.device() : self.device();
  const Stream stream = current_stream(device);
  const bool crosses = source.is_cuda() && self.is_cuda() && source.device() != self.device();
  Disguise disguise;
  const at::Tensor from = disguise.of(source);
  at::Tensor to = disguise.of(self);
  const bool with_host = source.is_cpu() || self.is_cpu();
  const at::Tensor& host = source.is_cpu() ? from : to;
  const bool later = with_host && non_blocking && is_page_locked(host.const_data_ptr()) && is_plain(to, from);
  const bool host_waits = with_host && !later;

  if (crosses) meet(stream, current_stream(self.device()));
  Piece piece(stream, host_waits || crosses);
  if (source.is_cuda()) access(stream, source, false, "aten::copy_");
  if (self.is_cuda()) access(stream, self, true, "aten::copy_");
  if (with_host || crosses) {
    note(name_of(stream) + " copies " + std::to_string(self.nbytes()) + " bytes from " + place_of(source) + " to " +
         place_of(self) + (host_waits ? ", the host waits" : ""));
  }
  piece.run(!later ? plain(to, from) : self.is_cpu() ? arriving_later(to, from) : left_alone(to, from));
  if (host_waits) synchronize(stream);
  if (crosses) meet(current_stream(self.device()), stream);
  return self;
}

}  // namespace
}  // namespace ddprun::fake_gpu

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("copy_", &ddprun::fake_gpu::copy);
}
