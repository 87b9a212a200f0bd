// Streams and events of a run's device, through LibTorch's device-generic interface, without CUDA's headers. For CUDA
// devices, train::load_cuda() must have been called. c10::Event and c10::StreamGuard order the work of streams.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <torch/torch.h>

namespace ddprun::train {

// The calling thread's current stream on this device: operations are queued on it.
c10::Stream current_stream(torch::Device device);

// Another stream of the device, from LibTorch's pool. The pool keeps it, so two calls may return the same stream.
// `high_priority`: a GPU runs its work before that of ordinary streams.
c10::Stream side_stream(torch::Device device, bool high_priority = false);

// The cudaStream_t, for other libraries; valid until the process ends. Throws Error(plugin) with a LibTorch before
// 2.11, which does not expose it.
void* handle(const c10::Stream& stream);

// An event that also stores its time: begin.elapsedTime(end), in milliseconds, once both events have completed.
c10::Event timing_event(torch::Device device);

}  // namespace ddprun::train
