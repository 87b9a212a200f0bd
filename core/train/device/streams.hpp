// Streams and events of a run's device, over LibTorch's device-generic interface: no header of CUDA's. For CUDA devices
// that train::load_cuda() has made available. What waits for what on a GPU is said with c10::Event and
// c10::StreamGuard.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <torch/torch.h>

namespace ddprun::train {

// The stream that operations on this device are queued on, for the calling thread.
c10::Stream current_stream(torch::Device device);

// Another one of that device, from LibTorch's pool, which it stays in: two calls may give the same. `high_priority`:
// its work comes before that of ordinary streams where a GPU has to choose.
c10::Stream side_stream(torch::Device device, bool high_priority = false);

// Makes such a one the calling thread's current stream of that device, for good. CUDA records no graph on a device's
// default stream, nor anything that depends on it: what autograd makes for a parameter belongs to the stream that is
// the current one then.
void leave_default_stream(torch::Device device);

// The cudaStream_t, as other libraries take it; valid as long as the process. Throws Error(plugin) under a LibTorch
// before 2.11, which has no way to ask.
void* handle(const c10::Stream& stream);

// An event that orders streams: record() it on one, block() another until the work before it is done.
c10::Event ordering_event(torch::Device device);
// One that besides knows when it was reached: begin.elapsedTime(end), in milliseconds, once both are reached.
c10::Event timing_event(torch::Device device);

// Keeps the tensor's memory from being given to anybody else before what is queued on `stream` until now, or until the
// tensor goes, is done: for a tensor that was made on another stream. The memory stays its owner's.
void keep_for(const torch::Tensor& tensor, const c10::Stream& stream);

// Waits on the host until all that was queued on the device is done. Nothing on a CPU.
void synchronize(torch::Device device);

}  // namespace ddprun::train
